/* A backend by argv: calls as rows of JSON, what became of them as they end.
 *
 *   ask-backend URL CALLS
 *
 * CALLS: [["claim", store, flags] | ["put", name, text, flags] |
 * ["get", name, offset, len] | ["size", name] | ["list", prefix] |
 * ["remove", [name, …]] | ["sweep", flags]], put's flag 1: what is there stays.
 * A number for put's text is so many 'x'. Each is a line; a failure {"error",
 * "text", "hint"} and in the end status 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks/backend.h"
#include "core/error.h"
#include "core/json.h"

typedef struct call {
    bal_backend *backend;
    json_t *words;
    json_t *row; /* what is told */
} call;

static const char *text_at(const call *self, size_t i)
{
    const char *text = json_string_value(json_array_get(self->words, i));

    return text ? text : "";
}

static uint64_t number_at(const call *self, size_t i)
{
    return (uint64_t)json_integer_value(json_array_get(self->words, i));
}

static int tell_number(call *self, const char *name, uint64_t value)
{
    json_object_set_new(self->row, name, json_integer((json_int_t)value));
    return 0;
}

static int do_claim(call *self, bal_error *err)
{
    return bal_backend_claim(self->backend, text_at(self, 1),
                             (unsigned)number_at(self, 2), err);
}

static int do_put(call *self, bal_error *err)
{
    bal_staged staged = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };
    uint64_t len = number_at(self, 2);
    int rc = bal_buf_reserve(&text, len, err);
    if (rc)
        return rc;
    memset(text.data, 'x', len);
    text.len = len;
    rc = bal_buf_text(&text, text_at(self, 2), err);
    const bal_bytes part = { text.data, text.len };
    if (!rc)
        rc = bal_backend_stage(self->backend, &staged, text_at(self, 1), &part,
                               1, err);
    if (rc)
        return rc;
    staged.keeps = number_at(self, 3);
    rc = bal_backend_settle(self->backend, &staged, 1, NULL, err);
    json_object_set_new(self->row, "kept", json_boolean(staged.kept));
    bal_backend_discard(self->backend, &staged);
    return rc;
}

static int do_get(call *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) to = { 0 };
    int rc = bal_backend_get(self->backend, text_at(self, 1),
                             number_at(self, 2), number_at(self, 3), &to, err);

    if (!rc)
        json_object_set_new(self->row, "text",
                            json_stringn(bal_buf_string(&to), to.len));
    return rc;
}

static int do_size(call *self, bal_error *err)
{
    uint64_t size = 0;
    int rc = bal_backend_size(self->backend, text_at(self, 1), &size, err);

    return rc ? rc : tell_number(self, "size", size);
}

static int add_name(void *ctx, const char *name, uint64_t size, bal_error *err)
{
    json_t *row = json_pack("[s,I]", name, (json_int_t)size);

    return json_array_append_new(ctx, row) ? bal_fail_memory(err, "a list") : 0;
}

static int do_list(call *self, bal_error *err)
{
    json_t *names = json_array();
    int rc =
        bal_backend_list(self->backend, text_at(self, 1), add_name, names, err);

    json_object_set_new(self->row, "names", names);
    return rc;
}

enum { NAMES = 4096 };

static int do_remove(call *self, bal_error *err)
{
    const json_t *list = json_array_get(self->words, 1);
    const char *names[NAMES];
    size_t count = 0;
    uint64_t freed = 0;

    for (; count < json_array_size(list) && count < NAMES; count++)
        names[count] = json_string_value(json_array_get(list, count));
    int rc = bal_backend_remove(self->backend, names, count, &freed, err);
    tell_number(self, "freed", freed);
    return rc;
}

static int do_sweep(call *self, bal_error *err)
{
    uint64_t bytes = 0;
    int rc = bal_backend_sweep(self->backend, &bytes,
                               (unsigned)number_at(self, 1), err);

    return rc ? rc : tell_number(self, "bytes", bytes);
}

static const struct {
    const char *verb;
    int (*run)(call *self, bal_error *err);
} verbs[] = {
    { "claim", do_claim }, { "put", do_put },   { "get", do_get },
    { "size", do_size },   { "list", do_list }, { "remove", do_remove },
    { "sweep", do_sweep },
};

static int run(call *self, bal_error *err)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (!strcmp(text_at(self, 0), verbs[i].verb))
            return verbs[i].run(self, err);
    }
    return bal_fail(err, BAL_EINVAL, "no such call");
}

/* Prints the row; true if all is well. */
static bool show(json_t *row, int rc, const bal_error *err)
{
    if (rc) {
        json_object_clear(row);
        json_object_set_new(row, "error", json_string(bal_code_find(rc)->word));
        json_object_set_new(row, "text", json_string(err->text));
        json_object_set_new(row, "hint", json_string(err->hint));
    }
    json_dumpf(row, stdout, JSON_COMPACT);
    puts("");
    fflush(stdout);
    return !rc;
}

int main(int argc, char **argv)
{
    BAL_OWN(bal_backend) backend = NULL;
    BAL_OWN(json_t) calls = NULL;
    bal_error err = { 0 };
    bool good = true;

    if (argc != 3 ||
        bal_json_parse(&calls, argv[2], strlen(argv[2]), "calls", &err))
        return 2;
    int rc = bal_backend_open(&backend, argv[1], "/nonexistent", &err);
    for (size_t i = 0; i < json_array_size(calls); i++) {
        BAL_OWN(json_t) row = json_object();
        call one = { backend, json_array_get(calls, i), row };
        bal_error why = err;
        good = show(row, rc ? rc : run(&one, &why), &why) && good;
    }
    return !good;
}
