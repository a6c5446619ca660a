/* Opening a .wdelta file: its first bytes, its header, its records' heads. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "wdelta/file.h"

enum { HEADER_MAX = 100000000 };

static const uint32_t newest = 2;

static int read_start(bal_wdelta *self, uint32_t *header, bal_error *err)
{
    uint8_t head[BAL_WD_HEAD];
    const char *path = self->file->path;

    if (self->file->size < BAL_WD_HEAD + BAL_WD_TRAILER)
        return bal_fail(err, BAL_ECORRUPT,
                        "'%s' is too short for a .wdelta file", path);
    int rc = bal_file_read(self->file, 0, head, sizeof(head), err);
    if (rc)
        return rc;
    if (memcmp(head, BAL_WD_MAGIC, sizeof(BAL_WD_MAGIC)) != 0)
        return bal_fail(err, BAL_ECORRUPT, "'%s' is not a .wdelta file", path);
    self->version = bal_get32(head + 7);
    if (!self->version || self->version > newest)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "'%s': unsupported .wdelta version %" PRIu32, path,
                        self->version);
    *header = bal_get32(head + 11);
    if (*header > HEADER_MAX ||
        *header > self->file->size - BAL_WD_HEAD - BAL_WD_TRAILER)
        return bal_fail(err, BAL_ECORRUPT,
                        "'%s': a header that is longer than the file", path);
    self->records = BAL_WD_HEAD + (uint64_t)*header;
    return 0;
}

static int read_all(bal_wdelta *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) json = { 0 };
    uint32_t len = 0;
    int rc = read_start(self, &len, err);
    if (!rc)
        rc = bal_buf_reserve(&json, len, err);
    if (!rc)
        rc = bal_file_read(self->file, BAL_WD_HEAD, json.data, len, err);
    if (rc)
        return rc;
    rc = bal_wd_header_parse(self, (bal_bytes){ json.data, len }, err);
    if (rc)
        return bal_within(err, rc, "'%s'", self->file->path);
    return bal_wd_records_walk(self, err);
}

int bal_wdelta_open(bal_wdelta **out, const char *path, bal_error *err)
{
    BAL_OWN(bal_wdelta) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "reading a .wdelta file");
    int rc = bal_file_open(&self->file, path, err);
    if (rc)
        return rc;
    rc = read_all(self, err);
    if (rc)
        return rc;

    *out = BAL_TAKE(self);
    return 0;
}

void bal_wdelta_free(bal_wdelta *self)
{
    if (!self)
        return;
    bal_file_free(self->file);
    bal_arena_done(&self->arena);
    bal_map_done(&self->names);
    free(self->tensors);
    free(self->order);
    free(self);
}

void bal_wdelta_info_get(bal_wdelta_info *out, const bal_wdelta *self)
{
    *out = (bal_wdelta_info){
        .path = self->file->path,
        .size = self->file->size,
        .version = self->version,
        .strategy = self->strategy,
        .parent_hash = self->parent,
        .tensors = self->count,
    };
}

void bal_wdelta_at(bal_wdelta_row *out, const bal_wdelta *self, size_t i)
{
    const bal_wd_tensor *tensor = &self->tensors[i];

    *out = (bal_wdelta_row){
        .name = tensor->name,
        .strategy = bal_wd_strategy_of(tensor->kind)->name,
        .dtype = tensor->base_dtype ? tensor->base_dtype : tensor->dtype,
        .rank = tensor->rank,
        .shape = tensor->shape,
        .bytes = tensor->bytes,
    };
}
