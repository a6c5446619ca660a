#include "blocks/dirs.h"

#include <string.h>

static int add_dir(bal_dirs *self, const char *name, size_t len, bal_error *err)
{
    bal_bytes dir = { name, len };
    size_t value = 0;
    bool there = false;
    int rc = bal_map_add(&self->seen, name, len, &value, &there, err);
    if (rc || there)
        return rc;
    return bal_buf_append(&self->list, &dir, sizeof(dir), err);
}

int bal_dirs_add(bal_dirs *self, const char *name, bal_error *err)
{
    int rc = add_dir(self, name, 0, err);
    const char *slash = strchr(name, '/');

    for (; slash && !rc; slash = strchr(slash + 1, '/'))
        rc = add_dir(self, name, (size_t)(slash - name), err);
    return rc;
}

size_t bal_dirs_count(const bal_dirs *self)
{
    return self->list.len / sizeof(bal_bytes);
}

int bal_dirs_path(const bal_dirs *self, size_t i, const file_backend *backend,
                  bal_buf *out, bal_error *err)
{
    const bal_bytes *dir = (const bal_bytes *)(void *)self->list.data + i;

    bal_buf_clear(out);
    return bal_buf_format(out, err, "%s/%.*s", backend->dir, (int)dir->len,
                          (const char *)dir->data);
}

void bal_dirs_done(bal_dirs *self)
{
    bal_map_done(&self->seen);
    bal_buf_done(&self->list);
}
