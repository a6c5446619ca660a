/* Every two inputs at once, as far as memory lasts: a sum for each pair is kept
 * while the tensor streams by, and pairs that are too many take another walk.
 */
#include <stdlib.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/vectors.h"

enum {
    AT_ONCE = 256,        /* pairs in one walk */
    NUMBERS = 1024 * 1024 /* of doubles: their sums */
};

uint64_t bal_pairs_count(size_t count)
{
    return count ? (uint64_t)count * (count - 1) / 2 : 0;
}

typedef struct walking {
    const bal_pairs *pairs;
    bal_sums *norms; /* NULL but in the first walk */
    bal_sums *dots;
    size_t first_i, first_j; /* the first pair of this walk */
    size_t count;            /* pairs of this walk */
    double *memory;          /* of the dots */
} walking;

static void walking_done(walking *self)
{
    for (size_t i = 0; self->norms && i < self->pairs->count; i++)
        bal_sums_done(&self->norms[i]);
    for (size_t i = 0; self->dots && i < self->count; i++)
        bal_sums_done(&self->dots[i]);
    free(self->norms);
    free(self->dots);
    free(self->memory);
}

/* The pair after i, j. */
static void step(size_t count, size_t *i, size_t *j)
{
    if (++*j < count)
        return;
    ++*i;
    *j = *i + 1;
}

static int start_norms(walking *self, bal_error *err)
{
    const bal_pairs *pairs = self->pairs;
    int rc = 0;

    self->norms = calloc(pairs->count, sizeof(*self->norms));
    if (!self->norms)
        return bal_fail_memory(err, "norms of a tensor");
    for (size_t i = 0; !rc && i < pairs->count; i++)
        rc = bal_sums_init(&self->norms[i], &pairs->lines, pairs->arith,
                           BAL_FOLD_NORM,
                           pairs->norms + i * (size_t)pairs->lines.count, err);
    return rc;
}

static int start_dots(walking *self, bal_error *err)
{
    const bal_pairs *pairs = self->pairs;
    size_t each = (size_t)pairs->lines.count;
    int rc = 0;

    if (!self->count)
        return 0;
    self->memory = calloc(self->count * each, sizeof(*self->memory));
    self->dots = calloc(self->count, sizeof(*self->dots));
    if (!self->memory || !self->dots)
        return bal_fail_memory(err, "dot products of a tensor");
    for (size_t i = 0; !rc && i < self->count; i++)
        rc = bal_sums_init(&self->dots[i], &pairs->lines, pairs->arith,
                           BAL_FOLD_DOT, self->memory + i * each, err);
    return rc;
}

/* Input i's elements, or what it differs from the base by. */
static const double *vector_of(const bal_tile *tile, size_t i)
{
    return tile->base ? tile->scratch + i * tile->n : tile->inputs[i];
}

static int add_tile(void *ctx, const bal_tile *tile, bal_error *err)
{
    walking *self = ctx;
    const bal_pairs *pairs = self->pairs;
    size_t i = self->first_i, j = self->first_j;
    (void)err;

    for (size_t k = 0; k < pairs->count; k++) {
        if (tile->base)
            bal_op_sub(pairs->arith, tile->scratch + k * tile->n,
                       tile->inputs[k], tile->base, tile->n);
        if (self->norms)
            bal_sums_add(&self->norms[k], tile->start, vector_of(tile, k), NULL,
                         tile->n);
    }
    for (size_t k = 0; k < self->count; k++) {
        bal_sums_add(&self->dots[k], tile->start, vector_of(tile, i),
                     vector_of(tile, j), tile->n);
        step(pairs->count, &i, &j);
    }
    return 0;
}

static int hand_over(walking *self, bal_error *err)
{
    const bal_pairs *pairs = self->pairs;
    size_t i = self->first_i, j = self->first_j;
    int rc = 0;

    for (size_t k = 0; self->norms && k < pairs->count; k++)
        bal_sums_end(&self->norms[k]);
    for (size_t k = 0; !rc && k < self->count; k++) {
        bal_sums_end(&self->dots[k]);
        rc = pairs->fn(pairs->ctx, i, j, self->dots[k].out, err);
        step(pairs->count, &i, &j);
    }
    return rc;
}

static int walk_once(walking *self, bal_walk *walk, bool first, bal_error *err)
{
    int rc = first ? start_norms(self, err) : 0;
    if (!rc)
        rc = start_dots(self, err);
    if (!rc)
        rc = bal_view_tiles(walk, add_tile, self, err);
    if (!rc)
        rc = hand_over(self, err);
    return rc;
}

int bal_pairs_walk(const bal_pairs *self, bal_walk *walk, bal_error *err)
{
    uint64_t left = self->fn ? bal_pairs_count(self->count) : 0;
    uint64_t most = bal_max(NUMBERS / self->lines.count, 1);
    size_t i = 0, j = 1;
    bool first = true;
    int rc = 0;

    most = bal_min(most, AT_ONCE);
    while (!rc && (left || first)) {
        BAL_LOCAL(walking)
        job = {
            .pairs = self,
            .first_i = i,
            .first_j = j,
            .count = bal_min(left, most),
        };
        rc = walk_once(&job, walk, first, err);
        for (size_t k = 0; k < job.count; k++)
            step(self->count, &i, &j);
        left -= job.count;
        first = false;
    }
    return rc;
}
