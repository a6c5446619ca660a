/* A piece of work is a whole number of digest tiles on both sides: one tile of
 * the narrower dtype, and as many of the wider as hold the same elements. It
 * is gone through in steps, so that memory does not grow with the ratio. Where
 * both sides have been the same since a tile began, it is hashed once. */
#include "model/minus_scan.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "kernel/kernels.h"
#include "model/digest.h"
#include "model/wide.h"

/* Scratch of the thread; the reads below use the lower numbers. */
enum { SLOT_TUNED = 12, SLOT_BASE, SLOT_PROOF };
enum { TUNED, BASE, SIDES };
enum { STEPS = 16 };   /* of a piece */
enum { BLOCK = 4096 }; /* elements that are proved at once */

typedef struct scan_job {
    const bal_pairs *pairs;
    bal_model *models[SIDES];
    bal_work *work;
    bool proves;           /* what subtracts is read, too */
    size_t *starts[SIDES]; /* of a pair's tiles among those of its side */
    bal_id *tiles[SIDES];
    uint8_t *flags; /* by piece */
} scan_job;

static void scan_job_done(scan_job *self)
{
    for (size_t i = 0; i < SIDES; i++) {
        free(self->starts[i]);
        free(self->tiles[i]);
    }
    free(self->flags);
}

static size_t entry_of(const bal_pair *pair, size_t side)
{
    return side == TUNED ? pair->a : pair->b;
}

/* NULL: the pair has no such side. */
static const bal_tensor *tensor_of(const scan_job *job, const bal_pair *pair,
                                   size_t side)
{
    size_t i = entry_of(pair, side);

    return i == BAL_NONE ? NULL : bal_model_at(job->models[side], i);
}

bool bal_pair_subtracts(const bal_pair *pair, const bal_model *tuned,
                        const bal_model *base)
{
    if (pair->a == BAL_NONE || pair->b == BAL_NONE)
        return false;
    const bal_tensor *a = bal_model_at(tuned, pair->a);
    const bal_tensor *b = bal_model_at(base, pair->b);
    return bal_tensor_float(a) && bal_tensor_float(b) &&
           bal_tensor_same_shape(a, b);
}

static bool job_subtracts(const scan_job *job, const bal_pair *pair)
{
    return bal_pair_subtracts(pair, job->models[TUNED], job->models[BASE]);
}

static bool is_read(const scan_job *job, const bal_pair *pair)
{
    return job->proves || !job_subtracts(job, pair);
}

/* Tiles of a side that a piece of the pair covers. */
static size_t ratio_of(const scan_job *job, const bal_pair *pair, size_t side)
{
    const bal_tensor *own = tensor_of(job, pair, side);
    const bal_tensor *other = tensor_of(job, pair, !side);

    if (!own || !other || !job_subtracts(job, pair))
        return 1;
    unsigned bits = bal_dtype_bits(own->dtype);
    unsigned other_bits = bal_dtype_bits(other->dtype);
    return bits > other_bits ? bits / other_bits : 1;
}

/* ---- one side of a piece ------------------------------------------------ */

typedef struct side {
    bal_model *model;
    size_t entry;
    uint64_t at, end, size;
    size_t step; /* bytes read at once */
    size_t got;  /* bytes in raw */
    uint8_t *raw;
    bal_hash hash; /* of the tile so far */
    bal_id *tiles; /* of the entry */
    bool live;     /* more to come */
} side;

static int side_open(side *self, const scan_job *job, const bal_pair *pair,
                     size_t piece, size_t which, bal_error *err)
{
    static const unsigned slots[] = { SLOT_TUNED, SLOT_BASE };
    const bal_tensor *tensor = tensor_of(job, pair, which);

    if (!tensor)
        return 0;
    uint64_t span = BAL_TILE * ratio_of(job, pair, which);
    self->model = job->models[which];
    self->entry = entry_of(pair, which);
    self->size = tensor->size;
    self->at = bal_min(piece * span, self->size);
    self->end = bal_min(self->at + span, self->size);
    self->live = self->at < self->end || !piece;
    self->step = (size_t)(span / STEPS);
    self->tiles =
        job->tiles[which] + job->starts[which][pair - job->pairs->rows];
    self->raw =
        bal_pool_scratch(job->work, slots[which],
                         (size_t)bal_min(self->step, self->end - self->at));
    if (!self->raw)
        return bal_fail_memory(err, "comparing two models");
    bal_hash_init(&self->hash);
    return 0;
}

static int side_read(side *self, bal_error *err)
{
    self->got = 0;
    if (!self->live)
        return 0;
    self->got = (size_t)bal_min(self->step, self->end - self->at);
    return bal_model_read(self->model, self->entry, self->at, self->raw,
                          self->got, err);
}

/* True if the tile that was read last ends here. */
static bool side_ends_tile(const side *self)
{
    return self->at % BAL_TILE == 0 || self->at == self->size;
}

static void side_end_tile(side *self)
{
    uint64_t tile = self->at ? (self->at - 1) / BAL_TILE : 0;

    bal_hash_end(&self->hash, &self->tiles[tile]);
    bal_hash_init(&self->hash);
}

static void side_advance(side *self)
{
    self->at += self->got;
    self->live = self->at < self->end;
}

static void side_hash(side *self)
{
    if (!self->live)
        return;
    bal_hash_add(&self->hash, self->raw, self->got);
    side_advance(self);
    if (side_ends_tile(self))
        side_end_tile(self);
}

/* ---- both sides --------------------------------------------------------- */

typedef struct twins {
    side sides[SIDES];
    bool alike;  /* one dtype, one shape: bits can be compared */
    bool shared; /* the same since the tile began: tuned's hash is both's */
    unsigned flags;
    bal_dtype dtypes[SIDES]; /* where proved */
    bool proves;             /* a difference is proved to give tuned */
    char *proof;
} twins;

/* Hash what was read, once where the sides agree. */
static void twins_hash(twins *self, bool equal)
{
    side *tuned = &self->sides[TUNED];
    side *base = &self->sides[BASE];

    if (self->shared && !equal) {
        base->hash = tuned->hash;
        self->shared = false;
    }
    if (!self->shared) {
        side_hash(tuned);
        side_hash(base);
        self->shared = self->alike && side_ends_tile(tuned);
        return;
    }
    bal_hash_add(&tuned->hash, tuned->raw, tuned->got);
    side_advance(tuned);
    side_advance(base);
    if (!side_ends_tile(tuned))
        return;
    base->hash = tuned->hash;
    side_end_tile(tuned);
    side_end_tile(base);
}

/* True if base + (tuned - base), rounded, has tuned's bits. */
static bool proved(const twins *self, const uint8_t *tuned, const uint8_t *base,
                   size_t n)
{
    bal_dtype of = self->dtypes[TUNED];
    const bal_kernels *kernels = bal_kernels_use();

    if (of == self->dtypes[BASE] && kernels->regains[of])
        return kernels->regains[of](tuned, base, n);
    bal_dtype wide = bal_wide_of(of, self->dtypes[BASE]);
    char *sum = self->proof;
    char *addend = self->proof + (size_t)BLOCK * 8;
    char *back = self->proof + (size_t)BLOCK * 16;

    bal_widen(wide, sum, of, tuned, n);
    bal_widen(wide, addend, self->dtypes[BASE], base, n);
    bal_wide_sub(wide, sum, sum, addend, n);
    bal_wide_add(wide, sum, addend, sum, n);
    bal_narrow(of, back, wide, sum, n);
    return !memcmp(back, tuned, n * bal_dtype_bits(of) / 8);
}

static void prove(twins *self)
{
    size_t width = bal_dtype_bits(self->dtypes[TUNED]) / 8;
    size_t other = bal_dtype_bits(self->dtypes[BASE]) / 8;
    size_t count = self->sides[TUNED].got / width;

    for (size_t i = 0; i < count; i += BLOCK) {
        if (self->flags & BAL_FOUND_RESIDUAL)
            return;
        if (!proved(self, self->sides[TUNED].raw + i * width,
                    self->sides[BASE].raw + i * other,
                    (size_t)bal_min(BLOCK, count - i)))
            self->flags |= BAL_FOUND_RESIDUAL;
    }
}

static int twins_step(twins *self, bal_error *err)
{
    side *tuned = &self->sides[TUNED];
    side *base = &self->sides[BASE];

    int rc = side_read(tuned, err);
    if (rc)
        return rc;
    rc = side_read(base, err);
    if (rc)
        return rc;
    bool equal = self->alike && !memcmp(tuned->raw, base->raw, tuned->got);
    if (!equal)
        self->flags |= BAL_FOUND_UNEQUAL;
    if (self->proves)
        prove(self);
    twins_hash(self, equal);
    return 0;
}

static int twins_open(twins *self, const scan_job *job, const bal_pair *pair,
                      size_t piece, bal_error *err)
{
    const bal_tensor *a = tensor_of(job, pair, TUNED);
    const bal_tensor *b = tensor_of(job, pair, BASE);

    for (size_t i = 0; i < SIDES; i++) {
        int rc = side_open(&self->sides[i], job, pair, piece, i, err);
        if (rc)
            return rc;
    }
    self->alike = a && b && a->dtype == b->dtype && bal_tensor_same_shape(a, b);
    self->shared = self->alike;
    self->proves = job_subtracts(job, pair);
    if (!self->proves || !a || !b)
        return 0;
    self->dtypes[TUNED] = a->dtype;
    self->dtypes[BASE] = b->dtype;
    self->proof = bal_pool_scratch(job->work, SLOT_PROOF, (size_t)BLOCK * 24);
    if (!self->proof)
        return bal_fail_memory(err, "comparing two models");
    return 0;
}

static int scan_piece(const bal_pair *pair, size_t piece, void *ctx,
                      bal_error *err)
{
    scan_job *job = ctx;
    twins both = { 0 };

    if (!is_read(job, pair)) {
        job->flags[pair->first + piece] = BAL_FOUND_UNEQUAL;
        return 0;
    }
    int rc = twins_open(&both, job, pair, piece, err);
    if (rc)
        return rc;
    while (both.sides[TUNED].live || both.sides[BASE].live) {
        rc = twins_step(&both, err);
        if (rc)
            return rc;
    }
    job->flags[pair->first + piece] = (uint8_t)both.flags;
    return 0;
}

/* ---- all pairs ---------------------------------------------------------- */

/* Pieces of a pair; adds its tiles to those of both sides. */
static int plan_pair(scan_job *job, bal_pairs *pairs, size_t n,
                     size_t tiles[SIDES], bal_error *err)
{
    bal_pair *pair = &pairs->rows[n];

    bool read = is_read(job, pair);

    pair->pieces = 1;
    pair->bytes = 0;
    for (size_t i = 0; i < SIDES; i++) {
        const bal_tensor *tensor = tensor_of(job, pair, i);
        job->starts[i][n] = tiles[i];
        if (!tensor || !read)
            continue;
        size_t own = bal_tiles(tensor->size);
        size_t ratio = ratio_of(job, pair, i);
        pair->pieces = bal_max(pair->pieces, (own + ratio - 1) / ratio);
        if (!bal_add(&pair->bytes, pair->bytes, tensor->size))
            return bal_fail(err, BAL_EINVAL, "%s '%.200s' is too large",
                            bal_part_name(tensor->part), tensor->name);
        tiles[i] += own;
    }
    return 0;
}

static int plan(scan_job *job, bal_pairs *pairs, bal_error *err)
{
    size_t tiles[SIDES] = { 0 };

    for (size_t i = 0; i < SIDES; i++) {
        job->starts[i] = calloc(pairs->count + 1, sizeof(size_t));
        if (!job->starts[i])
            return bal_fail_memory(err, "comparing two models");
    }
    for (size_t n = 0; n < pairs->count; n++) {
        int rc = plan_pair(job, pairs, n, tiles, err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < SIDES; i++) {
        job->tiles[i] = calloc(tiles[i] + 1, sizeof(bal_id));
        if (!job->tiles[i])
            return bal_fail_memory(err, "comparing two models");
    }
    int rc = bal_pairs_plan(pairs, err);
    if (rc)
        return rc;
    job->flags = calloc(pairs->pieces + 1, 1);
    if (!job->flags)
        return bal_fail_memory(err, "comparing two models");
    return 0;
}

static void fold(bal_found *out, const scan_job *job)
{
    for (size_t n = 0; n < job->pairs->count; n++) {
        const bal_pair *pair = &job->pairs->rows[n];
        const bal_tensor *a = tensor_of(job, pair, TUNED);
        const bal_tensor *b = tensor_of(job, pair, BASE);

        for (size_t i = 0; i < pair->pieces; i++)
            out->flags[n] |= job->flags[pair->first + i];
        if (!is_read(job, pair))
            continue;
        if (a)
            bal_digest_of_tiles(&out->tuned[n], a,
                                job->tiles[TUNED] + job->starts[TUNED][n]);
        if (b)
            bal_digest_of_tiles(&out->base[n], b,
                                job->tiles[BASE] + job->starts[BASE][n]);
    }
}

int bal_minus_scan(bal_found *out, bal_pairs *pairs, bal_model *tuned,
                   bal_model *base, bool proves, bal_work *work, bal_error *err)
{
    BAL_LOCAL(scan_job)
    job = {
        .pairs = pairs,
        .models = { tuned, base },
        .work = work,
        .proves = proves,
    };

    out->tuned = calloc(pairs->count + 1, sizeof(bal_id));
    out->base = calloc(pairs->count + 1, sizeof(bal_id));
    out->flags = calloc(pairs->count + 1, 1);
    if (!out->tuned || !out->base || !out->flags)
        return bal_fail_memory(err, "comparing two models");
    int rc = plan(&job, pairs, err);
    if (rc)
        return rc;
    rc = bal_pairs_run(pairs, work, scan_piece, &job, err);
    if (rc)
        return rc;
    fold(out, &job);
    return 0;
}

void bal_found_done(bal_found *self)
{
    free(self->tuned);
    free(self->base);
    free(self->flags);
    *self = (bal_found){ 0 };
}
