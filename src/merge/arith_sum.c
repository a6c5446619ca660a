/* Sums over elements. What is precise goes to 16 lanes of double. torch's CPU
 * kernels keep 8 lanes of F32 (4 of F64) in four chains, a vector to each in
 * turn; of BF16 and F16 a vector has 16 elements, the halves of which are added
 * first. Its norm keeps 8 lanes (4 of F64, a single one of F16) and no chains.
 * The order of torch's additions is all that is taken from it: what follows
 * adds in double and rounds to F32, which is the same. */
#include "merge/arith_sum.h"

#include <math.h>
#include <string.h>

#include "core/arith.h"
#include "kernel/convert.h"
#include "merge/arith.h"

enum { HELD = 64, PIECE = 512, LANES = 16, WIDTH = 32 };

static bool narrow(const bal_sum *self)
{
    return self->arith->work != BAL_F64;
}

static bool halves(const bal_sum *self)
{
    return self->arith->work == BAL_BF16 || self->arith->work == BAL_F16;
}

static inline double near(double x, bool f32)
{
    return f32 ? (double)(float)x : x;
}

/* ---- the lanes ----------------------------------------------------------- */

static size_t lanes_of(const bal_sum *self)
{
    return halves(self) && self->vector > 1 ? self->vector / 2 : self->vector;
}

/* Level 0 of all chains, of values that are F32. */
static inline void add_block(double *lanes, const double *x, size_t n, bool f32)
{
    for (size_t i = 0; i < n; i++)
        lanes[i] = near(lanes[i] + x[i], f32);
}

static void carry(bal_sum *self, size_t width, unsigned carries)
{
    for (unsigned j = 0; j < carries; j++) {
        double *level = self->lanes + j * width;
        add_block(level + width, level, width, narrow(self));
        memset(level, 0, width * sizeof(*level));
    }
}

/* The lanes of a vector: of halves, element k and k + 8 in one. */
static void fold_vector(double *out, const bal_sum *self, const double *x)
{
    size_t lanes = lanes_of(self);

    for (size_t i = 0; i < lanes; i++) {
        out[i] = x[i];
        if (lanes < self->vector)
            out[i] = (double)(float)(x[i] + x[i + lanes]);
    }
}

/* Whole blocks of four vectors, of which none but the last is followed by a
 * carry. */
static void add_run(bal_sum *self, const double *x, size_t count)
{
    const bal_kernels *kernels = bal_kernels_use();
    size_t width = BAL_SUM_CHAINS * lanes_of(self);

    if (width == WIDTH && halves(self))
        kernels->lanes_halves(self->lanes, x, count);
    else if (width == WIDTH)
        kernels->lanes_f32(self->lanes, x, count);
    else if (!narrow(self) && width == LANES)
        kernels->lanes16(self->lanes, x, count);
    else
        for (size_t at = 0; at < count; at += width)
            add_block(self->lanes, x + at, width, narrow(self));
}

/* count elements are whole blocks of four vectors. */
static void add_chains(bal_sum *self, const double *x, size_t count)
{
    size_t width = BAL_SUM_CHAINS * lanes_of(self);
    size_t step = BAL_SUM_CHAINS * self->vector;
    uint64_t chain = self->total / self->vector / BAL_SUM_CHAINS;
    unsigned power = bal_sum_power(chain);
    uint64_t turn = (uint64_t)1 << power;

    for (size_t at = 0; at < count;) {
        uint64_t blocks = turn - self->blocks % turn;
        size_t run = (size_t)bal_min(blocks, (count - at) / step);

        add_run(self, x + at, run * step);
        self->blocks += run;
        carry(self, width, bal_sum_carries(self->blocks, power));
        at += run * step;
    }
}

/* Lanes of a norm, and elements that are not added one by one at the end. */
static size_t norm_lanes(const bal_sum *self)
{
    if (self->arith->work == BAL_F16)
        return 1;
    return narrow(self) ? 8 : 4;
}

/* count elements are whole vectors of the norm. */
static inline void add_squares(double *sums, size_t lanes, const double *x,
                               size_t count)
{
    for (size_t at = 0; at < count; at += lanes) {
        for (size_t i = 0; i < lanes; i++)
            sums[i] += x[at + i] * x[at + i];
    }
}

static inline void add_squares32(double *sums, size_t lanes, const double *x,
                                 size_t count)
{
    float some[8];

    for (size_t i = 0; i < lanes; i++)
        some[i] = (float)sums[i];
    for (size_t at = 0; at < count; at += lanes) {
        for (size_t i = 0; i < lanes; i++) {
            float value = (float)x[at + i];
            some[i] += value * value;
        }
    }
    for (size_t i = 0; i < lanes; i++)
        sums[i] = (double)some[i];
}

static void add_norm(bal_sum *self, const double *x, size_t count)
{
    if (!narrow(self))
        add_squares(self->lanes, 4, x, count);
    else if (self->arith->work == BAL_F16)
        add_squares32(self->lanes, 1, x, count);
    else
        bal_kernels_use()->squares_f32(self->lanes, x, count);
}

/* count is a multiple of HELD. */
static void add_whole(bal_sum *self, const double *x, size_t count)
{
    if (!self->arith->mergekit)
        bal_kernels_use()->lanes16(self->lanes, x, count);
    else if (self->fold != BAL_FOLD_NORM)
        add_chains(self, x, count);
    else
        add_norm(self, x, count);
}

/* ---- elements in --------------------------------------------------------- */

void bal_sum_init(bal_sum *self, const bal_arith *arith, bal_fold fold,
                  uint64_t total)
{
    memset(self, 0, sizeof(*self));
    self->arith = arith;
    self->fold = fold;
    self->total = total;
    self->vector = narrow(self) ? 8 : 4;
    if (halves(self))
        self->vector = 16;
    if (total < self->vector && fold != BAL_FOLD_NORM)
        self->vector = 1;
}

static void push(bal_sum *self, const double *x, size_t n)
{
    size_t some = 0;

    if (self->count) {
        some = (size_t)bal_min(n, HELD - self->count);
        memcpy(self->held + self->count, x, some * sizeof(*x));
        self->count += some;
        if (self->count < HELD)
            return;
        add_whole(self, self->held, HELD);
    }
    size_t whole = (n - some) / HELD * HELD;
    add_whole(self, x + some, whole);
    self->count = n - some - whole;
    if (self->count)
        memcpy(self->held, x + some + whole, self->count * sizeof(*x));
}

/* What is summed of a piece, r() done. In mergekit a norm squares for itself.
 */
static const double *terms(const bal_sum *self, double *out, const double *x,
                           const double *y, size_t n)
{
    if (self->fold == BAL_FOLD_SUM)
        return x;
    if (self->fold == BAL_FOLD_DOT)
        bal_op_mul(self->arith, out, x, y, n);
    else if (self->fold == BAL_FOLD_ABS)
        bal_kernels_use()->sizes(out, x, n);
    else if (self->arith->mergekit)
        return x;
    else
        bal_op_mul(self->arith, out, x, x, n);
    return out;
}

void bal_sum_add(bal_sum *self, const double *x, const double *y, size_t n)
{
    double some[PIECE];

    for (size_t at = 0; at < n; at += PIECE) {
        size_t count = (size_t)bal_min(n - at, PIECE);
        const double *other = y ? y + at : NULL;
        push(self, terms(self, some, x + at, other, count), count);
    }
}

/* ---- the result ---------------------------------------------------------- */

static double end_precise(bal_sum *self)
{
    double sum = 0;

    for (size_t i = 0; i < self->count; i++)
        self->lanes[i % LANES] += self->held[i];
    for (size_t i = 0; i < LANES; i++)
        sum += self->lanes[i];
    return sum;
}

/* The levels of all chains, the vectors that are left, the chains, the elements
 * that are left, the lanes: in this order. */
static double end_chains(bal_sum *self)
{
    size_t lanes = lanes_of(self);
    size_t width = BAL_SUM_CHAINS * lanes;
    size_t step = BAL_SUM_CHAINS * self->vector;
    size_t at = self->count / step * step;
    bool f32 = narrow(self);
    double some[8];
    double sum = 0;

    add_chains(self, self->held, at);
    for (size_t j = 1; j < BAL_SUM_LEVELS; j++)
        add_block(self->lanes, self->lanes + j * width, width, f32);
    for (; at + self->vector <= self->count; at += self->vector) {
        fold_vector(some, self, self->held + at);
        add_block(self->lanes, some, lanes, f32);
    }
    for (size_t k = 1; k < BAL_SUM_CHAINS; k++)
        add_block(self->lanes, self->lanes + k * lanes, lanes, f32);
    for (; at < self->count; at++)
        sum = near(sum + self->held[at], f32);
    for (size_t i = 0; i < lanes; i++)
        sum = near(sum + self->lanes[i], f32);
    return sum;
}

/* The last few squares are where torch's compiler made multiply and add one:
 * all but whole fours of what is left of a vector. */
static double end_norm(bal_sum *self)
{
    bool f32 = narrow(self);
    size_t whole = self->count / self->vector * self->vector;
    size_t fours = whole + (self->count - whole) / 4 * 4;

    add_norm(self, self->held, whole);
    double sum = self->lanes[0];
    for (size_t i = 1; i < norm_lanes(self); i++)
        sum = near(sum + self->lanes[i], f32);
    /* Of F64, no fours are left of a vector of 4. */
    if (f32)
        add_squares32(&sum, 1, self->held + whole, fours - whole);
    for (size_t i = fours; i < self->count; i++) {
        float x = (float)self->held[i];
        if (f32)
            sum = (double)fmaf(x, x, (float)sum);
        else
            sum = fma(self->held[i], self->held[i], sum);
    }
    return sum;
}

static double end_any(bal_sum *self)
{
    if (!self->arith->mergekit)
        return end_precise(self);
    return self->fold == BAL_FOLD_NORM ? end_norm(self) : end_chains(self);
}

double bal_sum_f32(const bal_sum *self)
{
    bal_sum copy = *self;
    double sum = end_any(&copy);

    if (self->fold == BAL_FOLD_NORM)
        sum = bal_arith_f32(self->arith, sqrt(sum));
    return pure64(sum);
}

double bal_sum_end(const bal_sum *self)
{
    return bal_arith_round1(self->arith, bal_sum_f32(self));
}
