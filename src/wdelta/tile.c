/* One tile of a tensor: read, encoded, written where it goes. Everything that
 * a tile writes lies at a place known beforehand, so tiles are written in any
 * order; only half bytes between two tiles wait until all are there. */
#include <inttypes.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/file.h"
#include "core/pool.h"
#include "kernel/kernels.h"
#include "wdelta/plan.h"
#include "wdelta/reader.h"

/* ---- encoding ----------------------------------------------------------- */

static void *room(const bal_wd_source *from, unsigned slot, size_t width)
{
    return bal_pool_scratch(from->work, slot, (BAL_WD_TILE + 16) * width);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Of those that reach the threshold, leave the ties that come too late out. */
static void keep_places(bal_wd_tile *self, const bal_wd_plan *plan, size_t tile)
{
    size_t found = bal_kernels_use()->pick(self->places, self->d, self->n,
                                           plan->least + !plan->ties);
    uint64_t tied = plan->tied[tile];

    for (size_t i = 0; i < found; i++) {
        uint32_t place = self->places[i];
        bool tie = (bits_of(self->d[place]) & 0x7fffffff) == plan->least;
        if (tie && tied++ >= plan->ties)
            continue;
        self->places[self->count] = place;
        self->values[self->count++] = self->d[place];
    }
}

static void round_values(bal_wd_tile *self, const bal_wd_plan *plan)
{
    const bal_kernels *kernels = bal_kernels_use();
    uint16_t halves[256];

    if (plan->value != BAL_WD_F16)
        return;
    for (size_t at = 0; at < self->count; at += 256) {
        size_t n = (size_t)bal_min(256, self->count - at);
        kernels->from_f32[BAL_F16](halves, self->values + at, n);
        kernels->to_f32[BAL_F16](self->values + at, halves, n);
    }
}

static void make_codes(bal_wd_tile *self, const bal_wd_plan *plan)
{
    size_t from = 0;
    size_t to = 0;

    if (plan->range > 0.0f)
        bal_kernels_use()->codes4(self->codes, self->d, self->n, plan->low,
                                  plan->range);
    else
        memset(self->codes, 0, self->n);
    for (size_t i = 0; i <= self->count; i++) {
        size_t stop = i < self->count ? self->places[i] : self->n;
        memmove(self->codes + to, self->codes + from, stop - from);
        to += stop - from;
        from = stop + 1;
    }
    self->code_count = to;
}

int bal_wd_tile_read(bal_wd_tile *out, const bal_wd_plan *plan,
                     const bal_wd_source *from, size_t tile, bal_error *err)
{
    uint64_t at = (uint64_t)tile * BAL_WD_TILE;
    float *d = room(from, BAL_WD_SLOT_DELTA, sizeof(*d));

    *out = (bal_wd_tile){
        .at = at,
        .n = (size_t)bal_min(BAL_WD_TILE, plan->n - at),
        .d = d,
        .places = room(from, BAL_WD_SLOT_PLACES, sizeof(uint32_t)),
        .values = room(from, BAL_WD_SLOT_VALUES, sizeof(float)),
        .codes = room(from, BAL_WD_SLOT_CODES, 1),
    };
    if (!d || !out->places || !out->values || !out->codes)
        return bal_fail_memory(err, "encoding a tensor");
    int rc = bal_wd_difference(d, from, plan, at, out->n, err);
    if (rc)
        return rc;
    /* Signs are taken eight at a time. */
    memset(d + out->n, 0, 16 * sizeof(*d));
    if (plan->kind == BAL_WD_QUANTIZED)
        return 0;
    keep_places(out, plan, tile);
    round_values(out, plan);
    if (plan->kind == BAL_WD_INT4)
        make_codes(out, plan);
    return 0;
}

/* ---- what a reader makes of it ------------------------------------------ */

static void value_sparse(float *y, const bal_wd_tile *self,
                         const bal_wd_plan *plan)
{
    (void)plan;
    memset(y, 0, self->n * sizeof(*y));
    for (size_t i = 0; i < self->count; i++)
        y[self->places[i]] = self->values[i];
}

static void value_int4(float *y, const bal_wd_tile *self,
                       const bal_wd_plan *plan)
{
    float table[512];
    size_t from = 0;
    size_t at = 0;

    bal_wd_table(table, plan->scale, plan->zero);
    for (size_t i = 0; i <= self->count; i++) {
        size_t stop = i < self->count ? self->places[i] : self->n;
        for (; at < stop; at++)
            y[at] = table[2 * (size_t)self->codes[from++] * 16];
        if (i < self->count)
            y[at++] = self->values[i];
    }
}

static void value_quantized(float *y, const bal_wd_tile *self,
                            const bal_wd_plan *plan)
{
    for (size_t i = 0; i < self->n;) {
        uint64_t at = self->at + i;
        uint64_t row = at / plan->columns;
        size_t n =
            (size_t)bal_min(plan->columns - at % plan->columns, self->n - i);
        float scale = bal_wd_half(
            plan->scales ? plan->scales[row] : bal_wd_scale_of(self->d + i, n));
        for (size_t k = 0; k < n; k++)
            y[i + k] = self->d[i + k] >= 0.0f ? scale : -scale;
        i += n;
    }
}

void bal_wd_tile_value(float *y, const bal_wd_tile *self,
                       const bal_wd_plan *plan)
{
    static void (*const rows[])(float *, const bal_wd_tile *,
                                const bal_wd_plan *) = {
        [BAL_WD_SPARSE] = value_sparse,
        [BAL_WD_QUANTIZED] = value_quantized,
        [BAL_WD_INT4] = value_int4,
    };

    rows[plan->kind](y, self, plan);
}

/* ---- writing ------------------------------------------------------------ */

int bal_wd_pwrite(int fd, uint64_t at, const void *data, size_t len,
                  bal_error *err)
{
    return bal_write_at(fd, at, data, len, NULL, err);
}

/* Where a tile writes to. */
typedef struct outlet {
    bal_wd_plan *plan;
    size_t tile;
    uint8_t *room;
    int fd;
} outlet;

static int put(const outlet *to, size_t field, uint64_t at, size_t len,
               bal_error *err)
{
    return bal_wd_pwrite(to->fd, to->plan->offsets[field] + at, to->room, len,
                         err);
}

static int put_index(const bal_wd_tile *self, const outlet *to, bal_error *err)
{
    size_t width = bal_wd_width(to->plan->index);

    for (size_t i = 0; i < self->count; i++) {
        uint64_t place = self->at + self->places[i];
        if (width == 8)
            bal_put64(to->room + 8 * i, place);
        else
            bal_put32(to->room + 4 * i, (uint32_t)place);
    }
    return put(to, BAL_WD_INDEX, to->plan->before[to->tile] * width,
               self->count * width, err);
}

static int put_values(const bal_wd_tile *self, const outlet *to, bal_error *err)
{
    bool half = to->plan->value == BAL_WD_F16;
    size_t width = bal_wd_width(to->plan->value);

    bal_kernels_use()->from_f32[half ? BAL_F16 : BAL_F32](
        to->room, self->values, self->count);
    return put(to, BAL_WD_VALUES, to->plan->before[to->tile] * width,
               self->count * width, err);
}

static int put_sparse(const bal_wd_tile *self, const outlet *to,
                      const bal_wd_source *from, bal_error *err)
{
    (void)from;
    int rc = put_index(self, to, err);

    return rc ? rc : put_values(self, to, err);
}

/* The first code may be the second half of a byte, the last one the first. */
static int put_codes(const bal_wd_tile *self, const outlet *to, bal_error *err)
{
    uint64_t start = self->at - to->plan->before[to->tile];
    size_t first = start % 2 && self->code_count;
    size_t pairs = (self->code_count - first) / 2;
    uint8_t *edges = to->plan->edges[to->tile];

    edges[0] = first ? self->codes[0] : BAL_WD_NO_EDGE;
    edges[1] = first + 2 * pairs < self->code_count
                   ? self->codes[first + 2 * pairs]
                   : BAL_WD_NO_EDGE;
    bal_kernels_use()->pack4(to->room, self->codes + first, pairs);
    return put(to, BAL_WD_PACKED, (start + first) / 2, pairs, err);
}

static int put_int4(const bal_wd_tile *self, const outlet *to,
                    const bal_wd_source *from, bal_error *err)
{
    int rc = put_sparse(self, to, from, err);

    return rc ? rc : put_codes(self, to, err);
}

static int put_scales(const bal_wd_tile *self, const outlet *to, bal_error *err)
{
    size_t columns = (size_t)to->plan->columns;
    size_t rows = 0;

    for (size_t i = 0; i < self->n; i += columns) {
        uint16_t scale = bal_wd_scale_of(self->d + i, columns);
        memcpy(to->room + 2 * rows++, &scale, sizeof(scale));
    }
    return put(to, BAL_WD_SCALES, self->at / columns * 2, 2 * rows, err);
}

static int put_quantized(const bal_wd_tile *self, const outlet *to,
                         const bal_wd_source *from, bal_error *err)
{
    const bal_wd_plan *plan = to->plan;
    size_t bytes = (self->n + 7) / 8;
    int rc = 0;

    (void)from;
    bal_kernels_use()->signs(to->room, self->d, bytes);
    if (self->n % 8)
        to->room[bytes - 1] &= (uint8_t)(0xff00 >> self->n % 8);
    rc = put(to, BAL_WD_SIGNS, self->at / 8, bytes, err);
    if (rc)
        return rc;
    if (!plan->scales)
        return put_scales(self, to, err);
    if (to->tile)
        return 0;
    return bal_wd_pwrite(to->fd, plan->offsets[BAL_WD_SCALES], plan->scales,
                         (size_t)(plan->n / plan->columns) * 2, err);
}

int bal_wd_tile_write(const bal_wd_tile *self, bal_wd_plan *plan, size_t tile,
                      const bal_wd_source *from, int fd, bal_error *err)
{
    static int (*const rows[])(const bal_wd_tile *, const outlet *,
                               const bal_wd_source *, bal_error *) = {
        [BAL_WD_SPARSE] = put_sparse,
        [BAL_WD_QUANTIZED] = put_quantized,
        [BAL_WD_INT4] = put_int4,
    };
    outlet to = { plan, tile, room(from, BAL_WD_SLOT_OUT, 8), fd };

    if (!to.room)
        return bal_fail_memory(err, "encoding a tensor");
    return rows[plan->kind](self, &to, from, err);
}

int bal_wd_edges_write(const bal_wd_plan *plan, int fd, bal_error *err)
{
    uint64_t total = plan->n - plan->kept;
    uint8_t high = 0;
    int rc = 0;

    if (plan->kind != BAL_WD_INT4)
        return 0;
    for (size_t i = 0; i < plan->tiles && !rc; i++) {
        uint64_t start = (uint64_t)i * BAL_WD_TILE - plan->before[i];
        const uint8_t *edges = plan->edges[i];
        if (edges[0] != BAL_WD_NO_EDGE) {
            uint8_t byte = (uint8_t)(high << 4 | edges[0]);
            rc = bal_wd_pwrite(fd, plan->offsets[BAL_WD_PACKED] + start / 2,
                               &byte, 1, err);
        }
        if (edges[1] != BAL_WD_NO_EDGE)
            high = edges[1];
    }
    high = (uint8_t)(high << 4);
    if (rc || total % 2 == 0)
        return rc;
    return bal_wd_pwrite(fd, plan->offsets[BAL_WD_PACKED] + total / 2, &high, 1,
                         err);
}
