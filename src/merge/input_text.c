/* "acme:support@0.6,density=0.3": an input as people write it. */
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/str.h"
#include "merge/values.h"

/* Where the weight's '@' is, NULL: none. "main@{1}" has none, "main@{1}@0.5"
 * has one. */
static const char *weight_at(const char *text, size_t len)
{
    for (size_t i = len; i; i--) {
        if (text[i - 1] != '@')
            continue;
        return i < len && text[i] == '{' ? NULL : text + i - 1;
    }
    return NULL;
}

static int put(json_t *to, const char *name, const char *value, bal_error *err)
{
    if (json_object_get(to, name))
        return bal_fail(err, BAL_EINVAL, "'%s' is there twice", name);
    if (!bal_utf8_valid(value, strlen(value)))
        return bal_fail(err, BAL_EINVAL, "'%s' is not UTF-8", name);
    if (json_object_set_new(to, name, json_string(value)))
        return bal_fail_memory(err, "an input");
    return 0;
}

/* The bytes of "name=value" in "name=value,name=value": values may have commas
 * of their own, as gradients do. */
static size_t pair_len(const char *text)
{
    size_t len = strcspn(text, ",");

    while (text[len]) {
        size_t more = strcspn(text + len + 1, ",");
        if (memchr(text + len + 1, '=', more))
            break;
        len += more + 1;
    }
    return len;
}

/* ",name=value,…", behind the spec. */
static int parse_parameters(json_t *to, bal_arena *arena, const char *at,
                            bal_error *err)
{
    while (*at == ',') {
        at++;
        size_t len = pair_len(at);
        char *name = bal_arena_copy(arena, at, len);
        if (!name)
            return bal_fail_memory(err, "an input");
        char *equals = strchr(name, '=');
        if (!equals || equals == name)
            return bal_fail(err, BAL_EINVAL, "'%s' is not name=value", name);
        *equals = '\0';
        int rc = put(to, name, equals + 1, err);
        if (rc)
            return rc;
        at += len;
    }
    return 0;
}

static int parse_weight(json_t *to, bal_arena *arena, const char *text,
                        size_t len, bal_error *err)
{
    const char *weight = bal_arena_copy(arena, text, len);

    return weight ? put(to, BAL_WEIGHT, weight, err)
                  : bal_fail_memory(err, "an input");
}

static int parse_spec(bal_input_text *out, bal_arena *arena, const char *text,
                      size_t len, bal_error *err)
{
    const char *colon = memchr(text, ':', len);
    size_t head = colon ? (size_t)(colon - text) : 0;
    const char *spec = colon ? colon + 1 : text;

    if (colon) {
        out->tenant = bal_arena_copy(arena, text, head);
        if (!out->tenant)
            return bal_fail_memory(err, "an input");
        if (!bal_name_valid(out->tenant))
            return bal_fail(err, BAL_EINVAL, "'%s' is not a tenant's name",
                            out->tenant);
        head++;
    }
    if (head == len)
        return bal_fail(err, BAL_EINVAL, "no commit is named");
    out->spec = bal_arena_copy(arena, spec, len - head);
    return out->spec ? 0 : bal_fail_memory(err, "an input");
}

static int parse(bal_input_text *out, bal_arena *arena, const char *text,
                 bal_error *err)
{
    size_t len = strcspn(text, ",");
    const char *at = weight_at(text, len);
    size_t spec = at ? (size_t)(at - text) : len;

    /* A weight of "0,0.5,1" goes on behind the comma. */
    if (at)
        len = spec + 1 + pair_len(at + 1);
    int rc = parse_spec(out, arena, text, spec, err);
    if (!rc && at)
        rc = parse_weight(out->parameters, arena, at + 1, len - spec - 1, err);
    return rc ? rc : parse_parameters(out->parameters, arena, text + len, err);
}

int bal_input_parse(bal_input_text *out, bal_arena *arena, const char *text,
                    bal_error *err)
{
    BAL_OWN(json_t) parameters = json_object();
    bal_input_text self = { .parameters = parameters };

    if (!parameters)
        return bal_fail_memory(err, "an input");
    int rc = parse(&self, arena, text, err);
    if (rc)
        return bal_within(err, rc, "input '%s'", text);
    *out = self;
    out->parameters = BAL_TAKE(parameters);
    return 0;
}
