/* Differences are read where they lie, chunk by chunk. Where a range begins
 * among a tensor's indices is searched for in the file: they ascend. That they
 * do is checked as far as they are read: of a range all between where it begins
 * and where the next one would, so that ranges which cover a tensor check all
 * of its indices, whatever a hostile file has. */
#include "wdelta/reader.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"

enum { BATCH = 4096 };

float bal_wd_half(uint16_t bits)
{
    float value = 0;

    bal_kernels_use()->to_f32[BAL_F16](&value, &bits, 1);
    return value;
}

uint16_t bal_wd_to_half(double value)
{
    uint16_t bits = 0;

    bal_kernels_use()->from_f64[BAL_F16](&bits, &value, 1);
    return bits;
}

void bal_wd_table(float table[512], uint16_t scale, uint16_t zero)
{
    float range = bal_wd_half(scale) * 15.0f;
    float start = bal_wd_half(zero);
    float values[16];

    for (size_t i = 0; i < 16; i++) {
        float part = (float)i / 15.0f;
        float place = part * range;
        values[i] = place + start;
    }
    for (size_t i = 0; i < 256; i++) {
        table[2 * i] = values[i >> 4];
        table[2 * i + 1] = values[i & 15];
    }
}

static int corrupt(const bal_wd_reader *self, const char *why, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "'%s': tensor '%.200s': %s",
                    self->file->file->path, self->tensor->name, why);
}

/* ---- indices ------------------------------------------------------------ */

/* UINT64_MAX for a negative one, which no element has. */
static uint64_t index_of(const uint8_t *from, bal_wd_number number)
{
    static const uint64_t signs[] = {
        [BAL_WD_I64] = (uint64_t)1 << 63,
        [BAL_WD_I32] = (uint64_t)1 << 31,
        [BAL_WD_U32] = 0,
    };
    uint64_t bits = number == BAL_WD_I64 ? bal_get64(from) : bal_get32(from);

    return bits & signs[number] ? UINT64_MAX : bits;
}

/* How many indices are less than element. */
static int search(const bal_wd_reader *self, uint64_t element, uint64_t *out,
                  bal_error *err)
{
    const bal_wd_array *index = &self->tensor->arrays[BAL_WD_INDEX];
    size_t width = bal_wd_width(index->number);
    uint64_t low = 0;
    uint64_t high = index->count;
    uint8_t raw[8];

    if (element >= self->tensor->n)
        low = high;
    if (!element)
        high = 0;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int rc = bal_file_read(self->file->file, index->offset + middle * width,
                               raw, width, err);
        if (rc)
            return rc;
        if (index_of(raw, index->number) < element)
            low = middle + 1;
        else
            high = middle;
    }
    *out = low;
    return 0;
}

static int read_array(const bal_wd_reader *self, size_t field, uint64_t at,
                      void *to, size_t n, bal_error *err)
{
    const bal_wd_array *array = &self->tensor->arrays[field];
    size_t width = bal_wd_width(array->number);

    return bal_file_read(self->file->file, array->offset + at * width, to,
                         n * width, err);
}

static int read_batch(bal_wd_reader *self, bal_error *err)
{
    size_t n = (size_t)bal_min(BATCH, self->end - self->next);
    int rc =
        read_array(self, BAL_WD_INDEX, self->next, self->index_raw, n, err);

    if (!rc)
        rc = read_array(self, BAL_WD_VALUES, self->next, self->value_raw, n,
                        err);
    self->batch = self->next;
    self->batched = rc ? 0 : n;
    return rc;
}

static void widen(float *to, const bal_wd_array *array, const void *raw,
                  size_t n)
{
    bal_kernels_use()->to_f32[array->number == BAL_WD_F16 ? BAL_F16 : BAL_F32](
        to, raw, n);
}

/* What of the batch is in [at, at + n), as places and values. */
static int take_batch(bal_wd_reader *self, size_t n, bal_error *err)
{
    const bal_wd_array *index = &self->tensor->arrays[BAL_WD_INDEX];
    const bal_wd_array *values = &self->tensor->arrays[BAL_WD_VALUES];
    size_t width = bal_wd_width(index->number);
    size_t first = (size_t)(self->next - self->batch);
    size_t i = first;
    size_t start = self->count;

    for (; i < self->batched; i++) {
        uint64_t place = index_of(self->index_raw + i * width, index->number);
        if (place >= self->at + n && place < self->tensor->n)
            break;
        bool up =
            !self->count || place > self->at + self->places[self->count - 1];
        if (place < self->at || place >= self->at + n || !up)
            return corrupt(self, "indices that do not ascend, or are too large",
                           err);
        self->places[self->count++] = (uint32_t)(place - self->at);
    }
    widen(self->values + start, values,
          self->value_raw + first * bal_wd_width(values->number), i - first);
    self->next += i - first;
    return 0;
}

/* The indices and values of the next n elements. */
static int take_listed(bal_wd_reader *self, size_t n, bal_error *err)
{
    self->count = 0;
    while (self->next < self->end) {
        int rc = 0;
        if (self->next >= self->batch + self->batched)
            rc = read_batch(self, err);
        if (!rc)
            rc = take_batch(self, n, err);
        if (rc)
            return rc;
        if (self->next < self->batch + self->batched)
            return 0;
    }
    return 0;
}

/* ---- strategies --------------------------------------------------------- */

/* Version 1 adds 0 to all the others, which makes 0 of a -0. */
static int add_sparse(bal_wd_reader *self, float *x, size_t n, bal_error *err)
{
    const bal_kernels *kernels = bal_kernels_use();
    int rc = take_listed(self, n, err);
    if (rc)
        return rc;

    if (self->file->version == 1) {
        memset(self->room, 0, n * sizeof(*self->room));
        for (size_t i = 0; i < self->count; i++)
            self->room[self->places[i]] = self->values[i];
        kernels->add_f32(x, x, self->room, n);
        return 0;
    }
    for (size_t i = 0; i < self->count; i++) {
        float *at = &x[self->places[i]];
        kernels->add_f32(at, at, &self->values[i], 1);
    }
    return 0;
}

static int read_scales(bal_wd_reader *self, uint64_t first, size_t n,
                       bal_error *err)
{
    int rc = read_array(self, BAL_WD_SCALES, first, self->raw, n, err);

    if (!rc)
        widen(self->values, &self->tensor->arrays[BAL_WD_SCALES], self->raw, n);
    return rc;
}

static int add_quantized(bal_wd_reader *self, float *x, size_t n,
                         bal_error *err)
{
    const bal_kernels *kernels = bal_kernels_use();
    uint64_t columns = self->tensor->n_columns;
    uint64_t row = self->at / columns;
    size_t rows = (size_t)((self->at + n - 1) / columns - row) + 1;
    size_t bytes = (n + 7) / 8;
    int rc =
        read_array(self, BAL_WD_SIGNS, self->at / 8, self->raw, bytes, err);

    if (rc)
        return rc;
    kernels->spread_signs(self->room, self->raw, bytes);
    rc = read_scales(self, row, rows, err);
    if (rc)
        return rc;
    size_t left = (size_t)bal_min(columns - self->at % columns, n);
    for (size_t i = 0, at = 0; at < n; i++) {
        for (size_t k = 0; k < left; k++)
            self->room[at + k] *= self->values[i];
        at += left;
        left = (size_t)bal_min(columns, n - at);
    }
    kernels->add_f32(x, x, self->room, n);
    return 0;
}

/* Codes [first, first + n), as floats at room + *from. */
static int read_codes(bal_wd_reader *self, uint64_t first, size_t n,
                      size_t *from, bal_error *err)
{
    size_t odd = (size_t)(first % 2);
    size_t bytes = (n + odd + 1) / 2;
    int rc =
        n ? read_array(self, BAL_WD_PACKED, first / 2, self->raw, bytes, err)
          : 0;

    if (rc)
        return rc;
    if (n)
        bal_kernels_use()->unpack4(self->room, self->raw, bytes, self->table);
    *from = odd;
    return 0;
}

/* Layout 1 has no codes for the outliers: runs of codes lie between them. */
static int add_runs(bal_wd_reader *self, float *x, size_t n, bal_error *err)
{
    const bal_kernels *kernels = bal_kernels_use();
    size_t from = 0;
    size_t at = 0;
    uint64_t before = self->next - self->count;
    int rc = read_codes(self, self->at - before, n - self->count, &from, err);
    if (rc)
        return rc;

    for (size_t i = 0; i <= self->count; i++) {
        size_t stop = i < self->count ? self->places[i] : n;
        kernels->add_f32(x + at, x + at, self->room + from, stop - at);
        if (i < self->count)
            kernels->add_f32(x + stop, x + stop, &self->values[i], 1);
        from += stop - at;
        at = stop + 1;
    }
    return 0;
}

static int add_int4(bal_wd_reader *self, float *x, size_t n, bal_error *err)
{
    size_t from = 0;
    int rc = take_listed(self, n, err);
    if (rc)
        return rc;
    if (self->tensor->layout < 2)
        return add_runs(self, x, n, err);

    rc = read_codes(self, self->at, n, &from, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < self->count; i++)
        self->room[from + self->places[i]] = self->values[i];
    bal_kernels_use()->add_f32(x, x, self->room + from, n);
    return 0;
}

/* ---- ranges ------------------------------------------------------------- */

static int open_listed(bal_wd_reader *self, uint64_t n, bal_error *err)
{
    int rc = search(self, self->at, &self->next, err);

    if (!rc)
        rc = search(self, self->at + n, &self->end, err);
    if (!rc && self->end < self->next)
        rc = corrupt(self, "indices that do not ascend", err);
    return rc;
}

static int open_none(bal_wd_reader *self, uint64_t n, bal_error *err)
{
    (void)self;
    (void)n;
    (void)err;
    return 0;
}

static int open_int4(bal_wd_reader *self, uint64_t n, bal_error *err)
{
    uint8_t scale[2];
    uint8_t zero[2];
    int rc = read_array(self, BAL_WD_SCALE, 0, scale, 1, err);

    if (!rc)
        rc = read_array(self, BAL_WD_ZERO, 0, zero, 1, err);
    if (rc)
        return rc;
    bal_wd_table(self->table, (uint16_t)(scale[0] | scale[1] << 8),
                 (uint16_t)(zero[0] | zero[1] << 8));
    return open_listed(self, n, err);
}

static const struct {
    int (*open)(bal_wd_reader *self, uint64_t n, bal_error *err);
    int (*add)(bal_wd_reader *self, float *x, size_t n, bal_error *err);
} rows[] = {
    [BAL_WD_SPARSE] = { open_listed, add_sparse },
    [BAL_WD_QUANTIZED] = { open_none, add_quantized },
    [BAL_WD_INT4] = { open_int4, add_int4 },
};

static int make_room(bal_wd_reader *self, uint64_t n, bal_error *err)
{
    size_t chunk = (size_t)(bal_min(n, BAL_WD_CHUNK) + 15) / 8 * 8;
    size_t size = chunk * (sizeof(*self->places) + sizeof(*self->values) +
                           sizeof(*self->room) + 4) +
                  512 * sizeof(*self->table) + (size_t)BATCH * 12;

    self->memory = malloc(size);
    if (!self->memory)
        return bal_fail_memory(err, "reading a .wdelta file");
    self->places = self->memory;
    self->values = (float *)(void *)(self->places + chunk);
    self->room = self->values + chunk;
    self->table = self->room + chunk;
    self->index_raw = (uint8_t *)(self->table + 512);
    self->value_raw = self->index_raw + (size_t)BATCH * 8;
    self->raw = self->value_raw + (size_t)BATCH * 4;
    return 0;
}

int bal_wd_reader_open(bal_wd_reader *out, const bal_wdelta *file,
                       const bal_wd_tensor *tensor, uint64_t at, uint64_t n,
                       bal_error *err)
{
    *out = (bal_wd_reader){ .file = file, .tensor = tensor, .at = at };
    int rc = make_room(out, n, err);

    return rc ? rc : rows[tensor->kind].open(out, n, err);
}

int bal_wd_reader_add(bal_wd_reader *self, float *x, size_t n, bal_error *err)
{
    int rc = n ? rows[self->tensor->kind].add(self, x, n, err) : 0;

    self->at += n;
    if (!rc && self->at == self->stop && self->next != self->end)
        rc = corrupt(self, "indices that do not ascend", err);
    return rc;
}

void bal_wd_reader_done(bal_wd_reader *self)
{
    free(self->memory);
    *self = (bal_wd_reader){ 0 };
}
