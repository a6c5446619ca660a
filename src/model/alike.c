/* A piece is gone through from its start. At each place the largest node that
 * is the same on both sides and has a known norm is taken as it is; what lies
 * between such nodes is read, runs of sameness on one side alone. */
#include "model/alike.h"

#include <string.h>

#include "core/arith.h"
#include "model/values.h"

/* The least that is asked about. */
enum { GRAIN = 2 * BAL_LEAF };

typedef struct walk {
    const bal_alike *how;
    bal_model *sources[2]; /* where the bytes come from */
    size_t entries[2];
    bool asks;    /* anything may be the same */
    size_t step;  /* what is read at once, 0: as anywhere */
    uint64_t end; /* of the piece */
    bal_tree diff2, norm2;
    bal_compared sums; /* but for those */
    bool unequal;
} walk;

static unsigned width_of(const walk *self, size_t side)
{
    return bal_values_of(self->how->sides[side].dtype)->width;
}

/* ---- asking ------------------------------------------------------------- */

static void find_sources(walk *self)
{
    size_t width = bal_max(width_of(self, 0), width_of(self, 1));

    self->asks = self->how->bits;
    for (size_t i = 0; i < 2; i++) {
        const bal_alike_side *side = &self->how->sides[i];
        self->asks = self->asks && side->model;
        self->entries[i] = side->entry;
        self->sources[i] = bal_model_source(side->model, &self->entries[i]);
        if (self->sources[i] && bal_model_in_blocks(self->sources[i]))
            self->step = BAL_TILE / width;
    }
}

static bool is_same(const walk *self, uint64_t at, uint64_t n)
{
    unsigned width = width_of(self, 0);
    bal_ident idents[2];

    if (!self->asks)
        return false;
    for (size_t i = 0; i < 2; i++)
        bal_model_ident(&idents[i], self->sources[i], self->entries[i],
                        at * width, n * width);
    return bal_ident_equal(&idents[0], &idents[1]);
}

/* The largest node at `at` of which all is known: its norm, and how many values
 * it has; 0: there is none. */
static uint64_t known_at(const walk *self, uint64_t at, double *norm2)
{
    unsigned width = width_of(self, 0);

    if (!self->asks)
        return 0;
    for (uint64_t size = BAL_ALIKE_PIECE; size >= GRAIN; size /= 2) {
        uint64_t n = bal_min(size, self->end - at);
        if (at % size || !is_same(self, at, n))
            continue;
        if (self->how->opaque ||
            bal_model_squares(norm2, self->sources[0], self->entries[0],
                              at * width, n * width))
            return n;
    }
    return 0;
}

/* ---- reading ------------------------------------------------------------ */

static void add_leaf(walk *self, const bal_compare *sums)
{
    bal_compared fold;

    bal_compare_fold(&fold, sums);
    bal_tree_add(&self->diff2, 0, fold.diff2);
    bal_tree_add(&self->norm2, 0, fold.norm2);
    if (fold.max_abs > self->sums.max_abs)
        self->sums.max_abs = fold.max_abs;
    self->sums.wrong += fold.wrong;
    self->sums.unequal += fold.unequal;
}

/* Floats of one dtype are compared as they come, all else by way of doubles. */
static void compare_values(walk *self, const bal_chunk *chunk, size_t b)
{
    const bal_alike_side *sides = self->how->sides;
    const bal_kernels *kernels = bal_kernels_use();
    bal_dtype dtype = sides[0].dtype;
    bal_compare sums = { 0 };

    if (self->how->bits && kernels->compare[dtype]) {
        kernels->compare[dtype](&sums, chunk->raw[0], chunk->raw[b], chunk->n);
        add_leaf(self, &sums);
        return;
    }
    for (size_t i = 0; i <= b; i++)
        bal_values_of(sides[i].dtype)
            ->read(chunk->room[i], chunk->raw[i], chunk->n, sides[i].dtype);
    kernels->compare[BAL_F64](&sums, chunk->room[0], chunk->room[b], chunk->n);
    add_leaf(self, &sums);
}

static void compare_chunk(const bal_chunk *chunk, void *ctx)
{
    walk *self = ctx;

    if (self->how->bits &&
        memcmp(chunk->raw[0], chunk->raw[1], chunk->n * width_of(self, 0)) != 0)
        self->unequal = true;
    if (!self->how->opaque)
        compare_values(self, chunk, 1);
}

/* Both sides are side 0. */
static void measure_chunk(const bal_chunk *chunk, void *ctx)
{
    compare_values(ctx, chunk, 0);
}

static int read_run(walk *self, bool same, uint64_t at, uint64_t n,
                    bal_error *err)
{
    const bal_alike_side *sides = self->how->sides;
    bal_wide_job job = {
        .sources = { { sides[0].model, sides[0].entry, width_of(self, 0) },
                     { sides[1].model, sides[1].entry, width_of(self, 1) } },
        .count = same ? 1 : 2,
        .step = self->step,
        .fn = same ? measure_chunk : compare_chunk,
        .ctx = self,
    };

    return bal_wide_run(&job, at, n, NULL, err);
}

/* Where the run ends that begins at `at` and is the same, or is not. */
static uint64_t run_end(const walk *self, uint64_t at, bool same)
{
    double norm2 = 0;

    if (!self->asks)
        return self->end;
    for (at += GRAIN; at < self->end; at += GRAIN) {
        uint64_t n = bal_min(GRAIN, self->end - at);
        if (is_same(self, at, n) != same || known_at(self, at, &norm2))
            break;
    }
    return bal_min(at, self->end);
}

static unsigned level_of(uint64_t n)
{
    unsigned level = 0;

    while ((uint64_t)BAL_LEAF << level < n)
        level++;
    return level;
}

static void add_known(walk *self, uint64_t n, double norm2)
{
    if (self->how->opaque)
        return;
    bal_tree_add(&self->norm2, level_of(n), norm2);
    bal_tree_add(&self->diff2, level_of(n), 0);
}

int bal_alike_run(bal_compared *out, bool *unequal, const bal_alike *self,
                  uint64_t at, uint64_t n, bal_error *err)
{
    walk it = { .how = self, .end = at + n };

    find_sources(&it);
    while (at < it.end) {
        double norm2 = 0;
        uint64_t known = known_at(&it, at, &norm2);
        if (known) {
            add_known(&it, known, norm2);
            at += known;
            continue;
        }
        bool same = is_same(&it, at, bal_min(GRAIN, it.end - at));
        uint64_t end = run_end(&it, at, same);
        int rc = read_run(&it, same, at, end - at, err);
        if (rc)
            return rc;
        at = end;
    }
    *out = it.sums;
    out->diff2 = bal_tree_sum(&it.diff2);
    out->norm2 = bal_tree_sum(&it.norm2);
    *unequal = self->bits ? it.unequal : it.sums.unequal != 0;
    return 0;
}
