/* Header, then tensor after tensor, in pieces. */
#include "probe/feed.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "model/path.h"
#include "model/safetensors.h"

enum { PIECE = 1 << 20 };

void bal_feed_done(bal_feed *self)
{
    free(self->entries);
    bal_buf_done(&self->head);
}

int bal_feed_init(bal_feed *self, bal_model *model, bal_error *err)
{
    size_t count = bal_model_count(model);
    const bal_tensor **tensors = calloc(count + 1, sizeof(void *));
    BAL_LOCAL(bal_buf) header = { .ceiling = BAL_HEADER_MAX + 8 };
    uint8_t length[8];

    self->model = model;
    self->entries = calloc(count + 1, sizeof(*self->entries));
    if (!tensors || !self->entries) {
        free(tensors);
        return bal_fail_memory(err, "a runner");
    }
    for (size_t i = 0; i < count; i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        if (entry->part != BAL_PART_TENSOR)
            continue;
        tensors[self->count] = entry;
        self->entries[self->count++] = i;
    }
    int rc = bal_st_write(&header, tensors, self->count, NULL, 0, err);
    free(tensors);
    if (rc)
        return rc;
    bal_put64(length, header.len);
    rc = bal_buf_append(&self->head, length, sizeof(length), err);
    return rc ? rc : bal_buf_append(&self->head, header.data, header.len, err);
}

void bal_feed_rewind(bal_feed *self)
{
    self->begun = false;
    self->at = 0;
    self->offset = 0;
}

int bal_feed_fill(void *ctx, bal_buf *to, bal_error *err)
{
    bal_feed *self = ctx;

    if (!self->begun) {
        self->begun = true;
        return bal_buf_append(to, self->head.data, self->head.len, err);
    }
    while (self->at < self->count) {
        size_t i = self->entries[self->at];
        uint64_t size = bal_model_at(self->model, i)->size;
        size_t len = (size_t)bal_min(PIECE, size - self->offset);
        if (!len) {
            self->at++;
            self->offset = 0;
            continue;
        }
        int rc = bal_buf_reserve(to, len, err);
        if (!rc)
            rc = bal_model_read(self->model, i, self->offset,
                                to->data + to->len, len, err);
        if (rc)
            return rc;
        to->len += len;
        self->offset += len;
        return 0;
    }
    return 0;
}

/* ---- side files --------------------------------------------------------- */

static int put_side(const char *folder, bal_model *model, size_t i,
                    bal_error *err)
{
    const bal_tensor *entry = bal_model_at(model, i);
    BAL_LOCAL(bal_buf) text = { 0 };

    if (!bal_side_name_valid(entry->name))
        return bal_fail(err, BAL_ECORRUPT,
                        "'%.200s' is no name for a side file", entry->name);
    int rc = bal_buf_reserve(&text, (size_t)entry->size, err);
    if (!rc)
        rc = bal_model_read(model, i, 0, text.data, (size_t)entry->size, err);
    if (rc)
        return rc;
    char *path = bal_path_join(folder, entry->name);
    if (!path)
        return bal_fail_memory(err, "a runner");
    rc = bal_file_replace(path, text.data, (size_t)entry->size, err);
    bal_str_free(path);
    return rc;
}

int bal_feed_sides(const char *folder, bal_model *model, bal_error *err)
{
    int rc = bal_make_dirs(folder, err);

    for (size_t i = 0; i < bal_model_count(model) && !rc; i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        if (entry->part == BAL_PART_FILE && entry->form == BAL_FORM_WHOLE &&
            !strchr(entry->name, '/'))
            rc = put_side(folder, model, i, err);
    }
    return rc;
}
