/* RFC 8785, for what ids are taken of: no white space, members sorted by their
 * names' UTF-16 code units, the escapes of json_write.c. Integers are written
 * in full; reals are refused, so that no id hangs on how one prints. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/json.h"

enum { LEVELS = 64 };

typedef struct member {
    const char *name;
    size_t len;
    const json_t *value;
} member;

/* An array or object that is being written. */
typedef struct level {
    const json_t *value;
    const member *members; /* sorted; of an object only */
    size_t count;
    size_t at;
} level;

typedef struct writer {
    bal_buf *to;
    bal_arena arena; /* the member lists */
    level levels[LEVELS];
    size_t depth;
} writer;

static void writer_done(writer *self)
{
    bal_arena_done(&self->arena);
}

/* UTF-8 sorts as code points do. UTF-16 differs in one thing: what is above
 * U+FFFF is written with surrogates, which sort before U+E000 to U+FFFF. Where
 * two names part, such a character starts with 0xf0 or more, and one of the
 * others with 0xee or 0xef. */
static int compare_members(const void *a, const void *b)
{
    const member *one = a;
    const member *two = b;
    size_t shorter = one->len < two->len ? one->len : two->len;

    for (size_t i = 0; i < shorter; i++) {
        uint8_t x = (uint8_t)one->name[i];
        uint8_t y = (uint8_t)two->name[i];
        if (x == y)
            continue;
        if (x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0))
            return x >= 0xf0 ? -1 : 1;
        return x < y ? -1 : 1;
    }
    return (one->len > two->len) - (one->len < two->len);
}

static int sort_members(writer *self, level *top, bal_error *err)
{
    json_t *object = (json_t *)(uintptr_t)top->value;
    member *members =
        bal_arena_alloc(&self->arena, top->count * sizeof(*members));
    size_t i = 0;

    if (!members)
        return bal_fail_memory(err, "sorting json");
    for (void *at = json_object_iter(object); at;
         at = json_object_iter_next(object, at)) {
        members[i].name = json_object_iter_key(at);
        members[i].len = json_object_iter_key_len(at);
        members[i++].value = json_object_iter_value(at);
    }
    if (i)
        qsort(members, i, sizeof(*members), compare_members);
    top->members = members;
    return 0;
}

static int open_level(writer *self, const json_t *value, bal_error *err)
{
    bool object = json_is_object(value);

    if (self->depth == LEVELS)
        return bal_fail(err, BAL_EINVAL, "json of more than %d levels", LEVELS);
    level *top = &self->levels[self->depth++];
    *top = (level){ .value = value };
    top->count = object ? json_object_size(value) : json_array_size(value);
    int rc = bal_buf_text(self->to, object ? "{" : "[", err);
    if (rc || !object)
        return rc;
    return sort_members(self, top, err);
}

static int write_value(writer *self, const json_t *value, bal_error *err)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return open_level(self, value, err);
    case JSON_STRING:
        return bal_json_quote(self->to, json_string_value(value),
                              json_string_length(value), err);
    case JSON_INTEGER:
        return bal_buf_format(self->to, err, "%" PRId64,
                              (int64_t)json_integer_value(value));
    case JSON_TRUE:
        return bal_buf_text(self->to, "true", err);
    case JSON_FALSE:
        return bal_buf_text(self->to, "false", err);
    case JSON_NULL:
        return bal_buf_text(self->to, "null", err);
    case JSON_REAL:
        break;
    }
    return bal_fail(err, BAL_EINVAL,
                    "a real number in what is hashed; write it as a string");
}

/* The next element or member of the innermost level, or its end. */
static int write_next(writer *self, bal_error *err)
{
    level *top = &self->levels[self->depth - 1];
    bool object = json_is_object(top->value);
    const json_t *value;
    int rc = 0;

    if (top->at == top->count) {
        self->depth--;
        return bal_buf_text(self->to, object ? "}" : "]", err);
    }
    if (top->at)
        rc = bal_buf_text(self->to, ",", err);
    if (rc)
        return rc;
    if (object) {
        const member *next = &top->members[top->at];
        rc = bal_json_quote(self->to, next->name, next->len, err);
        if (!rc)
            rc = bal_buf_text(self->to, ":", err);
        value = next->value;
    } else {
        value = json_array_get(top->value, top->at);
    }
    top->at++;
    return rc ? rc : write_value(self, value, err);
}

int bal_json_canonical(bal_buf *to, const json_t *value, bal_error *err)
{
    BAL_LOCAL(writer) self = { .to = to };
    size_t before = to->len;
    int rc = write_value(&self, value, err);

    while (!rc && self.depth)
        rc = write_next(&self, err);
    if (rc && to->data) {
        to->len = before;
        to->data[before] = '\0';
    }
    return rc;
}
