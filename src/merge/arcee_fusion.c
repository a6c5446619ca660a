#include "merge/arcee_fusion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/rows.h"

/* mergekit's: added to probabilities, so that none is 0. */
static const double never = 1e-8;

enum {
    QUARTILES = 3,
    /* Elements that mergekit looks at for quartiles. */
    SAMPLES = 1000000,
    /* Values and numbers that are taken at once. */
    PIECE = 1024,
    /* Divergences of rows of so many elements are kept, a double each; of
     * shorter ones they are computed again each time. */
    LONG_ROW = 64,
    /* Rows of scratch. */
    ROW_P = 0,
    ROW_Q = 1,
    ROW_IMPORTANCE = 2,
};

const bal_param bal_arcee_params[] = { { 0 } };

/* What prepare leaves. */
typedef struct fusion {
    double threshold;
    bool kept;
    double divergence[]; /* of each row, where they are kept */
} fusion;

uint64_t bal_arcee_align(const bal_extent *extent)
{
    return extent->row;
}

static double *scratch_row(const bal_tile *tile, int row)
{
    return tile->scratch + (size_t)row * tile->n;
}

/* ---- how much elements matter ------------------------------------------- */

static double largest(const double *x, size_t n)
{
    double max = x[0];

    for (size_t k = 1; k < n; k++) {
        if (x[k] > max || x[k] != x[k])
            max = x[k];
    }
    return max;
}

/* r(r(softmax) + 1e-8), the softmax in F32, but for its sum: torch adds lanes
 * of the row, whose sum is nearer to the exact one than that of its other sums.
 */
static void probabilities(const bal_arith *arith, double *out, const double *x,
                          size_t n)
{
    const bal_arith single = bal_arith_single(arith);
    double max = largest(x, n);
    double sum = 0;

    for (size_t k = 0; k < n; k++) {
        out[k] = bal_fn_exp(&single, bal_arith_f32(&single, x[k] - max));
        sum += out[k];
    }
    bal_op_over(&single, out, out, bal_arith_f32(&single, sum), n);
    bal_arith_round(arith, out, n);
    bal_op_plus(arith, out, out, never, n);
}

/* Of the n elements from `from` on, the sum of p log(p / q). */
static double divergence(const bal_tile *tile, size_t from, size_t n)
{
    const bal_arith *arith = tile->arith;
    double *p = scratch_row(tile, ROW_P) + from;
    double *q = scratch_row(tile, ROW_Q) + from;
    bal_sum sum;

    probabilities(arith, p, tile->inputs[0] + from, n);
    probabilities(arith, q, tile->base + from, n);
    bal_op_div(arith, q, p, q, n);
    for (size_t k = 0; k < n; k++)
        q[k] = bal_fn_log(arith, q[k]);
    bal_arith_round(arith, q, n);
    bal_sum_init(&sum, arith, BAL_FOLD_DOT, n);
    bal_sum_add(&sum, p, q, n);
    return bal_sum_end(&sum);
}

/* Of each element of the tile, r(|change| * divergence), which is returned. The
 * divergences are those that are kept, or with learn are put there. */
static const double *importance(const bal_tile *tile, fusion *learn,
                                const fusion *known)
{
    double *out = scratch_row(tile, ROW_IMPORTANCE);
    size_t size = (size_t)tile->extent->row;

    bal_op_sub(tile->arith, out, tile->inputs[0], tile->base, tile->n);
    for (size_t from = 0; from < tile->n; from += size) {
        size_t row = (size_t)(tile->start + from) / size;
        double factor = known->kept && !learn ? known->divergence[row]
                                              : divergence(tile, from, size);

        if (learn && learn->kept)
            learn->divergence[row] = factor;
        for (size_t k = from; k < from + size; k++)
            out[k] = fabs(out[k]);
        bal_op_scale(tile->arith, out + from, out + from, factor, size);
    }
    return out;
}

/* ---- samples ------------------------------------------------------------ */

uint64_t bal_arcee_draws(const bal_extent *extent, size_t input,
                         const bal_values *values)
{
    (void)input;
    (void)values;
    return extent->total > SAMPLES
               ? SAMPLES * bal_torch_randint_draws(extent->total)
               : 0;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The elements that mergekit looks at, in their order, some of them more than
 * once; *out is NULL if it is all. */
static int draw_samples(uint64_t **out, const bal_tile *tile, bal_error *err)
{
    uint64_t total = tile->extent->total;
    size_t each = bal_torch_randint_draws(total);
    uint32_t drawn[2 * PIECE];

    if (!tile->stream || total <= SAMPLES)
        return 0;
    uint64_t *samples = malloc(SAMPLES * sizeof(*samples));
    if (!samples)
        return bal_fail_memory(err, "weighing changes");
    for (size_t at = 0; at < SAMPLES; at += PIECE) {
        size_t n = bal_min(SAMPLES - at, PIECE);

        bal_torch_stream_take(tile->stream, tile->drawn[0] + at * each, drawn,
                              n * each);
        for (size_t k = 0; k < n; k++)
            samples[at + k] = bal_torch_randint(drawn + k * each, total);
    }
    qsort(samples, SAMPLES, sizeof(*samples), ascending);
    *out = samples;
    return 0;
}

/* ---- quartiles ---------------------------------------------------------- */

typedef struct quartiles {
    fusion *self;
    bool learnt; /* divergences are known */
    uint64_t *samples;
    size_t sampled; /* of them, in this walk */
    bool open[QUARTILES];
    bal_ranking *of[QUARTILES];
} quartiles;

static void quartiles_done(quartiles *self)
{
    for (size_t i = 0; i < QUARTILES; i++)
        bal_ranking_free(self->of[i]);
    free(self->samples);
}

static void rank_values(quartiles *job, const double *values, size_t n)
{
    for (size_t i = 0; i < QUARTILES; i++) {
        if (job->open[i])
            bal_ranking_add(job->of[i], values, n);
    }
}

/* What of a tile was sampled. */
static void rank_samples(quartiles *job, const bal_tile *tile,
                         const double *values)
{
    uint64_t end = tile->start + tile->n;
    double piece[PIECE];
    size_t n;

    do {
        n = 0;
        while (n < PIECE && job->sampled < SAMPLES &&
               job->samples[job->sampled] < end)
            piece[n++] = values[job->samples[job->sampled++] - tile->start];
        rank_values(job, piece, n);
    } while (n);
}

static int rank_tile(void *ctx, const bal_tile *tile, bal_error *err)
{
    quartiles *job = ctx;
    fusion *learn = job->learnt ? NULL : job->self;
    const double *values = importance(tile, learn, job->self);
    (void)err;

    if (job->samples)
        rank_samples(job, tile, values);
    else
        rank_values(job, values, tile->n);
    return 0;
}

/* Quartile i is the value of index trunc((i + 1) / 4 * (total - 1)). */
static int start_quartiles(quartiles *job, uint64_t total, bal_error *err)
{
    uint64_t last = total - 1;

    for (size_t i = 0; i < QUARTILES; i++) {
        uint64_t index = last / 4 * (i + 1) + last % 4 * (i + 1) / 4;
        int rc =
            bal_ranking_new(&job->of[i], total, index, index + 1, false, err);
        if (rc)
            return rc;
        bal_ranking_ask(job->of[i], BAL_RANK_BY_SIGN | BAL_RANK_VALUES);
        job->open[i] = true;
    }
    return 0;
}

static int find_quartiles(quartiles *job, bal_walk *walk, uint64_t total,
                          bal_error *err)
{
    int rc = start_quartiles(job, job->samples ? SAMPLES : total, err);
    bool again = true;

    while (!rc && again) {
        job->sampled = 0;
        rc = bal_view_tiles(walk, rank_tile, job, err);
        job->learnt = true;
        again = false;
        for (size_t i = 0; !rc && i < QUARTILES; i++) {
            job->open[i] = job->open[i] && bal_ranking_next(job->of[i]);
            again = again || job->open[i];
        }
    }
    return rc;
}

static double quartile_at(const quartiles *self, size_t i)
{
    bal_ranked ranked;

    bal_ranking_end(self->of[i], &ranked);
    return ranked.least;
}

/* The median + 1.5 * (third quartile - first). */
static double threshold_of(const bal_arith *arith, const quartiles *job)
{
    double low = quartile_at(job, 0);
    double median = quartile_at(job, 1);
    double high = quartile_at(job, 2);
    double apart;

    bal_op_sub(arith, &apart, &high, &low, 1);
    bal_op_scale(arith, &apart, &apart, 1.5, 1);
    bal_op_add(arith, &apart, &median, &apart, 1);
    return apart;
}

int bal_arcee_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                      const bal_values *values, bal_error *err)
{
    const bal_extent *extent = tile->extent;
    bool kept = extent->row >= LONG_ROW;
    uint64_t rows = kept ? extent->total / extent->row : 0;
    fusion *self =
        calloc(1, sizeof(*self) + (size_t)rows * sizeof(self->divergence[0]));
    (void)values;
    if (!self)
        return bal_fail_memory(err, "weighing changes");

    BAL_LOCAL(quartiles) job = { .self = self };
    self->kept = kept;
    int rc = draw_samples(&job.samples, tile, err);
    if (!rc && extent->total)
        rc = find_quartiles(&job, walk, extent->total, err);
    if (!rc && extent->total)
        self->threshold = threshold_of(tile->arith, &job);
    if (rc)
        free(self);
    else
        *out = self;
    return rc;
}

/* ---- merging ------------------------------------------------------------ */

int bal_arcee_merge(double *out, const bal_tile *tile, const bal_values *values,
                    bal_error *err)
{
    const bal_arith single = bal_arith_single(tile->arith);
    const fusion *self = tile->prepared;
    const double *weight = importance(tile, NULL, self);
    (void)values;
    (void)err;

    bal_op_sub(tile->arith, out, tile->inputs[0], tile->base, tile->n);
    for (size_t k = 0; k < tile->n; k++) {
        /* mergekit multiplies by 0, which leaves a NaN of what is not finite.
         */
        double left = single.mergekit ? out[k] * 0 : 0;
        out[k] = weight[k] >= self->threshold ? out[k] : left;
    }
    bal_op_add(&single, out, tile->base, out, tile->n);
    return 0;
}
