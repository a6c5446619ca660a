/* Ranks by counting. An element is a key, an unsigned integer in the order of
 * the values. The first pass counts keys by exponent and 7 bits of fraction,
 * which is all that a BF16 has; each further one counts by 16 more bits, of the
 * two ranges of keys alone that the first and the last element wanted are in.
 * F32 needs 23 bits: a second pass. Where what was not looked at is 0 in all of
 * a range, its keys are equal and no further pass is needed. Keys of 0,
 * infinity and NaN have ranges of their own, and so has what F32 cannot hold.
 * Where a cut falls between equal elements, notes (rank_places.h) tell where to
 * look for the one whose turn it is; without them it takes one pass more. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/arith.h"
#include "merge/rank_places.h"

enum {
    SHIFT = BAL_KEY_SHIFT, /* bits of a fraction below the upper 7 */
    MIDDLE = (149 + 128) << 7,
    BIN_ZERO = 0,
    BIN_TINY,
    BIN_FIRST = BAL_BIN_FIRST,
    BIN_HUGE = BIN_FIRST + MIDDLE,
    BIN_INF,
    BIN_NAN,
    HALF,
    DIGIT = 16,
    BINS = 1 << DIGIT,
    COPIES = 4, /* so that equal ones do not wait for each other */
    PIECE = 512,
    NOTES = 128 * 1024,
};

_Static_assert(COPIES *HALF >= 2 * BINS, "others fit in the first pass");

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
    uint64_t from, to; /* elements of the next pass that it has not seen */
    size_t bin;        /* of the first pass, or the last one's digit */
    uint64_t *counts;
    bal_places places;
} bal_cut;

struct bal_ranking {
    uint64_t total, seen;
    bool descending, by_sign, first, none, open, values;
    uint64_t loose;
    bal_chunks chunks;
    bal_cut cuts[2];
    uint64_t counts[COPIES * HALF];
};

/* ---- keys ---------------------------------------------------------------- */

static inline uint64_t magnitude_key(double x)
{
    uint64_t bits;
    double size = fabs(x);

    memcpy(&bits, &size, sizeof(bits));
    return bits > BAL_KEY_INF ? BAL_KEY_NAN : bits;
}

static double value_of(const bal_cut *cut)
{
    double value;

    if (cut->low == BAL_KEY_NAN)
        return (double)NAN;
    memcpy(&value, &cut->low, sizeof(value));
    return cut->negative ? -value : value;
}

/* ---- the first pass ------------------------------------------------------ */

static inline size_t first_bin(uint64_t key)
{
    if (key >= BAL_KEY_TINY && key < BAL_KEY_HUGE)
        return BIN_FIRST + (size_t)((key - BAL_KEY_TINY) >> SHIFT);
    if (key >= BAL_KEY_HUGE)
        return key < BAL_KEY_INF    ? BIN_HUGE
               : key == BAL_KEY_INF ? BIN_INF
                                    : BIN_NAN;
    return key ? BIN_TINY : BIN_ZERO;
}

static void first_range(bal_cut *cut, size_t bin)
{
    static const uint64_t ends[][2] = {
        [BIN_ZERO] = { 0, 0 },
        [BIN_TINY] = { 1, BAL_KEY_TINY - 1 },
    };
    static const uint64_t tops[][2] = {
        { BAL_KEY_HUGE, BAL_KEY_INF - 1 },
        { BAL_KEY_INF, BAL_KEY_INF },
        { BAL_KEY_NAN, BAL_KEY_NAN },
    };

    if (bin >= BIN_FIRST && bin < BIN_HUGE) {
        cut->low = BAL_KEY_TINY + ((uint64_t)(bin - BIN_FIRST) << SHIFT);
        cut->high = cut->low + (((uint64_t)1 << SHIFT) - 1);
        return;
    }
    const uint64_t *row = bin < BIN_FIRST ? ends[bin] : tops[bin - BIN_HUGE];
    cut->low = row[0];
    cut->high = row[1];
}

/* By sign, bins of negative values stand before the others, mirrored. */
static void count_any(bal_ranking *self, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t key = magnitude_key(x[i]);
        size_t bin = first_bin(key);
        if (self->by_sign)
            bin = x[i] < 0 ? HALF - 1 - bin : HALF + bin;
        self->counts[bin]++;
    }
}

static void count_bins(bal_ranking *self, const uint32_t *bin, size_t n)
{
    uint64_t *counts = self->counts;
    size_t i = 0;

    for (; i + COPIES <= n; i += COPIES) {
        counts[bin[i]]++;
        counts[HALF + bin[i + 1]]++;
        counts[2 * HALF + bin[i + 2]]++;
        counts[3 * HALF + bin[i + 3]]++;
    }
    for (; i < n; i++)
        counts[bin[i]]++;
}

static void count_first(bal_ranking *self, const double *x, size_t n)
{
    const bal_kernels *kernels = bal_kernels_use();
    uint32_t bin[PIECE];
    uint64_t bits = 0;

    for (size_t at = 0; at < n; at += PIECE) {
        size_t count = (size_t)bal_min(n - at, PIECE);
        bool plain = kernels->bins(bin, &bits, x + at, count);
        if (plain && !self->by_sign)
            count_bins(self, bin, count);
        else
            count_any(self, x + at, count);
    }
    self->loose |= bits & (((uint64_t)1 << SHIFT) - 1);
}

/* Chunk by chunk, as long as a bin is all that there is to know of a key. */
static void add_first(bal_ranking *self, const double *x, size_t n)
{
    bal_chunks *chunks = &self->chunks;

    for (size_t at = 0; at < n;) {
        uint64_t seen = self->seen + at;
        size_t count =
            (size_t)bal_min(n - at, chunks->size - seen % chunks->size);

        count_first(self, x + at, count);
        at += count;
        seen += count;
        if (self->loose || self->by_sign)
            bal_chunks_done(chunks);
        else if (seen % chunks->size == 0 || seen == self->total)
            bal_chunks_note(chunks, self->counts, HALF, COPIES);
    }
}

/* The sum of the copies, where find() looks. */
static void fold_first(bal_ranking *self)
{
    for (size_t i = 1; i < COPIES && !self->by_sign; i++) {
        for (size_t bin = 0; bin < HALF; bin++)
            self->counts[bin] += self->counts[i * HALF + bin];
    }
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
    cut->bin = bin;
}

/* ---- the others ---------------------------------------------------------- */

static inline bool of_sign(const bal_ranking *self, const bal_cut *cut,
                           double x)
{
    return !self->by_sign || (x < 0) == cut->negative;
}

static void count_range(const bal_ranking *self, bal_cut *cut, const double *x,
                        uint64_t index, size_t n)
{
    uint64_t below = ((uint64_t)1 << cut->shift) - 1;
    uint32_t places[PIECE + 1];

    for (size_t at = 0; at < n; at += PIECE) {
        const double *some = x + at;
        size_t count = (size_t)bal_min(n - at, PIECE);

        count =
            bal_kernels_use()->within(places, some, cut->low, cut->high, count);
        for (size_t i = 0; i < count; i++) {
            double value = some[places[i]];
            uint64_t key = magnitude_key(value) - cut->low;
            if (!of_sign(self, cut, value))
                continue;
            cut->counts[key >> cut->shift]++;
            cut->loose |= key & below;
            bal_places_add(&cut->places, index + at + places[i],
                           key >> cut->shift);
        }
    }
}

static void end_range(bal_cut *cut)
{
    size_t bin = find(cut, cut->counts, BINS);

    cut->low += (uint64_t)bin << cut->shift;
    cut->high = cut->low;
    if (cut->loose)
        cut->high += ((uint64_t)1 << cut->shift) - 1;
    cut->bin = bin;
}

/* Of equal elements, the one whose turn it is. */
static void find_index(const bal_ranking *self, bal_cut *cut, const double *x,
                       uint64_t index, size_t n)
{
    uint32_t places[PIECE + 1];

    for (size_t at = 0; at < n; at += PIECE) {
        size_t count = (size_t)bal_min(n - at, PIECE);

        count = bal_kernels_use()->within(places, x + at, cut->low, cut->low,
                                          count);
        for (size_t i = 0; i < count && cut->step == STEP_INDEX; i++) {
            if (!of_sign(self, cut, x[at + places[i]]) || cut->rank--)
                continue;
            cut->index = index + at + places[i];
            cut->step = STEP_DONE;
        }
    }
}

/* Where to look for it, if it is not known already. */
static void locate(const bal_ranking *self, bal_cut *cut)
{
    const bal_chunks *chunks = &self->chunks;
    size_t chunk;

    if (!self->first) {
        if (bal_places_find(&cut->places, &cut->index, cut->rank, cut->bin))
            cut->step = STEP_DONE;
        return;
    }
    if (!bal_chunks_find(chunks, &chunk, &cut->rank, cut->bin))
        return;
    cut->from = chunk * chunks->size;
    cut->to = bal_min(cut->from + chunks->size, self->total);
}

/* Between passes: what does this end still lack? */
static void turn(bal_ranking *self, size_t which)
{
    bal_cut *cut = &self->cuts[which];
    uint64_t all = which ? cut->equal - 1 : 0;

    cut->from = 0;
    cut->to = UINT64_MAX;
    if (cut->low != cut->high) {
        cut->shift = 0;
        while ((cut->high - cut->low) >> cut->shift >= BINS)
            cut->shift++;
        cut->loose = 0;
        bal_places_done(&cut->places);
        cut->places.dropped = false;
        return;
    }
    mirror(cut);
    cut->step = cut->rank == all || self->values ? STEP_DONE : STEP_INDEX;
    cut->index = !which == self->descending ? UINT64_MAX : 0;
    if (self->descending)
        cut->rank = cut->equal - 1 - cut->rank;
    if (cut->step == STEP_INDEX)
        locate(self, cut);
}

/* The first or the last of all needs no looking for, if its value is of no
 * interest. */
static void open_end(bal_ranking *self, size_t which)
{
    bal_cut *cut = &self->cuts[which];

    if (!self->open || cut->rank != (which ? self->total - 1 : 0))
        return;
    cut->low = cut->high = which ? BAL_KEY_NAN : 0;
    cut->index = !which == self->descending ? UINT64_MAX : 0;
    cut->step = STEP_DONE;
}

/* ---- the ranking --------------------------------------------------------- */

int bal_ranking_new(bal_ranking **out, uint64_t total, uint64_t low,
                    uint64_t high, bool descending, bal_error *err)
{
    bal_ranking *self = calloc(1, sizeof(*self));

    if (!self)
        return bal_fail(err, BAL_ENOMEM, "ranking %llu elements",
                        (unsigned long long)total);
    self->total = total;
    self->descending = descending;
    self->first = true;
    self->cuts[0].counts = self->counts;
    self->cuts[1].counts = self->counts + BINS;
    bal_chunks_init(&self->chunks, total);
    bal_ranking_notes(self, NOTES);
    bal_ranking_want(self, low, high);
    *out = self;
    return 0;
}

void bal_ranking_want(bal_ranking *self, uint64_t low, uint64_t high)
{
    high = bal_min(high, self->total);
    self->none = low >= high;
    self->cuts[0].rank = low;
    self->cuts[1].rank = self->none ? low : high - 1;
}

void bal_ranking_notes(bal_ranking *self, size_t most)
{
    self->cuts[0].places.most = most;
    self->cuts[1].places.most = most;
}

void bal_ranking_ask(bal_ranking *self, unsigned flags)
{
    self->by_sign = flags & BAL_RANK_BY_SIGN;
    self->open = flags & BAL_RANK_ENDS_OPEN;
    self->values = flags & BAL_RANK_VALUES;
}

uint64_t bal_ranking_zeros(const bal_ranking *self)
{
    uint64_t zeros = 0;

    for (size_t i = 0; i < COPIES && !self->by_sign; i++)
        zeros += self->counts[i * HALF + BIN_ZERO];
    return self->by_sign ? self->counts[HALF + BIN_ZERO] : zeros;
}

static void see(const bal_ranking *self, bal_cut *cut, uint64_t start,
                const double *x, size_t n)
{
    uint64_t from = bal_max(start, cut->from);
    uint64_t to = bal_min(start + n, cut->to);

    if (cut->step == STEP_DONE || from >= to)
        return;
    x += from - start;
    n = (size_t)(to - from);
    if (cut->step == STEP_REFINE)
        count_range(self, cut, x, from, n);
    else
        find_index(self, cut, x, from, n);
    cut->from = to;
}

void bal_ranking_see(bal_ranking *self, uint64_t start, const double *x,
                     size_t n)
{
    if (self->none)
        return;
    if (self->first) {
        add_first(self, x, n);
        self->seen += n;
        return;
    }
    for (size_t i = 0; i < 2; i++)
        see(self, &self->cuts[i], start, x, n);
}

void bal_ranking_add(bal_ranking *self, const double *x, size_t n)
{
    bool first = self->first;

    bal_ranking_see(self, self->seen, x, n);
    if (!first)
        self->seen += n;
}

bool bal_ranking_next(bal_ranking *self)
{
    bool more = false;

    if (self->first)
        fold_first(self);
    for (size_t i = 0; i < 2 && !self->none; i++) {
        bal_cut *cut = &self->cuts[i];
        if (self->first)
            open_end(self, i);
        if (cut->step != STEP_REFINE)
            continue;
        if (self->first)
            end_first(self, cut);
        else
            end_range(cut);
        turn(self, i);
        more |= cut->step != STEP_DONE;
    }
    if (self->first)
        bal_chunks_done(&self->chunks);
    self->first = false;
    self->seen = 0;
    memset(self->counts, 0, sizeof(self->counts));
    return more;
}

bool bal_ranking_wants(const bal_ranking *self, size_t cut, uint64_t *from,
                       uint64_t *to)
{
    *from = self->first ? 0 : self->cuts[cut].from;
    *to = self->first ? UINT64_MAX : self->cuts[cut].to;
    return self->first || self->cuts[cut].step != STEP_DONE;
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
    if (!self)
        return;
    bal_chunks_done(&self->chunks);
    bal_places_done(&self->cuts[0].places);
    bal_places_done(&self->cuts[1].places);
    free(self);
}
