/* The two arithmetics, and the operations that methods are written in, so that
 * one body serves both.
 *
 * precise: everything in double, rounded once when the view is written.
 * mergekit: every operation is what mergekit 0.1.5 does on torch 2.13, on a
 * CPU: computed in F32, then rounded to the dtype D that the tensor is worked
 * on in (docs/methods.md, "Arithmetic"). Values are kept in doubles in both; +,
 * -, *, / and sqrt of F32 values in double, rounded to F32, are the F32
 * operations, for 53 >= 2 * 24 + 2. */
#ifndef MERGE_ARITH_H
#define MERGE_ARITH_H

#include "core/own.h"
#include "kernel/kernels.h"

typedef struct bal_arith {
    bool mergekit;
    bal_dtype work; /* D: BF16 F16 F32 F64. Not looked at unless mergekit */
} bal_arith;

/* r(): to F32 and then to D, in place; nothing in precise (and for D of F64).
 */
void bal_arith_round(const bal_arith *self, double *x, size_t n);
double bal_arith_round1(const bal_arith *self, double x);
/* The same to F32 alone, which is what is left of D inside torch's own loops.
 */
double bal_arith_f32(const bal_arith *self, double x);
/* A Python number as torch takes it beside a tensor: as F32 where it multiplies
 * or divides, rounded to D where it is added, compared or clamped to. precise:
 * as it is. */
double bal_arith_factor(const bal_arith *self, double s);
double bal_arith_term(const bal_arith *self, double s);

/* out = r(a op b); out may be a or b. A NaN comes out as one fixed NaN. */
void bal_op_add(const bal_arith *self, double *out, const double *a,
                const double *b, size_t n);
void bal_op_sub(const bal_arith *self, double *out, const double *a,
                const double *b, size_t n);
void bal_op_mul(const bal_arith *self, double *out, const double *a,
                const double *b, size_t n);
void bal_op_div(const bal_arith *self, double *out, const double *a,
                const double *b, size_t n);
/* out = r(a * s), r(a / s), r(a + s) with a number, by the rules above. */
void bal_op_scale(const bal_arith *self, double *out, const double *a, double s,
                  size_t n);
void bal_op_over(const bal_arith *self, double *out, const double *a, double s,
                 size_t n);
void bal_op_plus(const bal_arith *self, double *out, const double *a, double s,
                 size_t n);

/* Where a range is in its tensor: sums over inputs of 5 and more run in another
 * order at the tensor's end. */
typedef struct bal_range {
    uint64_t start; /* element */
    uint64_t total; /* of the tensor */
    size_t n;
} bal_range;

/* out[k] = r(sum over count inputs of in[i][k]), in F32 from 0 on, in the order
 * that torch.stack(in).sum(dim=0) adds in: up to 4 inputs in order, up to 15 as
 * well but for the last total mod 32 elements (F64: mod 16), which 4
 * interleaved chains sum; 16 and more in runs (arith_sum.h). precise: in
 * double, in order. out may be an input. */
void bal_op_sum(const bal_arith *self, double *out, const double *const *in,
                size_t count, const bal_range *range);

/* ---- sums over elements ------------------------------------------------- */

typedef enum bal_fold {
    BAL_FOLD_SUM,  /* of x */
    BAL_FOLD_ABS,  /* of |x| */
    BAL_FOLD_DOT,  /* of r(x * y): torch's (x * y).sum() */
    BAL_FOLD_NORM, /* of x * x, for sqrt: torch.norm */
} bal_fold;

/* A running sum over a run of elements, given piece by piece in order; how it
 * is cut does not show. precise: 16 lanes of double, element i to lane i mod
 * 16, folded in a fixed order. mergekit: the lanes and chains of torch's CPU
 * kernels in one thread, for a contiguous run. */
typedef struct bal_sum {
    const bal_arith *arith;
    bal_fold fold;
    uint64_t total;  /* elements that will come */
    uint64_t blocks; /* of whole blocks added to the lanes */
    size_t vector;   /* elements that torch takes at once */
    size_t count;    /* of held */
    double held[64]; /* not yet a whole block */
    double lanes[128];
} bal_sum;

void bal_sum_init(bal_sum *self, const bal_arith *arith, bal_fold fold,
                  uint64_t total);
/* y is NULL but for DOT. */
void bal_sum_add(bal_sum *self, const double *x, const double *y, size_t n);
/* The sum, or for NORM its root; in mergekit rounded to F32 and then to D. What
 * a NaN comes out as is fixed. */
double bal_sum_end(const bal_sum *self);
/* The same before it is rounded to D. */
double bal_sum_f32(const bal_sum *self);

/* ---- functions ---------------------------------------------------------- */

/* Own code, the same bits everywhere; error below 1 ulp of double, so that the
 * F32 rounding is right but for near ties. precise: double. mergekit: rounded
 * to F32. acos outside of -1 … 1 is clamped by the caller. */
double bal_fn_sin(const bal_arith *self, double x);
double bal_fn_cos(const bal_arith *self, double x);
double bal_fn_acos(const bal_arith *self, double x);
double bal_fn_exp(const bal_arith *self, double x);
double bal_fn_log(const bal_arith *self, double x);
double bal_fn_sqrt(const bal_arith *self, double x);

/* ---- random numbers ----------------------------------------------------- */

/* Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC'11): the four words of one counter under one key. */
void bal_philox(uint32_t out[4], const uint32_t counter[4],
                const uint32_t key[2]);

/* Draws of one input of one tensor: key and stream are the first 16 bytes of
 * BLAKE3 over the seed and the input (8 bytes each, little-endian) and the
 * tensor's name. Element i is word i mod 4 of counter i / 4 (its lower half):
 * the upper 24 bits of it, uniform in [0, 1), for elements start … start + n.
 */
typedef struct bal_draws {
    uint32_t key[2];
    uint32_t stream[2]; /* the upper half of the counter */
} bal_draws;
void bal_draws_init(bal_draws *self, uint64_t seed, size_t input,
                    const char *tensor);
void bal_draws_take(const bal_draws *self, uint64_t start, float *out,
                    size_t n);

/* ---- thresholds --------------------------------------------------------- */

/* Which elements have rank low … high - 1 when |x| is sorted ascending, equal
 * ones by index: found by counting, without a copy of the tensor. least and
 * most are the first and the last of them; of those that equal least, the ones
 * from least_index on are in, of those that equal most, the ones up to
 * most_index. descending: the order is that of |x| sorted descending, equal
 * ones by index, read backwards; the indexes bound from the other side. */
typedef struct bal_ranked {
    double least, most; /* magnitudes; by_sign: values */
    uint64_t least_index, most_index;
    bool descending, by_sign;
    bool none; /* low >= high: nothing is in */
} bal_ranked;
typedef struct bal_ranking bal_ranking;
/* Call add for every element in order, then next; and all over again while next
 * says so: once for values of BF16, twice for F32, up to four times for F64,
 * and once more where a cut falls between equal values that it lost sight of. A
 * NaN counts as the largest, -0 as 0. Takes up to 4 MiB and notes. high is cut
 * to total. ENOMEM. descending: equal magnitudes at the cut keep the lower
 * index when the largest are wanted (low = total - k, high = total). */
BAL_CHECK int bal_ranking_new(bal_ranking **out, uint64_t total, uint64_t low,
                              uint64_t high, bool descending, bal_error *err);
/* Before the first add: */
enum bal_rank_flags {
    BAL_RANK_BY_SIGN = 1, /* ranks are of x, not of |x| */
    /* Only what is kept is wanted: an end that is the first or the last of all
     * is not looked for, and least or most is 0 or a NaN there. */
    BAL_RANK_ENDS_OPEN = 2,
    /* Only values are: of equal ones it does not matter which, and the indexes
     * tell nothing. */
    BAL_RANK_VALUES = 4,
};
void bal_ranking_ask(bal_ranking *self, unsigned flags);
/* The same: how many elements are kept sight of at each cut (128 Ki if it is
 * not told), for 8 bytes each. */
void bal_ranking_notes(bal_ranking *self, size_t most);
/* Before the first next: other ranks than told at first, and how many of the
 * elements added are 0. */
void bal_ranking_want(bal_ranking *self, uint64_t low, uint64_t high);
uint64_t bal_ranking_zeros(const bal_ranking *self);
void bal_ranking_add(bal_ranking *self, const double *x, size_t n);
/* After the first pass an end (0, 1) may be content with some elements alone:
 * false, it wants none; from 0 to UINT64_MAX, all. see takes elements of any
 * start, in order; what is not wanted, or was seen, does nothing. */
bool bal_ranking_wants(const bal_ranking *self, size_t end, uint64_t *from,
                       uint64_t *to);
void bal_ranking_see(bal_ranking *self, uint64_t start, const double *x,
                     size_t n);
/* True: another pass is wanted. */
bool bal_ranking_next(bal_ranking *self);
void bal_ranking_end(const bal_ranking *self, bal_ranked *out);
void bal_ranking_free(bal_ranking *self);
BAL_OWNABLE(bal_ranking)
/* keep[k] = 1 or 0 for elements [start, start + n). */
void bal_ranked_keep(const bal_ranked *self, uint64_t start, const double *x,
                     double *keep, size_t n);

#endif
