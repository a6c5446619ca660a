/* Two adapters, module by module, as the maps they are: the difference of two
 * maps is a map of low rank, too. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/pool.h"
#include "merge/angles.h"
#include "merge/loss.h"
#include "merge/lowrank.h"

/* What is compared, and what came of it. */
typedef struct pair {
    const bal_lora *sides[2]; /* NULL: not there */
    size_t in, out;
    bal_lora_row row;
} pair;

typedef struct comparison {
    bal_model *models[2];
    bool spaces;
    bal_loras loras[2];
    pair *pairs;
    size_t count;
} comparison;

static void comparison_done(comparison *self)
{
    bal_loras_done(&self->loras[0]);
    bal_loras_done(&self->loras[1]);
    free(self->pairs);
}

/* b NULL: the first has no partner. `side` is which adapter a is of. */
static int make_pair(comparison *self, size_t side, const bal_lora *a,
                     const bal_lora *b, bal_error *err)
{
    if (b && (a->in != b->in || a->out != b->out))
        return bal_fail(err, BAL_EINVAL,
                        "module '%s' has another shape in the second adapter",
                        a->module);
    pair *made = &self->pairs[self->count++];
    *made = (pair){ .in = (size_t)a->in,
                    .out = (size_t)a->out,
                    .row = { .module = a->module } };
    made->sides[side] = a;
    made->sides[!side] = b;
    made->row.rank_a = made->sides[0] ? made->sides[0]->rank : 0;
    made->row.rank_b = made->sides[1] ? made->sides[1]->rank : 0;
    return 0;
}

/* Both are sorted by module. */
static int make_pairs(comparison *self, bal_error *err)
{
    const bal_loras *a = &self->loras[0];
    const bal_loras *b = &self->loras[1];
    size_t i = 0;
    size_t k = 0;
    int rc = 0;

    self->pairs = calloc(a->count + b->count + 1, sizeof(*self->pairs));
    if (!self->pairs)
        return bal_fail_memory(err, "comparing adapters");
    while (!rc && (i < a->count || k < b->count)) {
        int order = i == a->count ? 1
                    : k == b->count
                        ? -1
                        : strcmp(a->rows[i].module, b->rows[k].module);
        rc = order > 0 ? make_pair(self, 1, &b->rows[k], NULL, err)
                       : make_pair(self, 0, &a->rows[i],
                                   order ? NULL : &b->rows[k], err);
        i += order <= 0;
        k += order >= 0;
    }
    return rc;
}

/* Of a, b or b - a, by what each side's factor is. */
static int spectrum_of(bal_spectrum *out, const comparison *self,
                       const pair *of, const double factors[2], bal_error *err)
{
    BAL_LOCAL(bal_lowrank) map = { 0 };
    size_t rank = 0;
    size_t at = 0;

    for (size_t i = 0; i < 2; i++)
        rank += of->sides[i] && factors[i] != 0 ? of->sides[i]->rank : 0;
    int rc = bal_lowrank_init(&map, of->out, of->in, rank, err);
    for (size_t i = 0; i < 2 && !rc; i++) {
        if (!of->sides[i] || factors[i] == 0)
            continue;
        rc = bal_lowrank_read(&map, at, factors[i], self->models[i],
                              of->sides[i], err);
        at += of->sides[i]->rank;
    }
    return rc ? rc : bal_spectrum_init(out, &map, err);
}

static int compare_spaces(bal_lora_row *row, const bal_spectrum *a,
                          const bal_spectrum *b, bal_error *err)
{
    bal_angles columns;
    bal_angles rows;
    int rc = bal_angles_between(&columns, &rows, a, b, err);
    if (rc)
        return rc;

    row->columns = columns.overlap;
    row->column_angle = columns.largest;
    row->rows = rows.overlap;
    row->row_angle = rows.largest;
    return 0;
}

static int compare_one(size_t i, void *ctx, bal_error *err)
{
    static const double factors[][2] = { { 1, 0 }, { 0, 1 }, { -1, 1 } };
    comparison *self = ctx;
    pair *of = &self->pairs[i];
    BAL_LOCAL(bal_spectrum) a = { 0 };
    BAL_LOCAL(bal_spectrum) b = { 0 };
    BAL_LOCAL(bal_spectrum) between = { 0 };
    int rc = spectrum_of(&a, self, of, factors[0], err);

    if (!rc)
        rc = spectrum_of(&b, self, of, factors[1], err);
    if (!rc)
        rc = spectrum_of(&between, self, of, factors[2], err);
    if (!rc && self->spaces)
        rc = compare_spaces(&of->row, &a, &b, err);
    if (rc)
        return bal_within(err, rc, "module '%s'", of->row.module);
    of->row.norm_a = bal_spectrum_norm(&a);
    of->row.norm_b = bal_spectrum_norm(&b);
    of->row.difference = bal_spectrum_norm(&between);
    return 0;
}

static bal_residual sum_up(const comparison *self)
{
    bal_loss sum = { 0 };

    for (size_t i = 0; i < self->count; i++)
        bal_loss_add(&sum, &self->pairs[i].row);
    return bal_loss_residual(&sum);
}

static int compare(bal_residual *residual, comparison *self, bal_work *work,
                   bal_lora_fn *fn, void *ctx, bal_error *err)
{
    int rc = bal_loras_read(&self->loras[0], self->models[0], err);

    if (!rc)
        rc = bal_loras_read(&self->loras[1], self->models[1], err);
    if (!rc)
        rc = make_pairs(self, err);
    if (!rc)
        rc = bal_pool_run(work, self->count, compare_one, self, err);
    if (rc)
        return rc;
    if (residual)
        *residual = sum_up(self);
    for (size_t i = 0; fn && i < self->count; i++) {
        if (fn(ctx, &self->pairs[i].row))
            break;
    }
    return 0;
}

int bal_lora_compare(bal_residual *residual, bal_model *a, bal_model *b,
                     bal_work *work, bal_lora_fn *fn, void *ctx, bal_error *err)
{
    BAL_LOCAL(comparison) self = { .models = { a, b } };

    return compare(residual, &self, work, fn, ctx, err);
}

int bal_lora_spaces(bal_residual *residual, bal_model *a, bal_model *b,
                    bal_work *work, bal_lora_fn *fn, void *ctx, bal_error *err)
{
    BAL_LOCAL(comparison) self = { .models = { a, b }, .spaces = true };

    return compare(residual, &self, work, fn, ctx, err);
}
