/* The set while it is made. Each probe is checked and written as JSON at once,
 * so that what is too much is told with the line where it became too much. */
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/room.h"
#include "core/sha256.h"
#include "core/str.h"
#include "probe/probes_inside.h"
#include "probe/runner.h"

static const char blanks[] = " \t\r\n";

enum { DEFAULT_ID = 12 };

int bal_maker_init(bal_maker *self, const char *unit, bal_error *err)
{
    BAL_OWN(bal_probes) to = calloc(1, sizeof(*to));

    if (!to)
        return bal_fail_memory(err, "probes");
    atomic_init(&to->refs, 1);
    to->json.ceiling = BAL_PROBES_TEXT;
    int rc = bal_buf_text(&to->json, "{\"probes\":[", err);
    if (rc)
        return rc;
    *self = (bal_maker){ .to = BAL_TAKE(to), .unit = unit };
    return 0;
}

void bal_maker_done(bal_maker *self)
{
    bal_probes_free(self->to);
    bal_map_done(&self->unused);
    free(self->origins);
    *self = (bal_maker){ 0 };
}

/* ---- texts -------------------------------------------------------------- */

int bal_maker_copy(bal_maker *self, const char **out, const char *text,
                   size_t len, bal_error *err)
{
    const char *copy = bal_arena_copy(&self->to->arena, text, len);

    if (!copy)
        return bal_fail_memory(err, "probes");
    *out = copy;
    return 0;
}

int bal_maker_trim(bal_maker *self, const char **out, const char *text,
                   bal_error *err)
{
    const char *start = text + strspn(text, blanks);
    size_t len = strlen(start);

    while (len && strchr(blanks, start[len - 1]))
        len--;
    return bal_maker_copy(self, out, start, len, err);
}

int bal_maker_scalar(bal_maker *self, const char **out, const json_t *value,
                     bal_error *err)
{
    char text[32] = "";

    *out = NULL;
    switch (json_typeof(value)) {
    case JSON_STRING:
        return bal_maker_copy(self, out, json_string_value(value),
                              json_string_length(value), err);
    case JSON_INTEGER:
        snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT,
                 json_integer_value(value));
        break;
    case JSON_REAL:
        bal_f64_text(text, json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = json_is_true(value) ? "true" : "false";
        return 0;
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        return 0;
    }
    return bal_maker_copy(self, out, text, strlen(text), err);
}

int bal_maker_list(bal_maker *self, const char ***out, size_t count,
                   const char *key, bal_error *err)
{
    if (count > BAL_PROBE_LIST)
        return bal_fail(err, BAL_EINVAL, "more than %zu texts in '%s'",
                        BAL_PROBE_LIST, key);
    const char **list =
        bal_arena_alloc(&self->to->arena, count * sizeof(*list));
    if (!list)
        return bal_fail_memory(err, "probes");
    *out = list;
    return 0;
}

int bal_maker_texts(bal_maker *self, const char *const **out, size_t *count,
                    const json_t *value, const char *key, bal_error *err)
{
    size_t many = json_is_string(value) ? 1 : json_array_size(value);
    const char **list = NULL;

    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(value) && !json_is_array(value))
        return bal_fail(err, BAL_EINVAL, "'%s' is no text and no list of texts",
                        key);
    int rc = bal_maker_list(self, &list, many, key, err);
    for (size_t i = 0; i < many && !rc; i++) {
        const json_t *at =
            json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_string(at))
            return bal_fail(err, BAL_EINVAL,
                            "'%s' has something in it that is no text", key);
        if (!json_string_length(at))
            return bal_fail(err, BAL_EINVAL, "an empty text in '%s'", key);
        rc = bal_maker_copy(self, &list[i], json_string_value(at),
                            json_string_length(at), err);
    }
    if (rc)
        return rc;
    *out = list;
    *count = many;
    return 0;
}

/* ---- one probe ---------------------------------------------------------- */

/* What is asked, as one text. */
static const char *asked(const bal_probe *probe)
{
    return probe->prompt ? probe->prompt : probe->messages;
}

static int check_limits(const bal_maker *self, const bal_probe *probe,
                        bal_error *err)
{
    size_t len = strlen(asked(probe));

    if (!len)
        return bal_fail(err, BAL_EINVAL, "an empty prompt");
    if (len > BAL_PROBE_PROMPT)
        return bal_fail(err, BAL_EINVAL,
                        "a prompt of %zu bytes; %zu are the most", len,
                        BAL_PROBE_PROMPT);
    if (probe->id && !probe->id[0])
        return bal_fail(err, BAL_EINVAL, "an empty id");
    if (probe->id && strlen(probe->id) > BAL_PROBE_ID)
        return bal_fail(err, BAL_EINVAL, "an id of more than %zu bytes",
                        BAL_PROBE_ID);
    if (self->to->count == BAL_PROBES_MAX)
        return bal_fail(err, BAL_EINVAL, "more than %zu probes",
                        BAL_PROBES_MAX);
    return 0;
}

static int default_id(bal_maker *self, bal_probe *probe, bal_error *err)
{
    const bal_bytes text = { asked(probe), strlen(asked(probe)) };
    bal_sha256 digest;
    char hex[65];
    int rc = bal_sha256_of(&digest, &text, 1, err);

    if (rc)
        return rc;
    bal_sha256_hex(hex, &digest);
    return bal_maker_copy(self, &probe->id, hex, DEFAULT_ID, err);
}

static bool same_question(const bal_probe *a, const bal_probe *b)
{
    return !a->prompt == !b->prompt && !strcmp(asked(a), asked(b));
}

static int claim_id(bal_maker *self, const bal_probe *probe, bool named,
                    bal_error *err)
{
    size_t at = self->to->count;
    bool there = false;
    int rc = bal_map_add(&self->to->ids, probe->id, strlen(probe->id), &at,
                         &there, err);

    if (rc || !there)
        return rc;
    const bal_probe_origin *first = &self->origins[at];
    if (!named && !first->named && same_question(probe, &self->to->items[at]))
        return bal_fail(err, BAL_EINVAL, "asks the same as %s %zu", self->unit,
                        first->place);
    return bal_fail(err, BAL_EINVAL, "the id '%s' is that of %s %zu, too",
                    probe->id, self->unit, first->place);
}

static int keep(bal_maker *self, const bal_probe *probe, bool named,
                bal_error *err)
{
    bal_probes *to = self->to;
    bal_probe *items =
        bal_room_for_one(to->items, to->count, &to->room, sizeof(*to->items));

    if (!items)
        return bal_fail_memory(err, "probes");
    to->items = items;
    bal_probe_origin *origins = bal_room_for_one(
        self->origins, to->count, &self->origin_room, sizeof(*self->origins));
    if (!origins)
        return bal_fail_memory(err, "probes");
    self->origins = origins;
    origins[to->count] = (bal_probe_origin){ self->place, named };
    items[to->count++] = *probe;
    return 0;
}

static void write_texts(bal_json *json, const char *key,
                        const char *const *texts, size_t count)
{
    if (!count)
        return;
    bal_json_key(json, key);
    bal_json_array(json);
    for (size_t i = 0; i < count; i++)
        bal_json_string(json, texts[i]);
    bal_json_close(json);
}

/* Members in the order of RFC 8785. */
static int write_probe(bal_buf *to, const bal_probe *probe, bal_error *err)
{
    bal_json json;

    bal_json_begin(&json, to, 0);
    bal_json_object(&json);
    write_texts(&json, "choices", probe->choices, probe->choice_count);
    bal_json_key(&json, "id");
    bal_json_string(&json, probe->id);
    if (probe->max_tokens) {
        bal_json_key(&json, "max_tokens");
        bal_json_u64(&json, probe->max_tokens);
    }
    bal_json_key(&json, probe->prompt ? "prompt" : "messages");
    if (probe->prompt)
        bal_json_string(&json, probe->prompt);
    else
        bal_json_raw(&json, probe->messages);
    write_texts(&json, "references", probe->references, probe->reference_count);
    write_texts(&json, "stop", probe->stop, probe->stop_count);
    return bal_json_end(&json, err);
}

int bal_maker_add(bal_maker *self, const bal_probe *probe, bal_error *err)
{
    bal_probe kept = *probe;
    bal_buf *json = &self->to->json;
    int rc = check_limits(self, &kept, err);

    if (!rc && !kept.id)
        rc = default_id(self, &kept, err);
    if (!rc)
        rc = claim_id(self, &kept, probe->id != NULL, err);
    if (!rc && self->to->count)
        rc = bal_buf_text(json, ",", err);
    size_t before = json->len;
    if (!rc)
        rc = write_probe(json, &kept, err);
    if (rc)
        return rc;
    if (json->len - before > BAL_PROBE_TEXT)
        return bal_fail(err, BAL_EINVAL, "a probe of more than %zu bytes",
                        BAL_PROBE_TEXT);
    return keep(self, &kept, probe->id != NULL, err);
}

/* ---- what was not used -------------------------------------------------- */

int bal_maker_unused(bal_maker *self, const char *within, const char *name,
                     bal_error *err)
{
    BAL_LOCAL(bal_buf) line = { 0 };
    bal_buf *to = &self->to->unused;
    size_t at = 0;
    bool there = false;
    int rc = 0;

    if (within)
        rc = bal_buf_format(&line, err, "%s:", within);
    if (!rc)
        rc = bal_printable(&line, name, strlen(name), false, err);
    if (rc)
        return rc;
    if (to->len + line.len >= BAL_PROBES_UNUSED ||
        bal_map_find(&self->unused, bal_buf_string(&line), line.len) !=
            BAL_NONE)
        return 0;
    const char *copy = bal_arena_copy(&self->to->arena, line.data, line.len);
    if (!copy)
        return bal_fail_memory(err, "probes");
    rc = bal_map_add(&self->unused, copy, line.len, &at, &there, err);
    if (!rc && to->len)
        rc = bal_buf_text(to, "\n", err);
    return rc ? rc : bal_buf_append(to, copy, line.len, err);
}

int bal_maker_end(bal_maker *self, bal_probes **out, bal_error *err)
{
    bal_probes *to = self->to;

    if (!to->count)
        return bal_fail(err, BAL_EINVAL, "no probes in it");
    int rc = bal_buf_text(&to->json, "],\"schema\":\"ballast/probes/1\"}", err);
    if (rc)
        return rc;
    bal_hash_of(&to->id, to->json.data, to->json.len);
    *out = BAL_TAKE(self->to);
    return 0;
}
