/* Reading the rows of a new vocabulary: gathered from the inputs, those that
 * lie together at once. Nothing is kept, so that any number of threads may. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/vocab_inside.h"
#include "model/elements.h"

enum {
    PIECE = 8 * 1024, /* elements that are computed at once */
    GROUP = 8,        /* what bal_model_read wants whole ones of */
    RAW = 64 * 1024,  /* elements that are copied at once */
};

/* A range of a tensor of the model in front of an input. */
typedef struct reading {
    const bal_vocab *vocab;
    const bal_row_tensor *tensor;
    size_t width; /* bytes of an element */
    double *wide; /* twice PIECE */
    uint8_t *raw; /* RAW and two groups */
} reading;

static uint32_t id_of(const bal_vocab *self, size_t input, uint32_t row)
{
    return self->ids[input * (size_t)self->rows + row];
}

static bool has(const bal_vocab *self, const bal_row_tensor *tensor,
                size_t input, uint32_t row)
{
    return tensor->entries[input] != BAL_NONE &&
           id_of(self, input, row) != BAL_ROW_LACKING;
}

/* Where nothing is told. */
static bal_row_from usual_row(const bal_vocab *self,
                              const bal_row_tensor *tensor, uint32_t row)
{
    size_t count = 0;
    size_t first = 0;

    for (size_t i = 0; i < self->count; i++) {
        if (!has(self, tensor, i, row))
            continue;
        first = count ? first : i;
        count++;
    }
    if (!count)
        return (bal_row_from){ .kind = BAL_FROM_ZEROS };
    if (self->base != BAL_NONE && has(self, tensor, self->base, row))
        first = self->base;
    else if (count > 1)
        return (bal_row_from){ .kind = BAL_FROM_MEAN };
    return (bal_row_from){ BAL_FROM_INPUT, first, id_of(self, first, row) };
}

bal_row_from bal_vocab_row(const bal_vocab *self, const bal_row_tensor *tensor,
                           size_t input, uint32_t row)
{
    uint32_t told = self->told[row];
    uint32_t own = id_of(self, input, row);
    bool forced = told != BAL_ROW_LACKING && self->told_rows[told].force;

    if (own != BAL_ROW_LACKING && !forced)
        return (bal_row_from){ BAL_FROM_INPUT, input, own };
    if (told != BAL_ROW_LACKING)
        return self->told_rows[told].from;
    return usual_row(self, tensor, row);
}

bool bal_vocab_passes(const bal_vocab *self, const bal_row_tensor *tensor,
                      size_t input)
{
    const bal_tensor *entry =
        bal_model_at(self->inputs[input], tensor->entries[input]);

    if (self->padded != self->rows || entry->shape[0] != self->rows ||
        entry->dtype != tensor->dtype)
        return false;
    for (uint32_t row = 0; row < self->rows; row++) {
        bal_row_from from = bal_vocab_row(self, tensor, input, row);
        if (from.kind != BAL_FROM_INPUT || from.input != input ||
            from.id != row)
            return false;
    }
    return true;
}

/* ---- what becomes of them ------------------------------------------------ */

/* An input's bytes, wherever they start. */
static int copy(uint8_t *to, const reading *self, size_t input, uint64_t start,
                uint64_t n, bal_error *err)
{
    bal_model *model = self->vocab->inputs[input];
    size_t entry = self->tensor->entries[input];
    uint64_t total = bal_model_at(model, entry)->size / self->width;

    while (n) {
        uint64_t low = start - start % GROUP;
        uint64_t end = bal_min(start + n, low + RAW);
        uint64_t high = bal_min(total, (end + GROUP - 1) / GROUP * GROUP);
        size_t got = (size_t)(end - start);
        int rc = bal_model_read(model, entry, low * self->width, self->raw,
                                (size_t)(high - low) * self->width, err);
        if (rc)
            return rc;
        memcpy(to, self->raw + (size_t)(start - low) * self->width,
               got * self->width);
        to += got * self->width;
        start += got;
        n -= got;
    }
    return 0;
}

/* Exact, for the tensor's dtype holds what the input's does. */
static int widen(uint8_t *to, const reading *self, size_t input, uint64_t start,
                 uint64_t n, bal_error *err)
{
    while (n) {
        size_t some = (size_t)bal_min(n, PIECE);
        int rc =
            bal_elements_read(self->wide, self->vocab->inputs[input],
                              self->tensor->entries[input], start, some, err);
        if (rc)
            return rc;
        bal_kernels_use()->from_f64[self->tensor->dtype](to, self->wide, some);
        to += some * self->width;
        start += some;
        n -= some;
    }
    return 0;
}

static int from_input(uint8_t *to, const reading *self, size_t input,
                      uint64_t start, uint64_t n, bal_error *err)
{
    const bal_tensor *entry =
        bal_model_at(self->vocab->inputs[input], self->tensor->entries[input]);

    if (entry->dtype == self->tensor->dtype)
        return copy(to, self, input, start, n, err);
    return widen(to, self, input, start, n, err);
}

/* Which of two NaNs goes on through a sum is up to the compiler. */
static void settle_nans(double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] != values[i])
            values[i] = __builtin_nan("");
    }
}

/* At most PIECE elements of a row, from column on. */
static int mean_piece(uint8_t *to, const reading *self, uint32_t row,
                      uint64_t column, size_t n, bal_error *err)
{
    const bal_vocab *vocab = self->vocab;
    bal_arith arith = { vocab->mergekit, self->tensor->dtype };
    double *sum = self->wide;
    double *one = self->wide + PIECE;
    size_t count = 0;

    memset(sum, 0, n * sizeof(*sum));
    for (size_t i = 0; i < vocab->count; i++) {
        if (!has(vocab, self->tensor, i, row))
            continue;
        uint64_t start = id_of(vocab, i, row) * self->tensor->width + column;
        int rc = bal_elements_read(one, vocab->inputs[i],
                                   self->tensor->entries[i], start, n, err);
        if (rc)
            return rc;
        bal_op_add(&arith, sum, sum, one, n);
        count++;
    }
    bal_op_over(&arith, sum, sum, (double)count, n);
    settle_nans(sum, n);
    bal_kernels_use()->from_f64[self->tensor->dtype](to, sum, n);
    return 0;
}

static int from_mean(uint8_t *to, const reading *self, uint32_t row,
                     uint64_t column, uint64_t n, bal_error *err)
{
    while (n) {
        size_t some = (size_t)bal_min(n, PIECE);
        int rc = mean_piece(to, self, row, column, some, err);
        if (rc)
            return rc;
        to += some * self->width;
        column += some;
        n -= some;
    }
    return 0;
}

/* ---- a range ------------------------------------------------------------- */

/* How many elements from `column` of row on come from one place, of n. */
static uint64_t run_length(const reading *self, size_t input, uint32_t row,
                           bal_row_from from, uint64_t column, uint64_t n)
{
    uint64_t width = self->tensor->width;
    uint64_t run = width - column;

    while (run < n && from.kind == BAL_FROM_INPUT) {
        bal_row_from next =
            bal_vocab_row(self->vocab, self->tensor, input, ++row);
        if (next.kind != BAL_FROM_INPUT || next.input != from.input ||
            next.id != ++from.id)
            break;
        run += width;
    }
    return bal_min(run, n);
}

static int read_rows(uint8_t *to, const reading *self, size_t input,
                     uint64_t start, uint64_t n, bal_error *err)
{
    uint64_t width = self->tensor->width;

    while (n) {
        uint32_t row = (uint32_t)(start / width);
        uint64_t column = start % width;
        bal_row_from from =
            bal_vocab_row(self->vocab, self->tensor, input, row);
        uint64_t run = run_length(self, input, row, from, column, n);
        int rc = 0;

        if (from.kind == BAL_FROM_INPUT)
            rc = from_input(to, self, from.input, from.id * width + column, run,
                            err);
        else if (from.kind == BAL_FROM_MEAN)
            rc = from_mean(to, self, row, column, run, err);
        else
            memset(to, 0, (size_t)run * self->width);
        if (rc)
            return rc;
        to += (size_t)run * self->width;
        start += run;
        n -= run;
    }
    return 0;
}

int bal_vocab_read(void *to, const bal_vocab *self,
                   const bal_row_tensor *tensor, size_t input, uint64_t start,
                   uint64_t n, bal_error *err)
{
    size_t width = bal_dtype_bits(tensor->dtype) / 8;
    size_t wide = 2 * (size_t)PIECE * sizeof(double);
    uint8_t *room = malloc(wide + (RAW + 2 * (size_t)GROUP) * width);
    if (!room)
        return bal_fail_memory(err, "reading a vocabulary's rows");

    reading job = {
        .vocab = self,
        .tensor = tensor,
        .width = width,
        .wide = (double *)(void *)room,
        .raw = room + wide,
    };
    int rc = read_rows(to, &job, input, start, n, err);
    free(room);
    return rc;
}
