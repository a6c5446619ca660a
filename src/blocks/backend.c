/* The schemes, and the doors that every call goes through: here a name is
 * checked once for all backends. */
#include "blocks/backend.h"

#include <string.h>

#include "blocks/file.h"
#include "blocks/s3.h"
#include "core/error.h"
#include "core/str.h"

static const bal_backend_ops *const schemes[] = {
    &bal_backend_file,
    &bal_backend_s3,
};

enum { SCHEMES = sizeof(schemes) / sizeof(schemes[0]), SCHEME_SHOWN = 40 };

static const bal_backend_ops *find_scheme(const char *name, size_t len)
{
    for (size_t i = 0; i < SCHEMES; i++) {
        const char *scheme = schemes[i]->scheme;
        if (strlen(scheme) == len && !memcmp(scheme, name, len))
            return schemes[i];
    }
    return NULL;
}

/* What is behind the scheme may have a key in it. */
static int no_scheme(const char *url, bal_error *err)
{
    BAL_LOCAL(bal_buf) known = { 0 };
    size_t len = strcspn(url, ":/@");

    for (size_t i = 0; i < SCHEMES; i++) {
        int rc = bal_buf_format(&known, err, "%s%s:", i ? ", " : "",
                                schemes[i]->scheme);
        if (rc)
            return rc;
    }
    return bal_fail(err, BAL_EINVAL, "no backend for '%.*s' (there is %s)",
                    (int)(len < SCHEME_SHOWN ? len : SCHEME_SHOWN), url,
                    bal_buf_string(&known));
}

int bal_backend_open(bal_backend **out, const char *url, const char *root,
                     bal_error *err)
{
    BAL_OWN(bal_backend) self = NULL;
    size_t len = strcspn(url, ":");
    const bal_backend_ops *ops = find_scheme(url, len);

    if (!ops || !url[len])
        return no_scheme(url, err);
    int rc = ops->open(&self, url + len + 1, root, err);
    if (rc)
        return rc;
    self->url = bal_str_copy(url);
    if (!self->url)
        return bal_fail_memory(err, "a backend");
    *out = BAL_TAKE(self);
    return 0;
}

void bal_backend_free(bal_backend *self)
{
    if (!self)
        return;
    bal_str_free(self->url);
    self->ops->free(self);
}

/* Parts divided by single slashes, none of which starts with a dot: so it
 * cannot climb, and cannot meet what a backend keeps for itself. */
static bool name_valid(const char *name)
{
    bool fresh = true;

    for (const char *at = name; *at; at++) {
        if (fresh && (*at == '/' || *at == '.'))
            return false;
        fresh = *at == '/';
    }
    return !fresh;
}

static int check_name(const char *name, bal_error *err)
{
    if (name_valid(name))
        return 0;
    return bal_fail(err, BAL_EINVAL, "'%s' is not a backend's name", name);
}

int bal_backend_claim(bal_backend *self, const char *store, unsigned flags,
                      bal_error *err)
{
    return self->ops->claim(self, store, flags, err);
}

int bal_backend_get(bal_backend *self, const char *name, uint64_t offset,
                    uint64_t len, bal_buf *to, bal_error *err)
{
    int rc = check_name(name, err);
    if (rc)
        return rc;
    return self->ops->get(self, name, offset, len, to, err);
}

int bal_backend_get_near(bal_backend *self, const char *name, bal_buf *to,
                         bool *copy, bal_error *err)
{
    *copy = false;
    if (!self->ops->get_near)
        return bal_backend_get(self, name, 0, 0, to, err);
    int rc = check_name(name, err);
    if (rc)
        return rc;
    return self->ops->get_near(self, name, to, copy, err);
}

void bal_backend_drop_near(bal_backend *self, const char *name)
{
    if (self->ops->drop_near)
        self->ops->drop_near(self, name);
}

int bal_backend_stage(bal_backend *self, bal_staged *out, const char *name,
                      const bal_bytes *parts, size_t count, bal_error *err)
{
    int rc = check_name(name, err);
    if (rc)
        return rc;
    return self->ops->stage(self, out, name, parts, count, err);
}

int bal_backend_settle(bal_backend *self, bal_staged *staged, size_t count,
                       bal_work *work, bal_error *err)
{
    if (!count)
        return 0;
    return self->ops->settle(self, staged, count, work, err);
}

void bal_backend_discard(bal_backend *self, bal_staged *staged)
{
    if (staged->name)
        self->ops->discard(self, staged);
}

int bal_backend_size(bal_backend *self, const char *name, uint64_t *size,
                     bal_error *err)
{
    int rc = check_name(name, err);
    if (rc)
        return rc;
    return self->ops->size(self, name, size, err);
}

int bal_backend_may(const bal_backend *self, bal_error *err)
{
    return self->may ? self->may(self->may_ctx, err) : 0;
}

int bal_backend_remove(bal_backend *self, const char *const *names,
                       size_t count, uint64_t *freed, bal_error *err)
{
    *freed = 0;
    for (size_t i = 0; i < count; i++) {
        int rc = check_name(names[i], err);
        if (rc)
            return rc;
    }
    return count ? self->ops->remove(self, names, count, freed, err) : 0;
}

int bal_backend_list(bal_backend *self, const char *prefix, bal_listed_fn *fn,
                     void *ctx, bal_error *err)
{
    size_t len = strlen(prefix);
    char name[256];

    if (len && (prefix[len - 1] != '/' || len >= sizeof(name)))
        return bal_fail(err, BAL_EINVAL, "'%s' does not end with '/'", prefix);
    if (len) {
        memcpy(name, prefix, len - 1);
        name[len - 1] = '\0';
        int rc = check_name(name, err);
        if (rc)
            return rc;
    }
    return self->ops->list(self, prefix, fn, ctx, err);
}

int bal_backend_sweep(bal_backend *self, uint64_t *bytes, unsigned flags,
                      bal_error *err)
{
    return self->ops->sweep(self, bytes, flags, err);
}
