/* karcher as mergekit rounds it. The mean is a tensor that changes ten times;
 * none is kept. Whoever needs a tile of it starts from the inputs and goes
 * through the steps again, whose whole-tensor numbers are known. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "merge/karcher_in.h"
#include "merge/rows.h"
#include "merge/vectors.h"

/* How far a walk computes its tiles. */
typedef enum goal { START, ALONG, LENGTH, MOVED } goal;

typedef struct following {
    const bal_karcher *self;
    bal_arith single; /* norms and dots are of F32 */
    goal goal;
    bal_lines lines;
    bal_sums *sums; /* one, or for ALONG one for each input */
} following;

/* Rows of scratch: the units, then these. */
static double *unit_row(const bal_tile *tile, size_t i)
{
    return tile->scratch + i * tile->n;
}

static double *mean_row(const bal_tile *tile)
{
    return unit_row(tile, tile->count);
}

static double *step_row(const bal_tile *tile)
{
    return unit_row(tile, tile->count + 1);
}

static double *spare_row(const bal_tile *tile)
{
    return unit_row(tile, tile->count + 2);
}

/* ---- a tile ------------------------------------------------------------- */

/* The units, and the mean of them, whose norm is not 1 yet. */
static void begin(const bal_karcher *self, const bal_tile *tile)
{
    double *mean = mean_row(tile), *spare = spare_row(tile);

    memset(mean, 0, tile->n * sizeof(*mean));
    for (size_t i = 0; i < self->count; i++) {
        double *unit = unit_row(tile, i);

        if (self->shares[i] == 0)
            continue;
        bal_op_over(tile->arith, unit, tile->inputs[i], self->norms[i],
                    tile->n);
        bal_op_scale(tile->arith, spare, unit, self->shares[i], tile->n);
        bal_op_add(tile->arith, mean, mean, spare, tile->n);
    }
}

static void begin_unit(const bal_karcher *self, const bal_tile *tile)
{
    double *mean = mean_row(tile);
    size_t first = 0;

    if (self->start != 0) {
        bal_op_over(tile->arith, mean, mean, self->start, tile->n);
        return;
    }
    while (self->shares[first] == 0)
        first++;
    memcpy(mean, unit_row(tile, first), tile->n * sizeof(*mean));
}

/* Step s, not yet taken. */
static void pull(const bal_karcher *self, const bal_tile *tile, size_t s)
{
    double *step = step_row(tile), *spare = spare_row(tile);

    memset(step, 0, tile->n * sizeof(*step));
    for (size_t i = 0; i < self->count; i++) {
        double d = self->along[s * self->count + i];
        double k = self->pull[s * self->count + i];

        if (k == 0)
            continue;
        bal_op_scale(tile->arith, spare, mean_row(tile), d, tile->n);
        bal_op_sub(tile->arith, spare, unit_row(tile, i), spare, tile->n);
        bal_op_scale(tile->arith, spare, spare, k, tile->n);
        bal_op_add(tile->arith, step, step, spare, tile->n);
    }
}

static void move(const bal_karcher_step *by, const bal_tile *tile)
{
    double *mean = mean_row(tile), *step = step_row(tile);

    bal_op_over(tile->arith, step, step, by->length, tile->n);
    bal_op_scale(tile->arith, step, step, by->sine, tile->n);
    bal_op_scale(tile->arith, mean, mean, by->cosine, tile->n);
    bal_op_add(tile->arith, mean, mean, step, tile->n);
}

/* The mean after the steps that are known. */
static void replay(const bal_karcher *self, const bal_tile *tile)
{
    begin(self, tile);
    begin_unit(self, tile);
    for (size_t s = 0; s < self->steps; s++) {
        pull(self, tile, s);
        move(&self->step[s], tile);
        if (self->step[s].norm != 0)
            bal_op_over(tile->arith, mean_row(tile), mean_row(tile),
                        self->step[s].norm, tile->n);
    }
}

static int follow_tile(void *ctx, const bal_tile *tile, bal_error *err)
{
    following *job = ctx;
    const bal_karcher *self = job->self;
    const double *from = mean_row(tile);
    (void)err;

    if (job->goal == START)
        begin(self, tile);
    else
        replay(self, tile);
    if (job->goal == ALONG) {
        for (size_t i = 0; i < self->count; i++) {
            if (self->shares[i] != 0)
                bal_sums_add(&job->sums[i], tile->start, mean_row(tile),
                             unit_row(tile, i), tile->n);
        }
        return 0;
    }
    if (job->goal == LENGTH || job->goal == MOVED)
        pull(self, tile, self->steps);
    if (job->goal == LENGTH)
        from = step_row(tile);
    if (job->goal == MOVED)
        move(&self->step[self->steps], tile);
    bal_sums_add(job->sums, tile->start, from, NULL, tile->n);
    return 0;
}

void bal_karcher_replay(double *out, const bal_karcher *self,
                        const bal_tile *tile)
{
    replay(self, tile);
    bal_op_scale(tile->arith, out, mean_row(tile), self->size, tile->n);
}

/* ---- the tensor --------------------------------------------------------- */

/* What the tiles are taken to: a number, or for ALONG one for each input. */
static int walk_to(following *self, goal to, bal_walk *walk, double *out,
                   bal_error *err)
{
    bal_fold fold = to == ALONG ? BAL_FOLD_DOT : BAL_FOLD_NORM;
    size_t count = to == ALONG ? self->self->count : 1;
    int rc = 0;

    self->goal = to;
    for (size_t i = 0; !rc && i < count; i++)
        rc = bal_sums_init(&self->sums[i], &self->lines, &self->single, fold,
                           out + i, err);
    if (!rc)
        rc = bal_view_tiles(walk, follow_tile, self, err);
    for (size_t i = 0; !rc && i < count; i++)
        bal_sums_end(&self->sums[i]);
    for (size_t i = 0; i < count; i++)
        bal_sums_done(&self->sums[i]);
    return rc;
}

/* From the cosines of the step to how much each unit pulls. */
static void set_pulls(bal_karcher *self, const bal_arith *arith, double tol)
{
    double *along = self->along + self->steps * self->count;
    double *k = self->pull + self->steps * self->count;

    for (size_t i = 0; i < self->count; i++) {
        k[i] = 0;
        if (self->shares[i] == 0)
            continue;
        along[i] = bal_cosine(bal_arith_round1(arith, along[i]));
        double angle = bal_arith_round1(arith, bal_fn_acos(arith, along[i]));
        if (angle < bal_arith_term(arith, tol))
            continue;
        double sine = bal_arith_round1(arith, bal_fn_sin(arith, angle));
        double share = bal_arith_factor(arith, self->shares[i]);
        k[i] = bal_arith_round1(arith, angle / sine);
        k[i] = bal_arith_round1(arith, share * k[i]);
    }
}

/* *more: the step was long enough to be taken. */
static int take_step(bool *more, bal_karcher *self, following *job,
                     bal_walk *walk, const bal_tile *tile, double tol,
                     bal_error *err)
{
    const bal_arith *arith = tile->arith;
    bal_karcher_step *step = &self->step[self->steps];
    double least = bal_arith_term(&job->single, tol);
    int rc =
        walk_to(job, ALONG, walk, self->along + self->steps * self->count, err);
    if (rc)
        return rc;
    set_pulls(self, arith, tol);
    rc = walk_to(job, LENGTH, walk, &step->length, err);
    *more = !rc && !(step->length < least);
    if (!*more)
        return rc;
    step->cosine = bal_arith_round1(arith, bal_fn_cos(arith, step->length));
    step->sine = bal_arith_round1(arith, bal_fn_sin(arith, step->length));
    rc = walk_to(job, MOVED, walk, &step->norm, err);
    if (rc)
        return rc;
    if (!(step->norm > least))
        step->norm = 0;
    self->steps++;
    return 0;
}

int bal_karcher_follow(bal_karcher *self, bal_walk *walk, const bal_tile *tile,
                       double tol, bal_error *err)
{
    following job = {
        .self = self,
        .single = bal_arith_single(tile->arith),
        .lines = bal_lines_whole(tile->extent),
    };
    bool more = true;

    job.sums = calloc(self->count, sizeof(*job.sums));
    if (!job.sums)
        return bal_fail_memory(err, "the norms of a tensor");
    int rc = walk_to(&job, START, walk, &self->start, err);
    if (self->start < bal_arith_term(&job.single, tol))
        self->start = 0;
    while (!rc && more && self->steps < self->most)
        rc = take_step(&more, self, &job, walk, tile, tol, err);
    free(job.sums);
    return rc;
}
