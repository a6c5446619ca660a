/* A model as the bytes of one safetensors file, from any place on.
 *
 * The file is the one that bal_model_write plans (see write.c): where a
 * recorded header still fits, the bytes are those that were committed. Of
 * several files one is made, in the reference's order. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "model/plan.h"

/* What is read of an entry that a range begins or ends in the middle of. */
enum { SCRAP = 1 << 16 };

struct bal_stream {
    bal_model *model;
    bal_buf head;     /* length and header */
    size_t *entries;  /* tensors, in the order of the file */
    uint64_t *begins; /* of each in the file, and of what is behind the last */
    size_t count;
};

void bal_stream_free(bal_stream *self)
{
    if (!self)
        return;
    bal_model_free(self->model);
    bal_buf_done(&self->head);
    free(self->entries);
    free(self->begins);
    free(self);
}

BAL_OWNABLE(bal_stream)

uint64_t bal_stream_size(const bal_stream *self)
{
    return self->begins[self->count];
}

/* ---- opening ------------------------------------------------------------ */

static int put_head(bal_stream *self, bal_bytes json, bal_error *err)
{
    uint8_t length[8];

    self->head.ceiling = BAL_HEADER_MAX + sizeof(length);
    bal_put64(length, json.len);
    int rc = bal_buf_append(&self->head, length, sizeof(length), err);
    return rc ? rc : bal_buf_append(&self->head, json.data, json.len, err);
}

static int put_entries(bal_stream *self, const bal_plan_file *file,
                       bal_error *err)
{
    uint64_t at = self->head.len;

    self->entries = calloc(file->count + 1, sizeof(*self->entries));
    self->begins = calloc(file->count + 1, sizeof(*self->begins));
    if (!self->entries || !self->begins)
        return bal_fail_memory(err, "a stream");
    for (size_t i = 0; i < file->count; i++) {
        self->entries[i] = file->entries[i];
        self->begins[i] = at;
        if (!bal_add(&at, at,
                     bal_model_at(self->model, file->entries[i])->size))
            return bal_fail(err, BAL_ECORRUPT, "a model of over 2^64 bytes");
    }
    self->begins[file->count] = at;
    self->count = file->count;
    return 0;
}

/* The one file that there is, else one that holds them all. */
static int plan(bal_plan *out, bal_model *model, bal_error *err)
{
    int rc = bal_plan_make(out, model, 0, err);

    if (rc || out->count < 2)
        return rc;
    bal_plan_done(out);
    *out = (bal_plan){ 0 };
    return bal_plan_make(out, model, BAL_PLAN_ONE, err);
}

int bal_stream_open(bal_stream **out, bal_model *model, bal_error *err)
{
    BAL_LOCAL(bal_plan) files = { 0 };
    BAL_OWN(bal_stream) self = calloc(1, sizeof(*self));

    if (!self)
        return bal_fail_memory(err, "a stream");
    int rc = plan(&files, model, err);
    if (rc)
        return rc;
    if (!files.files[0].count)
        return bal_fail(err, BAL_EINVAL, "'%.200s' has no tensors",
                        bal_model_facts(model)->name);
    self->model = bal_model_ref(model);
    const bal_buf *json = &files.files[0].json;
    rc = put_head(self, (bal_bytes){ json->data, json->len }, err);
    if (!rc)
        rc = put_entries(self, &files.files[0], err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

/* ---- reading ------------------------------------------------------------ */

/* The entry that byte `at` lies in. */
static size_t entry_at(const bal_stream *self, uint64_t at)
{
    size_t low = 0;
    size_t high = self->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (self->begins[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    /* Entries without bytes begin where the next one does. */
    while (low < self->count && self->begins[low + 1] <= at)
        low++;
    return low;
}

/* Bytes of an entry that begin or end within 8 elements: by way of a buffer.
 * Gives how many, at most `len`. */
static int read_scrap(bal_stream *self, size_t i, uint64_t from, uint8_t *to,
                      size_t *len, bal_error *err)
{
    const bal_tensor *entry = bal_model_at(self->model, i);
    uint64_t unit = bal_dtype_bits(entry->dtype);
    uint64_t begin = from - from % unit;
    uint64_t end = bal_min(entry->size, begin + SCRAP - SCRAP % unit);
    uint8_t scrap[SCRAP];

    int rc = bal_model_read(self->model, i, begin, scrap, (size_t)(end - begin),
                            err);
    if (rc)
        return rc;
    *len = (size_t)bal_min(*len, end - from);
    memcpy(to, scrap + (from - begin), *len);
    return 0;
}

/* A piece of an entry, as much of `len` as goes in one go. */
static int read_piece(bal_stream *self, size_t i, uint64_t from, uint8_t *to,
                      size_t *len, bal_error *err)
{
    const bal_tensor *entry = bal_model_at(self->model, i);
    uint64_t unit = bal_dtype_bits(entry->dtype);
    size_t whole = *len - *len % unit;

    if (from + *len == entry->size)
        whole = *len;
    if (from % unit || !whole)
        return read_scrap(self, i, from, to, len, err);
    *len = whole;
    return bal_model_read(self->model, i, from, to, whole, err);
}

int bal_stream_read(bal_stream *self, uint64_t offset, void *to, size_t len,
                    bal_error *err)
{
    uint64_t size = bal_stream_size(self);
    uint8_t *next = to;

    if (offset > size || len > size - offset)
        return bal_fail(err, BAL_EINVAL, "a range beyond the end of a stream");
    if (offset < self->head.len && len) {
        size_t part = (size_t)bal_min(len, self->head.len - offset);
        memcpy(next, self->head.data + offset, part);
        next += part;
        offset += part;
        len -= part;
    }
    while (len) {
        size_t at = entry_at(self, offset);
        size_t part = (size_t)bal_min(len, self->begins[at + 1] - offset);
        int rc = read_piece(self, self->entries[at], offset - self->begins[at],
                            next, &part, err);
        if (rc)
            return rc;
        next += part;
        offset += part;
        len -= part;
    }
    return 0;
}
