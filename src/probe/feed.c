/* A stream in pieces. */
#include "probe/feed.h"

#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "model/path.h"

enum { PIECE = 1 << 20 };

void bal_feed_done(bal_feed *self)
{
    bal_stream_free(self->stream);
}

int bal_feed_init(bal_feed *self, bal_model *model, bal_error *err)
{
    return bal_stream_open(&self->stream, model, err);
}

void bal_feed_rewind(bal_feed *self)
{
    self->at = 0;
}

int bal_feed_fill(void *ctx, bal_buf *to, bal_error *err)
{
    bal_feed *self = ctx;
    uint64_t left = bal_stream_size(self->stream) - self->at;
    size_t len = (size_t)bal_min(PIECE, left);

    if (!len)
        return 0;
    int rc = bal_buf_reserve(to, len, err);
    if (!rc)
        rc = bal_stream_read(self->stream, self->at, to->data + to->len, len,
                             err);
    if (rc)
        return rc;
    to->len += len;
    self->at += len;
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
