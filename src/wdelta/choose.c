/* How to store a tensor: as asked for, or the smallest way that keeps a limit.
 *
 * What deltatensors would ruin is stored as sparse without loss instead, which
 * its readers take as well: integers, and differences that a float16 cannot
 * hold. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/pool.h"
#include "kernel/kernels.h"
#include "model/values.h"
#include "wdelta/plan.h"
#include "wdelta/widen.h"

void bal_wd_plan_reset(bal_wd_plan *self)
{
    free(self->before);
    free(self->tied);
    free(self->edges);
    free(self->scales);
    free(self->sizes);
    free(self->codecs);
    self->sizes = NULL;
    self->codecs = NULL;
    self->before = NULL;
    self->tied = NULL;
    self->edges = NULL;
    self->scales = NULL;
    self->kept = 0;
    self->ties = 0;
}

void bal_wd_plan_done(bal_wd_plan *self)
{
    bal_wd_plan_reset(self);
}

/* ---- strategies --------------------------------------------------------- */

/* int(n * part), as Python has it. */
static uint64_t part_of(uint64_t n, double part)
{
    double value = (double)n * part;

    return value >= (double)n ? n : (uint64_t)value;
}

static uint64_t at_least_one(uint64_t count, uint64_t n)
{
    return bal_min(bal_max(count, 1), n);
}

static int plan_exact(bal_wd_plan *plan, const bal_wd_source *from,
                      bal_error *err)
{
    bal_wd_plan_reset(plan);
    plan->kind = BAL_WD_SPARSE;
    plan->setting = 0.0;
    plan->index = plan->n <= INT32_MAX ? BAL_WD_I32 : BAL_WD_I64;
    plan->value = BAL_WD_F32;
    return bal_wd_select_all(plan, from, err);
}

static int plan_sparse(bal_wd_plan *plan, const bal_wd_source *from,
                       double sparsity, bal_error *err)
{
    bal_wd_ends ends;

    plan->kind = BAL_WD_SPARSE;
    plan->setting = sparsity;
    plan->index = BAL_WD_I64;
    plan->value = BAL_WD_F32;
    return bal_wd_select(
        plan, &ends, from,
        at_least_one(part_of(plan->n, 1.0 - sparsity), plan->n), err);
}

/* *fits is false where a float16 does not hold what it should. */
static void set_grid(bal_wd_plan *plan, const bal_wd_ends *ends, bool *fits)
{
    double range = (double)ends->high - (double)ends->low;
    bool flat = !ends->rest || range < 1e-8;
    static const uint16_t one = 0x3c00;
    uint16_t scale = 0;
    double step = range / 15.0;
    double low = (double)ends->low;
    const bal_kernels *kernels = bal_kernels_use();

    kernels->from_f64[BAL_F16](&plan->zero, &low, 1);
    kernels->from_f64[BAL_F16](&scale, &step, 1);
    plan->scale = flat ? one : scale;
    plan->low = ends->low;
    plan->range = flat ? 0.0f : (float)range;
    *fits = ends->finite && (plan->scale & 0x7c00) != 0x7c00;
}

static int plan_int4(bal_wd_plan *plan, const bal_wd_source *from,
                     double fraction, bool *fits, bal_error *err)
{
    bal_wd_ends ends;
    uint64_t keep = at_least_one(part_of(plan->n, fraction), plan->n);

    plan->kind = BAL_WD_INT4;
    plan->setting = fraction;
    plan->index = BAL_WD_I64;
    plan->value = BAL_WD_F16;
    plan->edges = calloc(plan->tiles + 1, sizeof(*plan->edges));
    if (!plan->edges)
        return bal_fail_memory(err, "planning a tensor");
    int rc = bal_wd_select(plan, &ends, from, keep, err);
    if (!rc)
        set_grid(plan, &ends, fits);
    return rc;
}

/* Groups of 2^k lie within tiles, and their scales need not be kept. */
static bool small_groups(uint64_t columns)
{
    return columns <= 128 && !(columns & (columns - 1));
}

static int plan_quantized(bal_wd_plan *plan, const bal_wd_source *from,
                          uint64_t columns, bal_error *err)
{
    plan->kind = BAL_WD_QUANTIZED;
    plan->columns = bal_max(columns, 1);
    return small_groups(plan->columns) ? 0 : bal_wd_scales(plan, from, err);
}

/* The columns that deltatensors takes: all but the first dimension. */
static uint64_t columns_of(const bal_tensor *entry, uint64_t n)
{
    if (entry->rank < 2)
        return n;
    return entry->shape[0] ? n / entry->shape[0] : 0;
}

/* ---- as asked for ------------------------------------------------------- */

static int as_asked(bal_wd_plan *plan, const bal_wd_source *from,
                    const bal_wdelta_options *options, bool *fits,
                    bal_error *err)
{
    bal_wd_kind kind = BAL_WD_INT4;
    uint64_t nonzero = 0;
    double fraction =
        options->outlier_fraction < 0 ? 0.01 : options->outlier_fraction;
    double sparsity = options->sparsity < 0 ? 0.9 : options->sparsity;

    if (options->strategy)
        (void)bal_wd_strategy_find(&kind, options->strategy);
    if (kind == BAL_WD_SPARSE)
        return plan_sparse(plan, from, sparsity, err);
    if (kind == BAL_WD_INT4)
        return plan_int4(plan, from, fraction, fits, err);
    int rc = bal_wd_census(&nonzero, fits, plan, from, err);
    if (rc || !*fits)
        return rc;
    return plan_quantized(
        plan, from, columns_of(bal_model_at(from->tuned, plan->tuned), plan->n),
        err);
}

/* ---- within a limit ----------------------------------------------------- */

/* Room for a range of three models: the base, the tuned one, and what a reader
 * would give. */
typedef struct measure {
    const bal_wd_source *from;
    const bal_wd_plan *plan;
    bal_compare
        lost[2]; /* what the base lacks of tuned, what the result does */
    double *values[3];
    uint8_t *raw;
    float *y, *sum;
} measure;

enum { PIECE = 4096 };

static int measure_room(measure *self, bal_error *err)
{
    size_t size = PIECE * (3 * sizeof(double) + 8 + sizeof(float)) +
                  BAL_WD_TILE * sizeof(float);
    uint8_t *room = bal_pool_scratch(self->from->work, BAL_WD_SLOT_RAW, size);
    if (!room)
        return bal_fail_memory(err, "measuring a tensor");

    for (size_t i = 0; i < 3; i++)
        self->values[i] = (double *)(void *)(room + i * sizeof(double) * PIECE);
    self->raw = room + 3 * sizeof(double) * PIECE;
    self->sum = (float *)(void *)(self->raw + (size_t)PIECE * 8);
    self->y = self->sum + PIECE;
    return 0;
}

static int read_range(const measure *self, bal_model *model, size_t entry,
                      uint64_t at, size_t n, bal_error *err)
{
    size_t width = bal_dtype_bits(bal_model_at(model, entry)->dtype) / 8;

    return bal_model_read(model, entry, at * width, self->raw, n * width, err);
}

static void as_doubles(const measure *self, size_t i, bal_dtype dtype, size_t n)
{
    bal_values_of(dtype)->read(self->values[i], self->raw, n, dtype);
}

/* y: what the file adds to elements [at, at + n). */
static int measure_piece(measure *self, uint64_t at, const float *y, size_t n,
                         bal_error *err)
{
    const bal_wd_source *from = self->from;
    const bal_wd_plan *plan = self->plan;
    const bal_kernels *kernels = bal_kernels_use();
    bal_dtype base = bal_model_at(from->base, plan->base)->dtype;
    int rc = read_range(self, from->base, plan->base, at, n, err);
    if (rc)
        return rc;
    as_doubles(self, 0, base, n);
    rc = read_range(self, from->tuned, plan->tuned, at, n, err);
    if (rc)
        return rc;
    as_doubles(self, 1, bal_model_at(from->tuned, plan->tuned)->dtype, n);
    rc = read_range(self, from->parent, plan->parent, at, n, err);
    if (rc)
        return rc;

    bal_wd_widen(self->sum, bal_model_at(from->parent, plan->parent)->dtype,
                 self->raw, n);
    kernels->add_f32(self->sum, self->sum, y, n);
    bal_wd_narrow(base, self->raw, self->sum, n);
    as_doubles(self, 2, base, n);
    kernels->compare[BAL_F64](&self->lost[0], self->values[0], self->values[1],
                              n);
    kernels->compare[BAL_F64](&self->lost[1], self->values[1], self->values[2],
                              n);
    return 0;
}

static int measure_tile(measure *self, size_t tile, bal_error *err)
{
    bal_wd_tile one;
    int rc = bal_wd_tile_read(&one, self->plan, self->from, tile, err);
    if (rc)
        return rc;

    bal_wd_tile_value(self->y, &one, self->plan);
    for (size_t at = 0; at < one.n && !rc; at += PIECE)
        rc = measure_piece(self, one.at + at, self->y + at,
                           (size_t)bal_min(PIECE, one.n - at), err);
    return rc;
}

/* Is |got - tuned| <= limit * |tuned - base|? */
static int keeps(bool *out, const bal_wd_plan *plan, const bal_wd_source *from,
                 double limit, bal_error *err)
{
    measure self = { .from = from, .plan = plan };
    bal_compared folds[2];
    int rc = measure_room(&self, err);

    for (size_t i = 0; i < plan->tiles && !rc; i++)
        rc = measure_tile(&self, i, err);
    bal_compare_fold(&folds[0], &self.lost[0]);
    bal_compare_fold(&folds[1], &self.lost[1]);
    *out = folds[1].wrong <= folds[0].wrong &&
           sqrt(folds[1].diff2) <= limit * sqrt(folds[0].diff2);
    return rc;
}

/* Ways to try. A group of 0 is a row. */
typedef struct way {
    bal_wd_kind kind;
    double fraction; /* int4 */
    uint64_t group;  /* quantized */
    double bytes;    /* what it takes */
} way;

static const way ways[] = {
    { BAL_WD_QUANTIZED, 0.0, 0, 0.0 },  { BAL_WD_QUANTIZED, 0.0, 64, 0.0 },
    { BAL_WD_QUANTIZED, 0.0, 16, 0.0 }, { BAL_WD_QUANTIZED, 0.0, 8, 0.0 },
    { BAL_WD_QUANTIZED, 0.0, 1, 0.0 },  { BAL_WD_INT4, 0.0, 0, 0.0 },
    { BAL_WD_INT4, 0.01, 0, 0.0 },      { BAL_WD_INT4, 0.05, 0, 0.0 },
    { BAL_WD_INT4, 0.15, 0, 0.0 },      { BAL_WD_SPARSE, 0.0, 0, 0.0 },
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static int compare_ways(const void *a, const void *b)
{
    const way *left = a;
    const way *right = b;

    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? -1 : 1;
    return left->kind < right->kind ? -1 : left->kind > right->kind;
}

/* Bytes; infinite for what cannot be. */
static double bytes_of(const way *one, const bal_wd_plan *plan,
                       uint64_t columns, uint64_t nonzero, bool finite)
{
    double n = (double)plan->n;
    double kept =
        (double)at_least_one(part_of(plan->n, one->fraction), plan->n);

    if (one->kind == BAL_WD_SPARSE)
        return (double)nonzero * (plan->n <= INT32_MAX ? 8.0 : 12.0);
    if (!finite || !plan->n || (one->group && plan->n % one->group))
        return (double)INFINITY;
    if (one->kind == BAL_WD_INT4)
        return (n - kept) / 2.0 + kept * 10.0 + 4.0;
    return n / 8.0 + 2.0 * n / (double)(one->group ? one->group : columns);
}

static int plan_way(bal_wd_plan *plan, const bal_wd_source *from,
                    const way *one, bool *fits, bal_error *err)
{
    const bal_tensor *entry = bal_model_at(from->tuned, plan->tuned);

    bal_wd_plan_reset(plan);
    if (one->kind == BAL_WD_SPARSE)
        return plan_exact(plan, from, err);
    if (one->kind == BAL_WD_INT4)
        return plan_int4(plan, from, one->fraction, fits, err);
    return plan_quantized(
        plan, from, one->group ? one->group : columns_of(entry, plan->n), err);
}

static int within(bal_wd_plan *plan, const bal_wd_source *from, double limit,
                  bal_error *err)
{
    way sorted[WAYS];
    uint64_t nonzero = 0;
    bool finite = true;
    uint64_t columns =
        columns_of(bal_model_at(from->tuned, plan->tuned), plan->n);
    int rc = bal_wd_census(&nonzero, &finite, plan, from, err);
    if (rc)
        return rc;

    memcpy(sorted, ways, sizeof(sorted));
    for (size_t i = 0; i < WAYS; i++)
        sorted[i].bytes = bytes_of(&ways[i], plan, columns, nonzero, finite);
    qsort(sorted, WAYS, sizeof(*sorted), compare_ways);
    for (size_t i = 0; i < WAYS && isfinite(sorted[i].bytes); i++) {
        bool fits = true;
        bool good = false;
        rc = plan_way(plan, from, &sorted[i], &fits, err);
        if (!rc && fits)
            rc = keeps(&good, plan, from, limit, err);
        if (rc || good)
            return rc;
    }
    rc = bal_fail(err, BAL_EUNSUPPORTED,
                  "tensor '%.200s': no way to store it keeps an error of %g",
                  plan->name, limit);
    return bal_hint(err, rc, "--strategy lossless keeps every bit");
}

/* ---- choosing ----------------------------------------------------------- */

int bal_wd_choose(bal_wd_plan *plan, const bal_wd_source *from,
                  const bal_wdelta_options *options, bal_error *err)
{
    bool fits = true;
    int rc = 0;

    if (options->max_error >= 0)
        return within(plan, from, options->max_error, err);
    if (!bal_tensor_float(bal_model_at(from->tuned, plan->tuned)))
        return plan_exact(plan, from, err);
    rc = as_asked(plan, from, options, &fits, err);
    return rc || fits ? rc : plan_exact(plan, from, err);
}
