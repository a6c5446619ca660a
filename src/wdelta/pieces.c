/* Pieces are encoded by all threads, some at a time, and written one behind the
 * other: how long one is shows only then. Each is decoded again before it is
 * written, so that a file is proved while it is made. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/pool.h"
#include "wdelta/layout.h"
#include "wdelta/lossless.h"

size_t bal_wd_pieces(const bal_wd_plan *plan)
{
    return (size_t)(plan->n / BAL_WD_PIECE + (plan->n % BAL_WD_PIECE != 0));
}

/* A piece in the making. */
typedef struct slot {
    bal_wd_plan *plan;
    size_t piece;
    bal_coder *coder;
    uint8_t *tuned, *base, *again;
    size_t room; /* of each */
    size_t len;
    bal_buf payload;
    bal_codec_id codec;
} slot;

typedef struct batch {
    const bal_wd_source *from;
    slot *slots;
    size_t room, count;
    int fd;
    bal_wd_plan *plan; /* that was placed last, at `at` */
    uint64_t at;
} batch;

static void slot_done(slot *self)
{
    bal_coder_free(self->coder);
    free(self->tuned);
    free(self->base);
    free(self->again);
    bal_buf_done(&self->payload);
}

static void batch_done(batch *self)
{
    for (size_t i = 0; i < self->room && self->slots; i++)
        slot_done(&self->slots[i]);
    free(self->slots);
}

static int slot_room(slot *self, bal_error *err)
{
    if (self->room >= self->len && self->tuned)
        return 0;
    free(self->tuned);
    free(self->base);
    free(self->again);
    self->tuned = bal_pages(self->len + 1);
    self->base = bal_pages(self->len + 1);
    self->again = bal_pages(self->len + 1);
    self->room = self->len;
    if (!self->tuned || !self->base || !self->again)
        return bal_fail_memory(err, "encoding a tensor");
    return 0;
}

static int encode(slot *self, const bal_grain *grain, bal_error *err)
{
    bal_bytes from = { self->tuned, self->len };
    int rc = bal_encode(self->coder, &self->codec, &self->payload, from, grain,
                        BAL_EFFORT_AUTO, err);
    if (rc)
        return rc;
    if (self->codec == BAL_CODEC_RAW)
        return bal_buf_append(&self->payload, self->tuned, self->len, err);
    bal_bytes payload = { self->payload.data, self->payload.len };
    rc = bal_decode(self->coder, self->codec, self->again, self->len, payload,
                    grain, err);
    if (rc)
        return rc;
    if (self->payload.len <= self->len &&
        !memcmp(self->again, self->tuned, self->len))
        return 0;
    /* A codec that does not give back what it took is not used. */
    bal_warn("wdelta", "codec=%s tensor=%.200s why=\"does not round-trip\"",
             bal_codec_find(self->codec)->name, self->plan->name);
    self->codec = BAL_CODEC_RAW;
    bal_buf_clear(&self->payload);
    return bal_buf_append(&self->payload, self->tuned, self->len, err);
}

static int encode_item(size_t i, void *ctx, bal_error *err)
{
    const batch *all = ctx;
    slot *self = &all->slots[i];
    const bal_wd_plan *plan = self->plan;
    bal_dtype dtype = bal_model_at(all->from->tuned, plan->tuned)->dtype;
    uint64_t at = (uint64_t)self->piece * BAL_WD_PIECE;
    uint64_t offset = at * bal_dtype_bits(dtype) / 8;
    bal_bytes base = { NULL, 0 };

    self->len = bal_wd_piece_bytes(dtype, plan->n, at);
    bal_buf_clear(&self->payload);
    int rc = slot_room(self, err);
    if (!rc && !self->coder)
        rc = bal_coder_new(&self->coder, err);
    if (!rc)
        rc = bal_model_read(all->from->tuned, plan->tuned, offset, self->tuned,
                            self->len, err);
    if (!rc && plan->anchored) {
        rc = bal_model_read(all->from->parent, plan->parent, offset, self->base,
                            self->len, err);
        base = (bal_bytes){ self->base, self->len };
    }
    if (rc)
        return rc;
    bal_grain grain = bal_wd_grain(dtype, base);
    bal_work_advance(all->from->work, self->len);
    return encode(self, &grain, err);
}

/* A tensor's records begin where those before it end, which is known when all
 * of their pieces are. */
static void place(batch *self, bal_wd_plan *plan)
{
    while (self->plan != plan)
        self->at = bal_wd_layout_place(self->plan++, self->at);
    bal_wd_layout_place(plan, self->at);
}

/* Encode what is gathered, and write it. */
static int flush(batch *self, bal_error *err)
{
    int rc =
        bal_pool_run(self->from->work, self->count, encode_item, self, err);

    for (size_t i = 0; i < self->count && !rc; i++) {
        slot *one = &self->slots[i];
        bal_wd_plan *plan = one->plan;
        place(self, plan);
        plan->sizes[one->piece] = (uint32_t)one->payload.len;
        plan->codecs[one->piece] = (uint8_t)one->codec;
        rc = bal_wd_pwrite(self->fd,
                           plan->offsets[BAL_WD_PIECES] + plan->payload,
                           one->payload.data, one->payload.len, err);
        plan->payload += one->payload.len;
    }
    self->count = 0;
    return rc;
}

static int gather(batch *self, bal_wd_plan *plan, size_t piece, bal_error *err)
{
    self->slots[self->count].plan = plan;
    self->slots[self->count].piece = piece;
    self->count++;
    return self->count == self->room ? flush(self, err) : 0;
}

static int gather_plan(batch *self, bal_wd_plan *plan, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < bal_wd_pieces(plan) && !rc; i++)
        rc = gather(self, plan, i, err);
    return rc;
}

int bal_wd_pieces_write(bal_wd_plan *plans, size_t count,
                        const bal_wd_source *from, int fd, uint64_t at,
                        bal_error *err)
{
    BAL_LOCAL(batch)
    self = { .from = from, .fd = fd, .plan = plans, .at = at };
    int rc = 0;

    self.room = (size_t)bal_work_jobs(from->work) * 2;
    self.slots = calloc(self.room, sizeof(*self.slots));
    if (!self.slots)
        return bal_fail_memory(err, "encoding a tensor");
    for (size_t i = 0; i < count && !rc; i++)
        rc = gather_plan(&self, &plans[i], err);
    return rc ? rc : flush(&self, err);
}
