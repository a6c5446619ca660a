/* From libyaml's events to nodes. Nothing recurses over the text, and what an
 * alias names is counted again each time, before anything walks it. */
#include "core/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/map.h"
#include "core/room.h"
#include "core/yaml_inside.h"

#define TAG "tag:yaml.org,2002:"

/* A list or map that is open: its items are pending from `first` on. */
typedef struct frame {
    bal_yaml_node *node;
    size_t first;
} frame;

typedef struct composer {
    bal_yaml *to;
    yaml_parser_t parser;
    const char *what;
    frame frames[BAL_YAML_DEPTH];
    size_t depth;
    const bal_yaml_node **pending;
    size_t pending_count, pending_room;
    bal_map anchors; /* name to index */
    const bal_yaml_node **anchored;
    size_t anchored_count, anchored_room;
    size_t nodes;
} composer;

static void composer_done(composer *self)
{
    yaml_parser_delete(&self->parser);
    bal_map_done(&self->anchors);
    free(self->pending);
    free(self->anchored);
}

/* ---- nodes -------------------------------------------------------------- */

static int append(const bal_yaml_node ***array, size_t *count, size_t *room,
                  const bal_yaml_node *node, bal_error *err)
{
    const bal_yaml_node **grown =
        bal_room_for_one((void *)*array, *count, room, sizeof(void *));

    if (!grown)
        return bal_fail_memory(err, "yaml");
    *array = grown;
    grown[(*count)++] = node;
    return 0;
}

/* NULL: no memory. */
static bal_yaml_node *new_node(composer *self, const yaml_event_t *event)
{
    bal_yaml_node *node = bal_arena_alloc(&self->to->arena, sizeof(*node));

    if (!node)
        return NULL;
    node->line = (unsigned)event->start_mark.line + 1;
    node->column = (unsigned)event->start_mark.column + 1;
    node->nodes = 1;
    return node;
}

/* A value is complete: into what is open, or the document it is. */
static int add(composer *self, const bal_yaml_node *node, bal_error *err)
{
    if (self->depth)
        return append(&self->pending, &self->pending_count, &self->pending_room,
                      node, err);
    bal_yaml *to = self->to;
    return append(&to->documents, &to->count, &to->room, node, err);
}

/* ---- anchors and aliases ------------------------------------------------ */

static int anchor(composer *self, const yaml_char_t *name,
                  const bal_yaml_node *node, bal_error *err)
{
    size_t at = self->anchored_count;
    bool there = false;

    if (!name)
        return 0;
    size_t len = strlen((const char *)name);
    const char *copy =
        bal_arena_copy(&self->to->arena, (const char *)name, len);
    if (!copy)
        return bal_fail_memory(err, "yaml");
    int rc = bal_map_add(&self->anchors, copy, len, &at, &there, err);
    if (rc)
        return rc;
    if (there)
        return bal_yaml_fail(err, BAL_EINVAL, node,
                             "the anchor '%s' is there twice", copy);
    return append(&self->anchored, &self->anchored_count, &self->anchored_room,
                  node, err);
}

static int alias(composer *self, const yaml_event_t *event, bal_error *err)
{
    const char *name = (const char *)event->data.alias.anchor;
    size_t at = bal_map_find(&self->anchors, name, strlen(name));
    const bal_yaml_node here = {
        .line = (unsigned)event->start_mark.line + 1,
        .column = (unsigned)event->start_mark.column + 1,
    };

    if (at == BAL_NONE)
        return bal_yaml_fail(err, BAL_EINVAL, &here, "no anchor '%s'", name);
    const bal_yaml_node *node = self->anchored[at];
    for (size_t i = 0; i < self->depth; i++) {
        if (self->frames[i].node == node)
            return bal_yaml_fail(err, BAL_EINVAL, &here,
                                 "'%s' is an alias of what it stands in", name);
    }
    int rc = bal_yaml_count(&self->nodes, node->nodes, &here, err);
    return rc ? rc : add(self, node, err);
}

/* ---- scalars ------------------------------------------------------------ */

static const struct {
    const char *tag;
    bal_yaml_type type;
} tags[] = {
    { "!", BAL_YAML_MAP },         { TAG "str", BAL_YAML_TEXT },
    { TAG "null", BAL_YAML_NULL }, { TAG "bool", BAL_YAML_BOOL },
    { TAG "int", BAL_YAML_INT },   { TAG "float", BAL_YAML_FLOAT },
};

/* The type that a tag gives; BAL_YAML_MAP: none, the text tells. */
static int type_of(bal_yaml_type *out, const bal_yaml_node *node,
                   const char *tag, bool plain, bal_error *err)
{
    *out = plain ? BAL_YAML_MAP : BAL_YAML_TEXT;
    if (!tag)
        return 0;
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        *out = tags[i].type;
        if (!strcmp(tags[i].tag, tag))
            return 0;
    }
    return bal_yaml_fail(err, BAL_EINVAL, node, "the tag '%s' is not known",
                         tag);
}

static bool is_merge(const yaml_event_t *event)
{
    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           !event->data.scalar.tag && !event->data.scalar.anchor &&
           !strcmp((const char *)event->data.scalar.value, "<<");
}

static int scalar(composer *self, const yaml_event_t *event, bal_error *err)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    frame *top = self->depth ? &self->frames[self->depth - 1] : NULL;
    bal_yaml_type as = BAL_YAML_TEXT;
    bal_yaml_node *node = new_node(self, event);
    if (!node)
        return bal_fail_memory(err, "yaml");

    if (memchr(text, '\0', len))
        return bal_yaml_fail(err, BAL_EINVAL, node, "a text with a nul byte");
    node->text = bal_arena_copy(&self->to->arena, text, len);
    if (!node->text)
        return bal_fail_memory(err, "yaml");
    int rc = bal_yaml_count(&self->nodes, 1, node, err);
    if (!rc)
        rc = type_of(&as, node, (const char *)event->data.scalar.tag, plain,
                     err);
    if (!rc)
        rc = bal_yaml_resolve(node, as, err);
    if (!rc)
        rc = anchor(self, event->data.scalar.anchor, node, err);
    if (rc)
        return rc;
    if (top && top->node->type == BAL_YAML_MAP && is_merge(event) &&
        (self->pending_count - top->first) % 2 == 0)
        node->type = BAL_YAML_MERGE;
    return add(self, node, err);
}

/* ---- lists and maps ----------------------------------------------------- */

static int too_deep(const bal_yaml_node *node, bal_error *err)
{
    return bal_yaml_fail(err, BAL_EINVAL, node, "more than %d levels",
                         BAL_YAML_DEPTH);
}

static int open_frame(composer *self, const yaml_event_t *event,
                      bal_yaml_type type, const yaml_char_t *name,
                      const yaml_char_t *tag, bal_error *err)
{
    const char *own = type == BAL_YAML_MAP ? TAG "map" : TAG "seq";
    const char *told = (const char *)tag;
    bal_yaml_node *node = new_node(self, event);
    if (!node)
        return bal_fail_memory(err, "yaml");
    int rc = bal_yaml_count(&self->nodes, 1, node, err);
    if (rc)
        return rc;

    if (told && strcmp(told, own) != 0 && strcmp(told, "!") != 0)
        return bal_yaml_fail(err, BAL_EINVAL, node, "the tag '%s' is not known",
                             told);
    if (self->depth == BAL_YAML_DEPTH)
        return too_deep(node, err);
    node->type = type;
    node->levels = 1;
    self->frames[self->depth++] =
        (frame){ .node = node, .first = self->pending_count };
    return anchor(self, name, node, err);
}

static int close_list(composer *self, bal_yaml_node *node,
                      const bal_yaml_node *const *items, size_t count,
                      bal_error *err)
{
    const bal_yaml_node **kept =
        bal_arena_alloc(&self->to->arena, (count + 1) * sizeof(void *));

    if (!kept)
        return bal_fail_memory(err, "yaml");
    for (size_t i = 0; items && i < count; i++)
        kept[i] = items[i];
    node->items = kept;
    node->count = count;
    return 0;
}

static int close_frame(composer *self, bal_error *err)
{
    frame *top = &self->frames[--self->depth];
    bal_yaml_node *node = top->node;
    const bal_yaml_node *const *items =
        self->pending ? self->pending + top->first : NULL;
    size_t count = self->pending_count - top->first;
    int rc;

    if (node->type == BAL_YAML_LIST)
        rc = close_list(self, node, items, count, err);
    else
        rc = bal_yaml_members(node, &self->to->arena, &self->nodes, items,
                              count / 2, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < node->count; i++) {
        node->nodes += node->items[i]->nodes + (node->keys != NULL);
        node->levels = bal_max(node->levels, node->items[i]->levels + 1);
    }
    if (node->levels > BAL_YAML_DEPTH)
        return too_deep(node, err);
    self->pending_count = top->first;
    return add(self, node, err);
}

/* ---- events ------------------------------------------------------------- */

static int begin_document(composer *self)
{
    bal_map_done(&self->anchors);
    self->anchors = (bal_map){ 0 };
    self->anchored_count = 0;
    return 0;
}

static int take(composer *self, const yaml_event_t *event, bal_error *err)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return begin_document(self);
    case YAML_SCALAR_EVENT:
        return scalar(self, event, err);
    case YAML_ALIAS_EVENT:
        return alias(self, event, err);
    case YAML_SEQUENCE_START_EVENT:
        return open_frame(self, event, BAL_YAML_LIST,
                          event->data.sequence_start.anchor,
                          event->data.sequence_start.tag, err);
    case YAML_MAPPING_START_EVENT:
        return open_frame(self, event, BAL_YAML_MAP,
                          event->data.mapping_start.anchor,
                          event->data.mapping_start.tag, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_frame(self, err);
    default:
        return 0;
    }
}

static int bad_syntax(const yaml_parser_t *parser, bal_error *err)
{
    const bal_yaml_node at = {
        .line = (unsigned)parser->problem_mark.line + 1,
        .column = (unsigned)parser->problem_mark.column + 1,
    };
    const char *problem = parser->problem ? parser->problem : "no yaml";

    if (parser->error == YAML_MEMORY_ERROR)
        return bal_fail_memory(err, "yaml");
    if (parser->error == YAML_READER_ERROR)
        return bal_fail(err, BAL_EINVAL, "byte %zu: %s", parser->problem_offset,
                        problem);
    return bal_yaml_fail(err, BAL_EINVAL, &at, "%s", problem);
}

static int compose(composer *self, bal_error *err)
{
    bool more = true;

    while (more) {
        yaml_event_t event;

        if (!yaml_parser_parse(&self->parser, &event))
            return bad_syntax(&self->parser, err);
        int rc = take(self, &event, err);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (rc)
            return rc;
    }
    return 0;
}

int bal_yaml_parse(bal_yaml *out, const char *text, size_t len,
                   const char *what, bal_error *err)
{
    bal_yaml self = { .arena.ceiling = (size_t)256 << 20 };

    if (len > BAL_YAML_BYTES)
        return bal_fail(err, BAL_EINVAL, "%s: more than %zu bytes of yaml",
                        what, BAL_YAML_BYTES);
    composer *job = calloc(1, sizeof(*job));
    if (!job || !yaml_parser_initialize(&job->parser)) {
        free(job);
        return bal_fail_memory(err, "yaml");
    }
    job->to = &self;
    yaml_parser_set_encoding(&job->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&job->parser, (const unsigned char *)text,
                                 len);
    int rc = compose(job, err);
    composer_done(job);
    free(job);
    if (rc) {
        bal_yaml_done(&self);
        return bal_within(err, rc, "%s", what);
    }
    *out = self;
    return 0;
}

void bal_yaml_done(bal_yaml *self)
{
    bal_arena_done(&self->arena);
    free(self->documents);
    *self = (bal_yaml){ 0 };
}
