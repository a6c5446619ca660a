/* A read is cut into rectangles of at most CHUNK elements. Each takes its rows
 * of the left factor at once and the right one in blocks of k, so memory does
 * not grow with rank or width, and since k rises whatever the rectangles are,
 * an element does not depend on how it is read. */
#include "model/update.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"
#include "model/elements.h"

enum { CHUNK = BAL_UPDATE_CHUNK };

bal_area bal_update_next(const bal_update *self, uint64_t start, uint64_t n)
{
    uint64_t size = self->rows * self->cols;
    uint64_t inside = start % size;
    bal_area next = { start / size, inside / self->cols, inside % self->cols, 1,
                      0 };
    uint64_t rank =
        bal_max(1, bal_max(self->operands[0].rank, self->operands[1].rank));

    next.cols = (size_t)bal_min(bal_min(self->cols - next.col, n), CHUNK);
    if (next.cols == self->cols) {
        uint64_t rows = bal_min(CHUNK / self->cols, CHUNK / rank);
        rows = bal_min(rows, bal_min(n / self->cols, self->rows - next.row));
        next.rows = (size_t)bal_max(1, rows);
    }
    return next;
}

int bal_update_room_init(bal_update_room *self, bal_error *err)
{
    double *memory = malloc(5 * (size_t)CHUNK * sizeof(*memory));

    if (!memory)
        return bal_fail_memory(err, "folding an adapter");
    *self = (bal_update_room){
        .memory = memory,
        .sum = memory,
        .other = memory + CHUNK,
        .left = memory + 2 * (size_t)CHUNK,
        .right = memory + 3 * (size_t)CHUNK,
        .raw = memory + 4 * (size_t)CHUNK,
    };
    return 0;
}

void bal_update_room_done(bal_update_room *self)
{
    free(self->memory);
    *self = (bal_update_room){ 0 };
}

/* ---- reading factors ---------------------------------------------------- */

/* Lines of a matrix that lie `apart` in the file, their elements `step`. */
typedef struct lines {
    size_t count, length;
    uint64_t start, apart, step;
    size_t down, right; /* strides of where they go */
} lines;

/* How many lines to read at once: those between which little else lies. */
static size_t batch_of(const lines *self, uint64_t span)
{
    if (!self->apart)
        return self->count;
    if (self->apart > 2 * span)
        return 1;
    return (size_t)bal_min(self->count, 1 + (CHUNK - span) / self->apart);
}

static int read_lines(const lines *self, bal_model *adapter, size_t entry,
                      double *raw, double *to, bal_error *err)
{
    uint64_t span = (self->length - 1) * self->step + 1;
    size_t batch;

    if (span > CHUNK)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' is of too many experts or too high a rank",
                        bal_model_at(adapter, entry)->name);
    batch = batch_of(self, span);
    for (size_t i = 0; i < self->count; i += batch) {
        size_t now = (size_t)bal_min(batch, self->count - i);
        int rc = bal_elements_read(
            raw, adapter, entry, self->start + i * self->apart,
            (size_t)((now - 1) * self->apart + span), err);
        if (rc)
            return rc;
        for (size_t k = 0; k < now * self->length; k++) {
            size_t line = k / self->length;
            size_t at = k % self->length;
            to[(i + line) * self->down + at * self->right] =
                raw[line * self->apart + at * self->step];
        }
    }
    return 0;
}

/* Part of a matrix, row by row, to `to`. */
static int read_part(const bal_strided *self, bal_model *adapter,
                     const bal_area *area, double *raw, double *to,
                     bal_error *err)
{
    lines rows = {
        .count = area->rows,
        .length = area->cols,
        .start = self->start + area->matrix * self->step +
                 area->row * self->down + area->col * self->right,
        .apart = self->down,
        .step = self->right,
        .down = area->cols,
        .right = 1,
    };
    bool packed = self->right == 1 && self->down == area->cols;

    if (packed || (self->right == 1 && area->rows == 1))
        return bal_elements_read(to, adapter, self->entry, rows.start,
                                 area->rows * area->cols, err);
    if (self->right > self->down) {
        lines cols = rows;
        cols.count = area->cols;
        cols.length = area->rows;
        cols.apart = self->right;
        cols.step = self->down;
        cols.down = 1;
        cols.right = area->cols;
        return read_lines(&cols, adapter, self->entry, raw, to, err);
    }
    return read_lines(&rows, adapter, self->entry, raw, to, err);
}

/* ---- operands ----------------------------------------------------------- */

static int read_left(const bal_operand *self, bal_model *adapter,
                     const bal_area *area, bal_update_room *room,
                     bal_error *err)
{
    size_t rank = (size_t)self->rank;
    bal_area part = { area->matrix, area->row, 0, area->rows, rank };
    int rc = read_part(&self->left, adapter, &part, room->raw, room->left, err);

    if (rc || self->diagonal == BAL_NONE)
        return rc;
    rc = bal_elements_read(room->raw, adapter, self->diagonal, 0, rank, err);
    for (size_t i = 0; i < area->rows * rank && !rc; i++)
        room->left[i] *= room->raw[i % rank];
    return rc;
}

static bool is_held(const bal_update_room *room, const bal_operand *operand,
                    const bal_area *part)
{
    const bal_area *held = &room->held_area;

    return room->held == operand && held->matrix == part->matrix &&
           held->row == part->row && held->col == part->col &&
           held->rows == part->rows && held->cols == part->cols;
}

static int read_right(const bal_operand *self, bal_model *adapter,
                      const bal_area *part, bal_update_room *room,
                      bal_error *err)
{
    if (is_held(room, self, part))
        return 0;
    room->held = NULL;
    int rc =
        read_part(&self->right, adapter, part, room->raw, room->right, err);
    if (rc)
        return rc;
    room->held = self;
    room->held_area = *part;
    return 0;
}

/* to[r, c] = Σ_k left[r, k] right[k, c]. */
static int product(const bal_operand *self, bal_model *adapter,
                   const bal_area *area, bal_update_room *room, double *to,
                   bal_error *err)
{
    const bal_kernels *kernels = bal_kernels_use();
    size_t rank = (size_t)self->rank;
    size_t block = (size_t)bal_max(1, CHUNK / area->cols);

    memset(to, 0, area->rows * area->cols * sizeof(double));
    int rc = read_left(self, adapter, area, room, err);
    if (rc)
        return rc;
    for (size_t k = 0; k < rank; k += block) {
        size_t count = (size_t)bal_min(block, rank - k);
        bal_area part = { area->matrix, k, area->col, count, area->cols };
        rc = read_right(self, adapter, &part, room, err);
        if (rc)
            return rc;
        for (size_t row = 0; row < area->rows; row++)
            kernels->terms(to + row * area->cols, room->left + row * rank + k,
                           room->right, count, area->cols);
    }
    return 0;
}

static int operand(const bal_operand *self, bal_model *adapter,
                   const bal_area *area, bal_update_room *room, double *to,
                   bal_error *err)
{
    if (!self->rank)
        return read_part(&self->left, adapter, area, room->raw, to, err);
    return product(self, adapter, area, room, to, err);
}

/* ---- formulas ----------------------------------------------------------- */

static int one(const bal_update *self, bal_model *adapter, const bal_area *area,
               bal_update_room *room, bal_error *err)
{
    return operand(&self->operands[0], adapter, area, room, room->sum, err);
}

static int hadamard(const bal_update *self, bal_model *adapter,
                    const bal_area *area, bal_update_room *room, bal_error *err)
{
    int rc = operand(&self->operands[0], adapter, area, room, room->sum, err);
    if (!rc)
        rc = operand(&self->operands[1], adapter, area, room, room->other, err);
    if (rc)
        return rc;
    bal_kernels_use()->mul_f64(room->sum, room->sum, room->other,
                               area->rows * area->cols);
    return 0;
}

/* Part of one row: numbers of a row of the first, each times a row of the
 * second. Both are in room->other, the first's behind the second's. */
static int kronecker_row(const bal_update *self, bal_model *adapter,
                         const bal_area *row, bal_update_room *room, double *to,
                         bal_error *err)
{
    size_t width = (size_t)self->cols2;
    uint64_t block = row->col / width;
    size_t blocks = (size_t)((row->col + row->cols - 1) / width - block + 1);
    bal_area second = { 0, row->row % self->rows2, 0, 1, width };
    bal_area first = { 0, row->row / self->rows2, block, 1, blocks };
    double *factors = room->other + width;

    int rc = operand(&self->operands[0], adapter, &first, room, factors, err);
    if (!rc)
        rc = operand(&self->operands[1], adapter, &second, room, room->other,
                     err);
    if (rc)
        return rc;
    for (size_t i = 0; i < row->cols; i++) {
        size_t at = (size_t)(row->col % width) + i;
        to[i] = factors[at / width] * room->other[at % width];
    }
    return 0;
}

static int kronecker(const bal_update *self, bal_model *adapter,
                     const bal_area *area, bal_update_room *room,
                     bal_error *err)
{
    for (size_t i = 0; i < area->rows; i++) {
        bal_area row = { 0, area->row + i, area->col, 1, area->cols };
        int rc = kronecker_row(self, adapter, &row, room,
                               room->sum + i * area->cols, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int (*const formulas[])(const bal_update *, bal_model *,
                               const bal_area *, bal_update_room *,
                               bal_error *) = {
    [BAL_FORMULA_ONE] = one,
    [BAL_FORMULA_HADAMARD] = hadamard,
    [BAL_FORMULA_KRONECKER] = kronecker,
};

int bal_update_value(const bal_update *self, bal_model *adapter,
                     const bal_area *area, bal_update_room *room,
                     bal_error *err)
{
    int rc = formulas[self->formula](self, adapter, area, room, err);
    if (rc)
        return rc;
    if (self->meeting != BAL_MEETING_TIMES)
        bal_kernels_use()->scale_or_keep(room->sum, self->scale,
                                         area->rows * area->cols);
    return 0;
}

/* ---- meeting the weights ------------------------------------------------ */

/* sum = what becomes of the weights. */
static void add(const bal_update *self, const bal_area *area, double *sum,
                const double *weights)
{
    (void)self;
    bal_kernels_use()->add_f64(sum, sum, weights, area->rows * area->cols);
}

static void times(const bal_update *self, const bal_area *area, double *sum,
                  const double *weights)
{
    (void)self;
    bal_kernels_use()->mul_f64(sum, sum, weights, area->rows * area->cols);
}

static void dora(const bal_update *self, const bal_area *area, double *sum,
                 const double *weights)
{
    const bal_kernels *kernels = bal_kernels_use();

    add(self, area, sum, weights);
    for (size_t i = 0; i < area->rows; i++) {
        double *row = sum + i * area->cols;
        if (self->turned)
            kernels->mul_f64(row, row, self->lengths + area->col, area->cols);
        else
            kernels->scale(row, self->lengths[area->row + i], area->cols);
    }
}

static void (*const meetings[])(const bal_update *, const bal_area *, double *,
                                const double *) = {
    [BAL_MEETING_ADD] = add,
    [BAL_MEETING_TIMES] = times,
    [BAL_MEETING_DORA] = dora,
};

/* The least magnitude that a dtype rounds to infinity. */
static double overflow(bal_dtype dtype)
{
    static const double limits[BAL_DTYPES] = {
        [BAL_F16] = 65520,
        [BAL_BF16] = 0x1.ffp127,
        [BAL_F32] = 0x1.ffffffp127,
        [BAL_F64] = (double)INFINITY,
    };

    return limits[dtype];
}

/* What was finite must stay it; before NULL: everything was. */
static int check_finite(const double *now, const double *before, size_t n,
                        double limit, bal_error *err)
{
    if (bal_kernels_use()->all_below(now, limit, n))
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(now[i]) < limit) && (!before || isfinite(before[i])))
            return bal_fail(err, BAL_ECORRUPT,
                            "the adapter's update is not finite in the base's "
                            "dtype: its scale or its factors are too large");
    }
    return 0;
}

int bal_update_apply(const bal_update *self, bal_model *adapter,
                     bal_dtype dtype, uint64_t start, uint64_t n, void *to,
                     bal_error *err)
{
    const bal_kernels *kernels = bal_kernels_use();
    size_t width = bal_dtype_bits(dtype) / 8;
    uint8_t *at = to;
    bal_update_room room = { 0 };
    int rc = bal_update_room_init(&room, err);

    while (n && !rc) {
        bal_area area = bal_update_next(self, start, n);
        size_t count = area.rows * area.cols;

        rc = bal_update_value(self, adapter, &area, &room, err);
        if (rc)
            break;
        kernels->to_f64[dtype](room.raw, at, count);
        meetings[self->meeting](self, &area, room.sum, room.raw);
        rc = check_finite(room.sum, room.raw, count, overflow(dtype), err);
        if (rc)
            break;
        kernels->from_f64[dtype](at, room.sum, count);
        at += count * width;
        start += count;
        n -= count;
    }
    bal_update_room_done(&room);
    return rc;
}

/* sum = what the weights become, less what they were. */
static int subtract(const bal_update *self, const bal_area *area,
                    const bal_update_sides *sides, uint64_t start,
                    bal_update_room *room, bal_error *err)
{
    size_t count = area->rows * area->cols;
    int rc = bal_elements_read(room->raw, sides->base, sides->entry, start,
                               count, err);
    if (rc)
        return rc;

    meetings[self->meeting](self, area, room->sum, room->raw);
    bal_kernels_use()->sub_f64(room->sum, room->sum, room->raw, count);
    return 0;
}

int bal_update_difference(const bal_update *self, const bal_update_sides *sides,
                          bal_dtype dtype, uint64_t start, uint64_t n, void *to,
                          bal_error *err)
{
    size_t width = bal_dtype_bits(dtype) / 8;
    bool plain = self->meeting == BAL_MEETING_ADD;
    uint8_t *at = to;
    bal_update_room room = { 0 };
    int rc = bal_update_room_init(&room, err);

    while (n && !rc) {
        bal_area area = bal_update_next(self, start, n);
        size_t count = area.rows * area.cols;

        rc = bal_update_value(self, sides->adapter, &area, &room, err);
        if (!rc && !plain)
            rc = subtract(self, &area, sides, start, &room, err);
        if (!rc)
            rc = check_finite(room.sum, plain ? NULL : room.raw, count,
                              overflow(dtype), err);
        if (rc)
            break;
        bal_kernels_use()->from_f64[dtype](at, room.sum, count);
        at += count * width;
        start += count;
        n -= count;
    }
    bal_update_room_done(&room);
    return rc;
}
