/* M Q for an orthonormal Q of some columns more than are wanted, and M' M Q,
 * out of which the next Q is made, in one pass over M's rows. The iteration
 * ends when what the wanted rank keeps no longer grows. */
#include "merge/sketch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"
#include "merge/arith.h"
#include "merge/dense.h"

enum { ROWS = 16, MORE = 16, FIRST = 32, PASSES_MOST = 60 };

/* Of what is left out: less growth in a pass is none. */
static const double still = 1e-7;
/* Of all squares: less is rounding. */
static const double nothing = 0x1p-50;

typedef struct iteration {
    const bal_sketch *of;
    size_t width;  /* columns of q */
    double *q;     /* n x width, orthonormal */
    double *image; /* m x width: M q */
    double *back;  /* n x width: M' M q */
    double *block; /* ROWS rows of M */
    double *tau;
    double all; /* squares of M */
} iteration;

static void iteration_done(iteration *self)
{
    free(self->q);
    free(self->image);
    free(self->back);
    free(self->block);
    free(self->tau);
}

static double *room(size_t columns, size_t length)
{
    return calloc(columns * length + 1, sizeof(double));
}

static int iteration_init(iteration *self, const bal_sketch *of, size_t width,
                          bal_error *err)
{
    *self = (iteration){
        .of = of,
        .width = width,
        .q = room(width, of->n),
        .image = room(width, of->m),
        .back = room(width, of->n),
        .block = room(ROWS, of->n),
        .tau = room(1, width),
    };
    if (self->q && self->image && self->back && self->block && self->tau)
        return 0;
    return bal_fail_memory(err, "a sketch");
}

/* q = an orthonormal basis of what is in back. */
static void orthonormalise(iteration *self)
{
    size_t n = self->of->n;

    bal_qr(self->back, self->tau, n, self->width);
    memset(self->q, 0, n * self->width * sizeof(*self->q));
    for (size_t i = 0; i < self->width; i++)
        self->q[i * n + i] = 1;
    bal_qr_times(self->back, self->tau, n, self->width, self->q, self->width);
}

static int draw(iteration *self, bal_error *err)
{
    size_t n = self->of->n;
    bal_draws draws;
    float *drawn = malloc((n + 1) * sizeof(*drawn));
    if (!drawn)
        return bal_fail_memory(err, "a sketch");

    bal_draws_init(&draws, self->of->seed, 0, self->of->name);
    for (size_t i = 0; i < self->width; i++) {
        bal_draws_take(&draws, (uint64_t)i * n, drawn, n);
        for (size_t k = 0; k < n; k++)
            self->back[i * n + k] = (double)drawn[k] - 0.5;
    }
    free(drawn);
    orthonormalise(self);
    return 0;
}

/* Each column of q is used for some rows while it is near. */
static void take_rows(iteration *self, size_t start, size_t count)
{
    size_t n = self->of->n;
    size_t m = self->of->m;

    for (size_t i = 0; i < count; i++) {
        const double *row = self->block + i * n;
        self->all += bal_dot(row, row, n);
    }
    for (size_t k = 0; k < self->width; k++) {
        double *image = self->image + k * m + start;
        for (size_t i = 0; i < count; i++)
            image[i] = bal_dot(self->block + i * n, self->q + k * n, n);
        for (size_t i = 0; i < count; i++)
            bal_kernels_use()->axpy64(self->back + k * n, image[i],
                                      self->block + i * n, n);
    }
}

static int pass(iteration *self, bal_error *err)
{
    const bal_sketch *of = self->of;
    int rc = 0;

    memset(self->back, 0, of->n * self->width * sizeof(*self->back));
    self->all = 0;
    for (size_t start = 0; start < of->m && !rc; start += ROWS) {
        size_t count = bal_min(of->m - start, ROWS);
        rc = of->rows(self->block, of->ctx, start, count, err);
        if (!rc)
            take_rows(self, start, count);
    }
    if (!rc && !isfinite(self->all))
        rc = bal_fail(err, BAL_EUNSUPPORTED,
                      "a difference that is not finite has no nearest of lower "
                      "rank");
    return rc;
}

static int spectrum_of(bal_spectrum *out, const iteration *self, bal_error *err)
{
    const bal_sketch *of = self->of;
    BAL_LOCAL(bal_lowrank) map = { 0 };
    int rc = bal_lowrank_init(&map, of->m, of->n, self->width, err);
    if (rc)
        return rc;

    memcpy(map.b, self->image, of->m * self->width * sizeof(*map.b));
    memcpy(map.a, self->q, of->n * self->width * sizeof(*map.a));
    return bal_spectrum_init(out, &map, err);
}

static double kept_by(const bal_spectrum *spectrum, size_t rank)
{
    double kept = 0;

    for (size_t i = 0; i < rank && i < spectrum->count; i++)
        kept += spectrum->sigma[i] * spectrum->sigma[i];
    return kept;
}

/* The least rank that keeps so much, one more than there are if none does. */
static size_t least_rank(const bal_spectrum *spectrum, double wanted)
{
    double kept = 0;
    size_t rank = 0;

    while (rank < spectrum->count && kept < wanted) {
        kept += spectrum->sigma[rank] * spectrum->sigma[rank];
        rank++;
    }
    return kept < wanted ? spectrum->count + 1 : bal_max(rank, 1);
}

/* Is it so far from `energy` (0: none is asked for) that more columns will be
 * needed? What an unfinished iteration keeps is too little, so that this may
 * be told too early, which makes the search no worse. */
static bool too_narrow(const bal_spectrum *out, const iteration *self,
                       size_t rank, double energy)
{
    size_t most = bal_min(self->of->m, self->of->n);

    return energy > 0 && self->width < most &&
           least_rank(out, energy * self->all) > rank;
}

/* With as many columns as width says. */
static int iterate(bal_spectrum *out, iteration *self, size_t rank,
                   double energy, bal_error *err)
{
    double before = 0;
    bool moves = true;
    int rc = draw(self, err);

    for (int i = 0; i < PASSES_MOST && moves && !rc; i++) {
        bal_spectrum_done(out);
        rc = pass(self, err);
        if (!rc)
            rc = spectrum_of(out, self, err);
        if (rc)
            break;
        double kept = kept_by(out, rank);
        double rest = self->all - kept;
        moves = rest > nothing * self->all && kept - before > still * rest;
        before = kept;
        if (i && too_narrow(out, self, rank, energy))
            break;
        /* A basis of all there is: nothing is found by turning it. */
        if (self->width == self->of->n)
            break;
        if (moves)
            orthonormalise(self);
    }
    return rc;
}

static size_t width_for(const bal_sketch *self, size_t rank)
{
    return bal_min(2 * rank + MORE, bal_min(self->m, self->n));
}

/* Of an energy: wider and wider, until a rank keeps it that is well inside. All
 * there is has it in any case, but for rounding. */
int bal_sketch_run(bal_spectrum *out, const bal_sketch *self, size_t *rank,
                   double energy, bal_error *err)
{
    size_t most = bal_min(self->m, self->n);
    size_t tried = *rank ? *rank : FIRST;

    for (;;) {
        BAL_LOCAL(iteration) run = { 0 };
        BAL_LOCAL(bal_spectrum) spectrum = { 0 };
        size_t width = width_for(self, tried);
        int rc = iteration_init(&run, self, width, err);
        if (!rc)
            rc = iterate(&spectrum, &run, tried, *rank ? 0 : energy, err);
        if (rc)
            return rc;
        size_t least = *rank ? *rank : least_rank(&spectrum, energy * run.all);
        bool enough = *rank || least <= tried || width == most;
        if (enough) {
            *rank = *rank ? *rank : bal_max(bal_min(least, spectrum.count), 1);
            *out = spectrum;
            spectrum = (bal_spectrum){ 0 };
            return 0;
        }
        tried *= 2;
    }
}
