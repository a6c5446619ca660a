/* Ranks by counting. An element is a key, an unsigned integer in the order of
 * the values. The first pass counts keys by exponent and 7 bits of fraction,
 * which is all that a BF16 has; each further one counts by 16 more bits, of the
 * two ranges of keys alone that the first and the last element wanted are in.
 * F32 needs 23 bits: a second pass. Where what was not looked at is 0 in all of
 * a range, its keys are equal and no further pass is needed. Keys of 0,
 * infinity and NaN have ranges of their own, and so has what F32 cannot hold.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/arith.h"

#define KEY_INF  ((uint64_t)0x7ff << 52)
#define KEY_NAN  (KEY_INF + 1)
#define KEY_SIGN ((uint64_t)1 << 63)
#define KEY_TINY ((uint64_t)(1023 - 149) << 52) /* 2^-149, F32's least */
#define KEY_HUGE ((uint64_t)(1023 + 128) << 52) /* 2^128, above F32's most */

enum {
    SHIFT = 45, /* bits of a double's fraction below the upper 7 */
    MIDDLE = (149 + 128) << 7,
    BIN_ZERO = 0,
    BIN_TINY,
    BIN_FIRST,
    BIN_HUGE = BIN_FIRST + MIDDLE,
    BIN_INF,
    BIN_NAN,
    HALF,
    DIGIT = 16,
    BINS = 1 << DIGIT,
};

_Static_assert(2 * HALF <= 2 * BINS, "the first pass fits in what others need");

/* One end: the element of a rank, found step by step. Its keys are magnitudes;
 * by sign, those of the values of one sign. */
typedef enum bal_step { STEP_REFINE, STEP_INDEX, STEP_DONE } bal_step;

typedef struct bal_cut {
    bal_step step;
    bool negative;
    uint64_t rank;      /* among the keys of the range */
    uint64_t low, high; /* the range, both inclusive */
    unsigned shift;     /* bits below the digit of this pass */
    uint64_t loose;     /* any bit set below it, in the range */
    uint64_t equal;     /* once low == high: how many there are */
    uint64_t index;
    uint64_t *counts;
} bal_cut;

struct bal_ranking {
    uint64_t seen;
    bool descending, by_sign, first, none;
    uint64_t loose;
    bal_cut cuts[2];
    uint64_t counts[2 * BINS];
};

/* ---- keys ---------------------------------------------------------------- */

static inline uint64_t magnitude_key(double x)
{
    uint64_t bits;
    double size = fabs(x);

    memcpy(&bits, &size, sizeof(bits));
    return bits > KEY_INF ? KEY_NAN : bits;
}

static inline uint64_t signed_key(double x)
{
    uint64_t key = magnitude_key(x);

    return x < 0 ? KEY_SIGN - key : KEY_SIGN + key;
}

static inline uint64_t key_of(double x, bool by_sign)
{
    return by_sign ? signed_key(x) : magnitude_key(x);
}

static double value_of(const bal_cut *cut)
{
    double value;

    if (cut->low == KEY_NAN)
        return (double)NAN;
    memcpy(&value, &cut->low, sizeof(value));
    return cut->negative ? -value : value;
}

/* ---- the first pass ------------------------------------------------------ */

static inline size_t first_bin(uint64_t key)
{
    if (key >= KEY_TINY && key < KEY_HUGE)
        return BIN_FIRST + (size_t)((key - KEY_TINY) >> SHIFT);
    if (key >= KEY_HUGE)
        return key < KEY_INF ? BIN_HUGE : key == KEY_INF ? BIN_INF : BIN_NAN;
    return key ? BIN_TINY : BIN_ZERO;
}

static void first_range(bal_cut *cut, size_t bin)
{
    static const uint64_t ends[][2] = {
        [BIN_ZERO] = { 0, 0 },
        [BIN_TINY] = { 1, KEY_TINY - 1 },
    };
    static const uint64_t tops[][2] = {
        { KEY_HUGE, KEY_INF - 1 },
        { KEY_INF, KEY_INF },
        { KEY_NAN, KEY_NAN },
    };

    if (bin >= BIN_FIRST && bin < BIN_HUGE) {
        cut->low = KEY_TINY + ((uint64_t)(bin - BIN_FIRST) << SHIFT);
        cut->high = cut->low + (((uint64_t)1 << SHIFT) - 1);
        return;
    }
    const uint64_t *row = bin < BIN_FIRST ? ends[bin] : tops[bin - BIN_HUGE];
    cut->low = row[0];
    cut->high = row[1];
}

/* By sign, bins of negative values stand before the others, mirrored. */
static void count_first(bal_ranking *self, const double *x, size_t n)
{
    uint64_t loose = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t key = magnitude_key(x[i]);
        size_t bin = first_bin(key);
        if (self->by_sign)
            bin = x[i] < 0 ? HALF - 1 - bin : HALF + bin;
        self->counts[bin]++;
        loose |= key >= KEY_TINY && key < KEY_HUGE ? key : 0;
    }
    self->loose |= loose & (((uint64_t)1 << SHIFT) - 1);
}

/* The bin that the rank is in; what is left of the rank is that inside. */
static size_t find(bal_cut *cut, const uint64_t *counts, size_t bins)
{
    size_t bin = 0;

    while (bin + 1 < bins && cut->rank >= counts[bin])
        cut->rank -= counts[bin++];
    cut->equal = counts[bin];
    return bin;
}

/* Magnitudes of negative values run against the ranks. */
static void mirror(bal_cut *cut)
{
    if (cut->negative)
        cut->rank = cut->equal - 1 - cut->rank;
}

static void end_first(const bal_ranking *self, bal_cut *cut)
{
    size_t bin = find(cut, self->counts, self->by_sign ? 2 * HALF : HALF);

    cut->negative = self->by_sign && bin < HALF;
    if (self->by_sign)
        bin = cut->negative ? HALF - 1 - bin : bin - HALF;
    first_range(cut, bin);
    if (bin >= BIN_FIRST && bin < BIN_HUGE && !self->loose)
        cut->high = cut->low;
    mirror(cut);
}

/* ---- the others ---------------------------------------------------------- */

static inline bool of_sign(const bal_ranking *self, const bal_cut *cut,
                           double x)
{
    return !self->by_sign || (x < 0) == cut->negative;
}

static void count_range(const bal_ranking *self, bal_cut *cut, const double *x,
                        size_t n)
{
    uint64_t width = cut->high - cut->low;
    uint64_t below = ((uint64_t)1 << cut->shift) - 1;

    for (size_t i = 0; i < n; i++) {
        uint64_t key = magnitude_key(x[i]) - cut->low;
        if (key > width || !of_sign(self, cut, x[i]))
            continue;
        cut->counts[key >> cut->shift]++;
        cut->loose |= key & below;
    }
}

static void end_range(bal_cut *cut)
{
    size_t bin = find(cut, cut->counts, BINS);

    cut->low += (uint64_t)bin << cut->shift;
    cut->high = cut->low;
    if (cut->loose)
        cut->high += ((uint64_t)1 << cut->shift) - 1;
}

/* Of equal elements, the one whose turn it is. */
static void find_index(const bal_ranking *self, bal_cut *cut, const double *x,
                       size_t n)
{
    for (size_t i = 0; i < n && cut->step == STEP_INDEX; i++) {
        if (magnitude_key(x[i]) != cut->low || !of_sign(self, cut, x[i]))
            continue;
        if (!cut->rank--) {
            cut->index = self->seen + i;
            cut->step = STEP_DONE;
        }
    }
}

/* Between passes: what does this end still lack? */
static void turn(bal_ranking *self, size_t which)
{
    bal_cut *cut = &self->cuts[which];
    uint64_t all = which ? cut->equal - 1 : 0;

    if (cut->low != cut->high) {
        cut->shift = 0;
        while ((cut->high - cut->low) >> cut->shift >= BINS)
            cut->shift++;
        cut->loose = 0;
        return;
    }
    mirror(cut);
    cut->step = cut->rank == all ? STEP_DONE : STEP_INDEX;
    cut->index = !which == self->descending ? UINT64_MAX : 0;
    if (self->descending)
        cut->rank = cut->equal - 1 - cut->rank;
}

/* ---- the ranking --------------------------------------------------------- */

int bal_ranking_new(bal_ranking **out, uint64_t total, uint64_t low,
                    uint64_t high, bool descending, bal_error *err)
{
    bal_ranking *self = calloc(1, sizeof(*self));

    if (!self)
        return bal_fail(err, BAL_ENOMEM, "ranking %llu elements",
                        (unsigned long long)total);
    high = bal_min(high, total);
    self->descending = descending;
    self->first = true;
    self->none = low >= high;
    self->cuts[0].rank = low;
    self->cuts[1].rank = self->none ? low : high - 1;
    self->cuts[0].counts = self->counts;
    self->cuts[1].counts = self->counts + BINS;
    *out = self;
    return 0;
}

void bal_ranking_by_sign(bal_ranking *self)
{
    self->by_sign = true;
}

void bal_ranking_add(bal_ranking *self, const double *x, size_t n)
{
    if (self->none)
        return;
    if (self->first)
        count_first(self, x, n);
    for (size_t i = 0; i < 2 && !self->first; i++) {
        bal_cut *cut = &self->cuts[i];
        if (cut->step == STEP_REFINE)
            count_range(self, cut, x, n);
        else if (cut->step == STEP_INDEX)
            find_index(self, cut, x, n);
    }
    self->seen += n;
}

bool bal_ranking_next(bal_ranking *self)
{
    bool more = false;

    for (size_t i = 0; i < 2 && !self->none; i++) {
        bal_cut *cut = &self->cuts[i];
        if (cut->step != STEP_REFINE)
            continue;
        if (self->first)
            end_first(self, cut);
        else
            end_range(cut);
        turn(self, i);
        more |= cut->step != STEP_DONE;
    }
    self->first = false;
    self->seen = 0;
    memset(self->counts, 0, sizeof(self->counts));
    return more;
}

void bal_ranking_end(const bal_ranking *self, bal_ranked *out)
{
    *out = (bal_ranked){
        .least = value_of(&self->cuts[0]),
        .most = value_of(&self->cuts[1]),
        .least_index = self->cuts[0].index,
        .most_index = self->cuts[1].index,
        .descending = self->descending,
        .by_sign = self->by_sign,
        .none = self->none,
    };
}

void bal_ranking_free(bal_ranking *self)
{
    free(self);
}

/* Nothing branches: where the cuts fall is as random as the values. */
void bal_ranked_keep(const bal_ranked *self, uint64_t start, const double *x,
                     double *keep, size_t n)
{
    uint64_t least = key_of(self->least, self->by_sign);
    uint64_t most = key_of(self->most, self->by_sign);
    uint64_t turn = self->descending ? UINT64_MAX : 0;
    uint64_t from = self->least_index ^ turn;
    uint64_t to = self->most_index ^ turn;
    bool some = !self->none;

    for (size_t i = 0; i < n; i++) {
        uint64_t key = key_of(x[i], self->by_sign);
        uint64_t index = (start + i) ^ turn;
        bool above = (key > least) | ((key == least) & (index >= from));
        bool below = (key < most) | ((key == most) & (index <= to));
        keep[i] = (above & below & some) ? 1 : 0;
    }
}
