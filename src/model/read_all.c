/* Many entries read at once: the threads of a pool take whole blocks, not whole
 * tensors, so that no two of them wait for one block. */
#include <stdlib.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/room.h"
#include "model/model.h"

/* What one thread reads in one go: rows that share a block, or a tile of one
 * row. */
typedef struct share {
    size_t row, rows;
    uint64_t offset, len; /* of each row, where it is one */
} share;

typedef struct job {
    bal_model *model;
    const bal_entry_to *rows;
    bal_work *work;
    share *shares;
    size_t count, room;
    uint64_t bytes; /* of all rows */
} job;

static void job_done(job *self)
{
    free(self->shares);
}

static uint64_t size_of(const job *self, size_t row)
{
    return bal_model_at(self->model, self->rows[row].entry)->size;
}

static bool ident_of(bal_ident *out, const job *self, size_t row)
{
    size_t i = self->rows[row].entry;
    bal_model *source = bal_model_source(self->model, &i);
    uint64_t size = size_of(self, row);

    if (!size || size > BAL_TILE)
        return false;
    bal_model_ident(out, source, i, 0, size);
    return !out->of;
}

/* Rows from `row` on that are ranges of one block; 1 where nobody else is. */
static size_t neighbours(const job *self, size_t row, size_t count)
{
    bal_ident first, next;
    size_t end = row + 1;

    if (!ident_of(&first, self, row))
        return 1;
    while (end < count && ident_of(&next, self, end) &&
           bal_id_equal(&first.id, &next.id))
        end++;
    return end - row;
}

static int add(job *self, share item, bal_error *err)
{
    share *shares = bal_room_for_one(self->shares, self->count, &self->room,
                                     sizeof(*shares));
    if (!shares)
        return bal_fail_memory(err, "reading a model");
    self->shares = shares;
    shares[self->count++] = item;
    return 0;
}

static int add_tiles(job *self, size_t row, bal_error *err)
{
    uint64_t size = size_of(self, row);
    int rc = 0;

    for (uint64_t at = 0; at < size && !rc; at += BAL_TILE) {
        uint64_t len = bal_min(BAL_TILE, size - at);
        rc = add(self, (share){ row, 1, at, len }, err);
    }
    return rc;
}

static int cut(job *self, size_t count, bal_error *err)
{
    int rc = 0;

    for (size_t row = 0; row < count && !rc;) {
        size_t rows = neighbours(self, row, count);
        for (size_t i = row; i < row + rows; i++)
            self->bytes += size_of(self, i);
        rc = rows > 1 ? add(self, (share){ .row = row, .rows = rows }, err)
                      : add_tiles(self, row, err);
        row += rows;
    }
    return rc;
}

static int read_share(size_t i, void *ctx, bal_error *err)
{
    const job *self = ctx;
    const share *mine = &self->shares[i];
    uint64_t done = 0;
    int rc = 0;

    for (size_t n = 0; n < mine->rows && !rc; n++) {
        const bal_entry_to *row = &self->rows[mine->row + n];
        uint64_t len =
            mine->rows > 1 ? size_of(self, mine->row + n) : mine->len;
        rc =
            bal_model_read(self->model, row->entry, mine->offset,
                           (uint8_t *)row->to + mine->offset, (size_t)len, err);
        done += len;
    }
    bal_work_advance(self->work, done);
    return rc;
}

int bal_model_read_all(bal_model *self, const bal_entry_to *rows, size_t count,
                       bal_work *work, bal_error *err)
{
    BAL_LOCAL(job) all = { .model = self, .rows = rows, .work = work };
    int rc = cut(&all, count, err);

    if (rc)
        return rc;
    bal_work_expect(work, all.bytes);
    return bal_pool_run(work, all.count, read_share, &all, err);
}
