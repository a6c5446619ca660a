#include "merge/ram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "merge/rows.h"

const bal_param bal_ram_params[] = {
    {
        .name = "epsilon",
        .type = BAL_PARAM_FLOAT,
        .fallback = "1e-5",
        .low = 0,
        .high = HUGE_VAL,
        .mergekit = "epsilon",
        .help = "changes up to this size do not count",
    },
    { 0 },
};

const bal_param bal_ramplus_params[] = {
    {
        .name = "r",
        .type = BAL_PARAM_FLOAT,
        .fallback = "0.1",
        .low = -HUGE_VAL,
        .high = HUGE_VAL,
        .mergekit = "r",
        .help = "how much unique changes grow with the part that is shared",
    },
    {
        .name = "alpha",
        .type = BAL_PARAM_FLOAT,
        .fallback = "0.2",
        .low = 0,
        .high = HUGE_VAL,
        .mergekit = "alpha",
        .help = "most that shared over unique counts as",
    },
    {
        .name = "epsilon",
        .type = BAL_PARAM_FLOAT,
        .fallback = "1e-5",
        .low = 0,
        .high = HUGE_VAL,
        .mergekit = "epsilon",
        .help = "changes up to this size do not count",
    },
    { 0 },
};

/* The first row of scratch becomes how many inputs are active, 1 where none is;
 * the rows after it the inputs with 0 where they are not active. */
static void activate(const bal_tile *tile, const bal_values *values)
{
    double epsilon =
        bal_arith_term(tile->arith, bal_value_float(values, "epsilon"));
    double *active = tile->scratch;
    size_t n = tile->n;

    memset(active, 0, n * sizeof(*active));
    for (size_t i = 0; i < tile->count; i++) {
        double *row = tile->scratch + (i + 1) * n;
        const double *x = tile->inputs[i];

        for (size_t k = 0; k < n; k++) {
            bool on = fabs(x[k]) > epsilon;
            active[k] += on ? 1 : 0;
            row[k] = on ? x[k] : 0;
        }
    }
    for (size_t k = 0; k < n; k++)
        active[k] = active[k] < 1 ? 1 : active[k];
}

static int sum_rows(double *out, const bal_tile *tile, const bal_arith *arith,
                    bal_error *err)
{
    bal_range range = bal_tile_range(tile);
    const double **rows = NULL;
    int rc =
        bal_rows_new(&rows, tile->scratch + tile->n, tile->count, tile->n, err);
    if (rc)
        return rc;

    bal_op_sum(arith, out, rows, tile->count, &range);
    free(rows);
    return 0;
}

int bal_ram_merge(double *out, const bal_tile *tile, const bal_values *values,
                  bal_error *err)
{
    size_t n = tile->n;

    activate(tile, values);
    for (size_t i = 0; i < tile->count; i++) {
        double *row = tile->scratch + (i + 1) * n;
        bal_op_div(tile->arith, row, row, tile->scratch, n);
    }
    return sum_rows(out, tile, tile->arith, err);
}

/* ---- ramplus_tl --------------------------------------------------------- */

/* What prepare leaves, for each input. */
typedef struct boost {
    uint64_t shared, unique; /* active elements, with others and alone */
    double factor;
} boost;

typedef struct counting {
    double epsilon;
    boost *boosts;
} counting;

static int count_tile(void *ctx, const bal_tile *tile, bal_error *err)
{
    counting *self = ctx;
    (void)err;

    for (size_t k = 0; k < tile->n; k++) {
        size_t active = 0;
        for (size_t i = 0; i < tile->count; i++)
            active += fabs(tile->inputs[i][k]) > self->epsilon ? 1 : 0;
        for (size_t i = 0; active && i < tile->count; i++) {
            bool on = fabs(tile->inputs[i][k]) > self->epsilon;
            self->boosts[i].shared += on && active > 1 ? 1 : 0;
            self->boosts[i].unique += on && active == 1 ? 1 : 0;
        }
    }
    return 0;
}

/* 1 + r * min(shared / unique, alpha), every step of F32. */
static double factor_of(const bal_arith *arith, const bal_values *values,
                        const boost *self)
{
    double alpha = bal_arith_f32(arith, bal_value_float(values, "alpha"));
    double least = bal_arith_f32(arith, bal_value_float(values, "epsilon"));
    double r = bal_arith_f32(arith, bal_value_float(values, "r"));
    double below = bal_arith_f32(arith, (double)self->unique);
    double ratio = bal_arith_f32(arith, (double)self->shared);

    ratio = bal_arith_f32(arith, ratio / (below < least ? least : below));
    ratio = ratio > alpha ? alpha : ratio;
    return bal_arith_f32(arith, 1 + bal_arith_f32(arith, r * ratio));
}

int bal_ramplus_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                        const bal_values *values, bal_error *err)
{
    boost *boosts = calloc(tile->count + 1, sizeof(*boosts));
    if (!boosts)
        return bal_fail_memory(err, "counting changes");

    counting job = {
        .epsilon =
            bal_arith_term(tile->arith, bal_value_float(values, "epsilon")),
        .boosts = boosts,
    };
    int rc = bal_view_tiles(walk, count_tile, &job, err);
    for (size_t i = 0; i < tile->count; i++)
        boosts[i].factor = factor_of(tile->arith, values, &boosts[i]);
    if (rc)
        free(boosts);
    else
        *out = boosts;
    return rc;
}

int bal_ramplus_merge(double *out, const bal_tile *tile,
                      const bal_values *values, bal_error *err)
{
    const bal_arith single = bal_arith_single(tile->arith);
    const boost *boosts = tile->prepared;
    const double *active = tile->scratch;
    size_t n = tile->n;

    activate(tile, values);
    for (size_t i = 0; i < tile->count; i++) {
        double *row = tile->scratch + (i + 1) * n;

        bal_op_div(tile->arith, row, row, active, n);
        for (size_t k = 0; k < n; k++)
            row[k] *= active[k] > 1 ? 1 : boosts[i].factor;
        bal_arith_round(&single, row, n);
    }
    return sum_rows(out, tile, &single, err);
}
