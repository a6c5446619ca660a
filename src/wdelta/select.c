/* The largest differences of a tensor, without a list of them: by how often
 * each magnitude is there. One pass counts by the upper 16 of a magnitude's 31
 * bits and gives the bin that the threshold is in. A second lists what is in
 * the bin, which is nearly always little, and the list tells the rest. Else it
 * counts the bin's 2^15 values, which gives the threshold, and a third counts
 * by tiles what lies above it and on it. Ties are settled by place: the first
 * ones are kept, so that the same models always give the same file. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/pool.h"
#include "kernel/kernels.h"
#include "wdelta/plan.h"
#include "wdelta/widen.h"

enum { BINS = 65536, FINE = 32768, LISTED = 1 << 18, KEPT = 1 << 21 };

/* The least magnitude that becomes infinite as a float16. */
static const uint32_t half_limit = 0x477ff000;

/* ---- differences -------------------------------------------------------- */

/* One side of a range, as it is stored. */
typedef struct side {
    bal_model *model;
    size_t entry;
    unsigned slot;
    bal_dtype dtype;
    void *raw;
} side;

static int read_side(side *self, bal_work *work, uint64_t at, size_t n,
                     bal_error *err)
{
    self->dtype = bal_model_at(self->model, self->entry)->dtype;
    size_t width = bal_dtype_bits(self->dtype) / 8;

    self->raw = bal_pool_scratch(work, self->slot, BAL_WD_TILE * width);
    if (!self->raw)
        return bal_fail_memory(err, "reading a tensor");
    return bal_model_read(self->model, self->entry, at * width, self->raw,
                          n * width, err);
}

int bal_wd_difference(float *d, const bal_wd_source *from,
                      const bal_wd_plan *plan, uint64_t at, size_t n,
                      bal_error *err)
{
    const bal_kernels *kernels = bal_kernels_use();
    side tuned = { from->tuned, plan->tuned, BAL_WD_SLOT_TUNED, 0, NULL };
    side base = { from->parent, plan->parent, BAL_WD_SLOT_BASE, 0, NULL };
    int rc = read_side(&tuned, from->work, at, n, err);
    if (!rc)
        rc = read_side(&base, from->work, at, n, err);
    if (rc)
        return rc;

    if (tuned.dtype == base.dtype && kernels->diff[tuned.dtype]) {
        kernels->diff[tuned.dtype](d, tuned.raw, base.raw, n);
        return 0;
    }
    float *wide = bal_pool_scratch(from->work, BAL_WD_SLOT_WIDE,
                                   BAL_WD_TILE * sizeof(*wide));
    if (!wide)
        return bal_fail_memory(err, "reading a tensor");
    bal_wd_widen(d, tuned.dtype, tuned.raw, n);
    bal_wd_widen(wide, base.dtype, base.raw, n);
    kernels->sub_f32(d, d, wide, n);
    return 0;
}

/* A tensor is looked at several times. The differences of one that is not large
 * are kept meanwhile, by the thread that looks. */
typedef struct looks {
    const bal_wd_plan *plan;
    const bal_wd_source *from;
    float *d;    /* a tile, or all of it */
    bool keeps;  /* all of it */
    size_t read; /* tiles that are in d */
} looks;

static int looks_open(looks *out, const bal_wd_plan *plan,
                      const bal_wd_source *from, bal_error *err)
{
    bool keeps = plan->n <= KEPT;
    size_t n = keeps ? (size_t)plan->n : BAL_WD_TILE;

    *out = (looks){ .plan = plan, .from = from, .keeps = keeps };
    out->d = bal_pool_scratch(from->work, BAL_WD_SLOT_KEPT,
                              (n + 1) * sizeof(*out->d));
    return out->d ? 0 : bal_fail_memory(err, "reading a tensor");
}

static int look(looks *self, size_t tile, const float **d, size_t *n,
                bal_error *err)
{
    uint64_t at = (uint64_t)tile * BAL_WD_TILE;
    float *to = self->keeps ? self->d + at : self->d;
    int rc = 0;

    *n = (size_t)bal_min(BAL_WD_TILE, self->plan->n - at);
    *d = to;
    if (self->keeps && tile < self->read)
        return 0;
    rc = bal_wd_difference(to, self->from, self->plan, at, *n, err);
    self->read = rc ? 0 : tile + 1;
    return rc;
}

typedef void tile_fn(void *ctx, size_t tile, const float *d, size_t n);

/* All tiles of a tensor, one after the other. */
static int each_tile(looks *self, tile_fn *fn, void *ctx, bal_error *err)
{
    for (size_t i = 0; i < self->plan->tiles; i++) {
        const float *d = NULL;
        size_t n = 0;
        int rc = look(self, i, &d, &n, err);
        if (rc)
            return rc;
        fn(ctx, i, d, n);
    }
    return 0;
}

/* ---- the threshold ------------------------------------------------------ */

typedef struct counts {
    uint64_t *bins; /* BINS */
    uint64_t *fine; /* FINE */
    uint32_t *places;
    uint32_t bin;
    /* Where few are in the bin: their bits, in their order. */
    bal_wd_plan *plan;
    uint32_t *listed;
    size_t count;
    uint64_t over;
    bal_below below;
} counts;

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint32_t magnitude_of(uint32_t bits)
{
    return bits & 0x7fffffff;
}

static void count_bins(void *ctx, size_t tile, const float *d, size_t n)
{
    counts *self = ctx;

    (void)tile;
    bal_kernels_use()->tally(self->bins, d, n);
}

static void count_fine(void *ctx, size_t tile, const float *d, size_t n)
{
    counts *self = ctx;
    size_t found = bal_kernels_use()->pick(self->places, d, n, self->bin << 15);

    (void)tile;
    for (size_t i = 0; i < found; i++) {
        uint32_t size = magnitude_of(bits_of(d[self->places[i]]));
        if (size >> 15 == self->bin)
            self->fine[size & (FINE - 1)]++;
    }
}

/* For now before has what is over the bin, and tied how many are listed. */
static void list_tile(void *ctx, size_t tile, const float *d, size_t n)
{
    counts *self = ctx;
    const bal_kernels *kernels = bal_kernels_use();
    size_t found = kernels->pick(self->places, d, n, self->bin << 15);

    kernels->below_limit(&self->below, d, n, self->bin << 15);
    self->plan->before[tile] = self->over;
    self->plan->tied[tile] = self->count;
    for (size_t i = 0; i < found; i++) {
        uint32_t bits = bits_of(d[self->places[i]]);
        if (magnitude_of(bits) >> 15 == self->bin)
            self->listed[self->count++] = bits;
        else
            self->over++;
    }
}

/* The highest value such that it and all above are at least `keep`; what is
 * left to keep of it is in *keep. */
static uint32_t from_above(const uint64_t *bins, uint32_t count, uint64_t *keep)
{
    uint32_t i = count - 1;

    while (i && bins[i] < *keep)
        *keep -= bins[i--];
    return i;
}

static bool halves(const uint64_t *bins)
{
    for (uint32_t i = half_limit >> 15; i < BINS; i++) {
        if (bins[i])
            return false;
    }
    return true;
}

/* Which bin the threshold is in; *keep are left to keep of it. */
static int find_bin(counts *out, bal_wd_ends *ends, looks *eyes, uint64_t *keep,
                    bal_error *err)
{
    bal_work *work = eyes->from->work;
    size_t size = (BINS + FINE) * sizeof(*out->bins) +
                  (LISTED + 1) * sizeof(*out->listed);

    out->bins = bal_pool_scratch(work, BAL_WD_SLOT_BINS, size);
    out->places = bal_pool_scratch(work, BAL_WD_SLOT_PLACES,
                                   (BAL_WD_TILE + 16) * sizeof(uint32_t));
    if (!out->bins || !out->places)
        return bal_fail_memory(err, "counting differences");
    memset(out->bins, 0, (BINS + FINE) * sizeof(*out->bins));
    out->fine = out->bins + BINS;
    out->listed = (uint32_t *)(void *)(out->fine + FINE);
    int rc = each_tile(eyes, count_bins, out, err);
    if (rc)
        return rc;
    ends->finite = halves(out->bins);
    out->bin = from_above(out->bins, BINS, keep);
    return 0;
}

static void set_threshold(bal_wd_plan *plan, const counts *self, uint64_t keep)
{
    plan->least = self->bin << 15 | from_above(self->fine, FINE, &keep);
    plan->ties = keep;
}

/* ---- what lies above it ------------------------------------------------- */

typedef struct census {
    bal_wd_plan *plan;
    uint64_t over, same;
    uint64_t left, left_minus; /* of the ties that are not kept */
    size_t mixed;              /* the tile where ties are kept and not */
    bal_below below;
} census;

static void take_ties(census *self, size_t tile, const bal_beyond *found)
{
    uint64_t ties = self->plan->ties;
    uint64_t before = self->same;

    self->same += found->same;
    if (self->same <= ties)
        return;
    if (before < ties) {
        self->mixed = tile;
        return;
    }
    self->left += found->same;
    self->left_minus += found->minus;
}

static void count_tile(void *ctx, size_t tile, const float *d, size_t n)
{
    census *self = ctx;
    bal_wd_plan *plan = self->plan;
    const bal_kernels *kernels = bal_kernels_use();
    bal_beyond found = { 0 };

    kernels->beyond(&found, d, n, plan->least);
    kernels->below_limit(&self->below, d, n, plan->least);
    plan->before[tile] = self->over + bal_min(self->same, plan->ties);
    plan->tied[tile] = self->same;
    self->over += found.over;
    take_ties(self, tile, &found);
}

/* The tile in which the last tie is kept, element by element. */
static int settle_mixed(census *self, looks *eyes, bal_error *err)
{
    const bal_wd_plan *plan = self->plan;
    uint64_t seen = plan->tied[self->mixed];
    const float *d = NULL;
    size_t n = 0;
    int rc = look(eyes, self->mixed, &d, &n, err);

    for (size_t i = 0; i < n && !rc; i++) {
        uint32_t bits = bits_of(d[i]);
        if (magnitude_of(bits) != plan->least || seen++ < plan->ties)
            continue;
        self->left++;
        self->left_minus += bits >> 31;
    }
    return rc;
}

static float from_order(int32_t order)
{
    uint32_t bits = (uint32_t)order;
    float value;

    if (order < 0)
        bits ^= 0x7fffffff;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void find_ends(bal_wd_ends *ends, const census *self)
{
    float tie = float_of(self->plan->least);

    ends->rest = self->below.count + self->left;
    if (!ends->rest)
        return;
    if (self->below.count) {
        ends->low = from_order(self->below.low);
        ends->high = from_order(self->below.high);
    } else {
        ends->low = self->left_minus ? -tie : tie;
        ends->high = self->left_minus < self->left ? tie : -tie;
    }
    if (self->left_minus)
        ends->low = -tie;
    if (self->left_minus < self->left)
        ends->high = tie;
}

static void close_counts(census *self, bal_wd_ends *ends)
{
    bal_wd_plan *plan = self->plan;

    plan->kept = self->over + bal_min(self->same, plan->ties);
    plan->before[plan->tiles] = plan->kept;
    plan->tied[plan->tiles] = self->same;
    find_ends(ends, self);
}

static int count_tiles(bal_wd_plan *plan, bal_wd_ends *ends, looks *eyes,
                       bal_error *err)
{
    census self = { .plan = plan, .mixed = SIZE_MAX };

    self.below = (bal_below){ .low = INT32_MAX, .high = INT32_MIN };
    int rc = each_tile(eyes, count_tile, &self, err);
    if (!rc && self.mixed != SIZE_MAX)
        rc = settle_mixed(&self, eyes, err);
    if (!rc)
        close_counts(&self, ends);
    return rc;
}

/* One that is listed: kept, a tie, or of the rest. */
static void settle_one(census *self, uint32_t bits)
{
    const bal_wd_plan *plan = self->plan;
    float value = float_of(bits);

    if (magnitude_of(bits) > plan->least) {
        self->over++;
    } else if (magnitude_of(bits) < plan->least) {
        bal_kernels_use()->below_limit(&self->below, &value, 1, plan->least);
    } else if (self->same++ >= plan->ties) {
        self->left++;
        self->left_minus += bits >> 31;
    }
}

/* What count_tiles finds, of those that were listed. */
static void settle_listed(bal_wd_plan *plan, bal_wd_ends *ends,
                          const counts *from)
{
    census self = { .plan = plan, .below = from->below };

    for (size_t i = 0; i < plan->tiles; i++) {
        uint64_t over = plan->before[i];
        size_t first = (size_t)plan->tied[i];
        size_t end =
            i + 1 < plan->tiles ? (size_t)plan->tied[i + 1] : from->count;
        plan->before[i] = over + self.over + bal_min(self.same, plan->ties);
        plan->tied[i] = self.same;
        for (size_t k = first; k < end; k++)
            settle_one(&self, from->listed[k]);
    }
    self.over += from->over;
    close_counts(&self, ends);
}

/* Few in the threshold's bin: one more look gives all there is to know. */
static int select_listed(bal_wd_plan *plan, bal_wd_ends *ends, looks *eyes,
                         counts *self, uint64_t keep, bal_error *err)
{
    self->plan = plan;
    self->below = (bal_below){ .low = INT32_MAX, .high = INT32_MIN };
    int rc = each_tile(eyes, list_tile, self, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < self->count; i++)
        self->fine[magnitude_of(self->listed[i]) & (FINE - 1)]++;
    set_threshold(plan, self, keep);
    settle_listed(plan, ends, self);
    return 0;
}

static int select_counted(bal_wd_plan *plan, bal_wd_ends *ends, looks *eyes,
                          counts *self, uint64_t keep, bal_error *err)
{
    int rc = each_tile(eyes, count_fine, self, err);
    if (rc)
        return rc;
    set_threshold(plan, self, keep);
    return count_tiles(plan, ends, eyes, err);
}

static int make_tiles(bal_wd_plan *plan, bal_error *err)
{
    plan->before = calloc(plan->tiles + 1, sizeof(*plan->before));
    plan->tied = calloc(plan->tiles + 1, sizeof(*plan->tied));
    if (!plan->before || !plan->tied)
        return bal_fail_memory(err, "counting differences");
    return 0;
}

int bal_wd_select(bal_wd_plan *plan, bal_wd_ends *ends,
                  const bal_wd_source *from, uint64_t keep, bal_error *err)
{
    looks eyes;
    counts self = { .count = 0 };

    *ends = (bal_wd_ends){ .finite = true };
    plan->least = UINT32_MAX >> 1; /* a NaN that no difference is */
    int rc = make_tiles(plan, err);
    if (!rc)
        rc = looks_open(&eyes, plan, from, err);
    if (rc)
        return rc;
    if (!keep || !plan->n)
        return count_tiles(plan, ends, &eyes, err);
    rc = find_bin(&self, ends, &eyes, &keep, err);
    if (rc)
        return rc;
    return (self.bins[self.bin] <= LISTED ? select_listed : select_counted)(
        plan, ends, &eyes, &self, keep, err);
}

int bal_wd_select_all(bal_wd_plan *plan, const bal_wd_source *from,
                      bal_error *err)
{
    looks eyes;
    bal_wd_ends ends = { 0 };

    plan->least = 0;
    plan->ties = 0;
    int rc = make_tiles(plan, err);
    if (!rc)
        rc = looks_open(&eyes, plan, from, err);
    return rc ? rc : count_tiles(plan, &ends, &eyes, err);
}

/* ---- how many there are ------------------------------------------------- */

static void count_all(void *ctx, size_t tile, const float *d, size_t n)
{
    bal_beyond *found = ctx;

    (void)tile;
    bal_kernels_use()->beyond(&found[0], d, n, 0);
    bal_kernels_use()->beyond(&found[1], d, n, half_limit - 1);
}

int bal_wd_census(uint64_t *nonzero, bool *finite, const bal_wd_plan *plan,
                  const bal_wd_source *from, bal_error *err)
{
    bal_beyond found[2] = { { 0 }, { 0 } };
    looks eyes;
    int rc = looks_open(&eyes, plan, from, err);

    if (!rc)
        rc = each_tile(&eyes, count_all, found, err);

    *nonzero = found[0].over;
    *finite = !found[1].over;
    return rc;
}
