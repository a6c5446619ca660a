#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "serve/tokens.h"
static const char *const all[] = { "*" };
static const char *const acme[] = { "acme" };
const bal_scope bal_scope_open = { .read = all, .read_count = 1 };
const bal_scope bal_scope_none = { .number = 0 };
static const bal_scope reader = { .read = acme, .read_count = 1, .number = 1 };
static const bal_scope writer = {
    .read = acme, .read_count = 1, .write = acme, .write_count = 1, .number = 2
};
struct bal_tokens {
    int x;
};
int bal_tokens_load(bal_tokens **out, const char *path, bal_error *err)
{
    if (strstr(path, "bad"))
        return bal_fail(err, BAL_EINVAL, "'%s' is bad", path);
    *out = calloc(1, sizeof(**out));
    return *out ? 0 : bal_fail_memory(err, "t");
}
const bal_scope *bal_tokens_find(const bal_tokens *self, const char *header,
                                 int64_t now)
{
    (void)self;
    (void)now;
    if (header && !strcmp(header, "Bearer reader"))
        return &reader;
    return header && !strcmp(header, "Bearer writer") ? &writer
                                                      : &bal_scope_none;
}
static bool has(const char *const *names, size_t count, const char *t)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], "*") || !strcmp(names[i], t))
            return true;
    return false;
}
bool bal_scope_reads(const bal_scope *self, const char *t)
{
    return has(self->read, self->read_count, t);
}
bool bal_scope_writes(const bal_scope *self, const char *t)
{
    return has(self->write, self->write_count, t);
}
void bal_tokens_free(bal_tokens *self)
{
    free(self);
}
