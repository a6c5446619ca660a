/* A module's output is W + s B A, brought to the length m: norms are taken over
 * the inputs, which are a row of the weight as a linear module has it and a
 * column of an embedding or a Conv1D. An item of work is some outputs, all
 * their inputs in rising order, so the sums do not depend on the number of
 * threads. */
#include "model/fold_dora.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "model/elements.h"

enum { OUTPUTS = 256, CHUNK = BAL_UPDATE_CHUNK };

typedef struct item {
    const bal_edit *edit;
    uint64_t from; /* the first output */
    size_t count;
} item;

typedef struct job {
    const bal_edits *edits;
    item *items;
    size_t count;
} job;

static uint64_t outputs_of(const bal_update *change)
{
    return change->turned ? change->cols : change->rows;
}

static uint64_t inputs_of(const bal_update *change)
{
    return change->turned ? change->rows : change->cols;
}

/* The weight's own elements, row by row, as doubles. */
static int read_weight(const bal_edits *self, const bal_edit *edit,
                       const bal_area *area, double *to, bal_error *err)
{
    bool whole = edit->whole != BAL_NONE;
    bal_model *from = whole ? self->adapter : self->base;
    size_t entry = whole ? edit->whole : edit->base;
    uint64_t cols = edit->change->cols;
    size_t rows = area->cols == cols ? area->rows : 1; /* to read at once */

    for (size_t i = 0; i < area->rows; i += rows) {
        int rc = bal_elements_read(to + i * area->cols, from, entry,
                                   (area->row + i) * cols + area->col,
                                   rows * area->cols, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Squares of the area's elements to the sums of their outputs. */
static void add_squares(const bal_update *change, const bal_area *area,
                        const double *weights, const double *update,
                        double *sums)
{
    for (size_t i = 0; i < area->rows; i++) {
        for (size_t k = 0; k < area->cols; k++) {
            double x = weights[i * area->cols + k] + update[i * area->cols + k];
            sums[change->turned ? k : i] += x * x;
        }
    }
}

static size_t most_outputs(const bal_update *change)
{
    uint64_t rank = bal_max(1, change->operands[0].rank);

    return (size_t)bal_max(1, bal_min(OUTPUTS, CHUNK / rank));
}

/* Of a linear module whole rows, a few outputs at once; else all outputs of the
 * item, a few inputs. */
static bal_area next_area(const bal_update *change, const item *self,
                          size_t output, uint64_t input)
{
    uint64_t rank = bal_max(1, change->operands[0].rank);
    uint64_t inputs = inputs_of(change) - input;
    uint64_t outputs = self->count - output;
    uint64_t most = CHUNK / rank;

    if (change->turned) {
        inputs = bal_min(inputs, bal_min(most, CHUNK / outputs));
        return (bal_area){ 0, input, self->from, (size_t)inputs,
                           (size_t)outputs };
    }
    inputs = bal_min(inputs, CHUNK);
    outputs = bal_min(outputs, bal_min(most, CHUNK / inputs));
    if (inputs < inputs_of(change))
        outputs = 1;
    return (bal_area){ 0, self->from + output, input, (size_t)outputs,
                       (size_t)inputs };
}

static int square_sums(const bal_edits *edits, const item *self, double *sums,
                       bal_update_room *room, bal_error *err)
{
    const bal_update *change = self->edit->change;
    size_t output = 0;
    uint64_t input = 0;

    while (output < self->count) {
        bal_area area = next_area(change, self, output, input);
        int rc = bal_update_value(change, edits->adapter, &area, room, err);
        if (!rc)
            rc = read_weight(edits, self->edit, &area, room->other, err);
        if (rc)
            return rc;
        add_squares(change, &area, room->other, room->sum, sums + output);
        input += change->turned ? area.rows : area.cols;
        if (input < inputs_of(change))
            continue;
        input = 0;
        output += change->turned ? area.cols : area.rows;
    }
    return 0;
}

static int measure(size_t i, void *ctx, bal_error *err)
{
    const job *self = ctx;
    const item *one = &self->items[i];
    const bal_update *change = one->edit->change;
    double sums[OUTPUTS] = { 0 };
    bal_update_room room = { 0 };
    int rc = bal_update_room_init(&room, err);
    if (rc)
        return rc;
    rc = square_sums(self->edits, one, sums, &room, err);
    bal_update_room_done(&room);
    if (rc)
        return rc;

    double *lengths = change->lengths + one->from;
    rc = bal_elements_read(lengths, self->edits->adapter, change->magnitude,
                           one->from, one->count, err);
    if (rc)
        return rc;
    for (size_t k = 0; k < one->count; k++) {
        if (sums[k] == 0)
            return bal_fail(
                err, BAL_ECORRUPT,
                "output %llu of the weight that tensor '%s' scales "
                "is all 0",
                (unsigned long long)(one->from + k),
                bal_model_at(self->edits->adapter, change->magnitude)->name);
        lengths[k] /= sqrt(sums[k]);
    }
    return 0;
}

static size_t items_of(const bal_edit *edit)
{
    const bal_update *change = edit->change;

    if (!change || change->meeting != BAL_MEETING_DORA)
        return 0;
    size_t most = most_outputs(change);
    return (size_t)((outputs_of(change) + most - 1) / most);
}

static int add_items(job *self, const bal_edit *edit, bal_error *err)
{
    size_t count = items_of(edit);
    bal_update *change = edit->change;

    if (!count)
        return 0;
    uint64_t outputs = outputs_of(change);
    size_t most = most_outputs(change);
    change->lengths = calloc((size_t)outputs, sizeof(*change->lengths));
    if (!change->lengths)
        return bal_fail_memory(err, "folding an adapter");
    for (uint64_t at = 0; at < outputs; at += most)
        self->items[self->count++] =
            (item){ edit, at, (size_t)bal_min(most, outputs - at) };
    return 0;
}

static int run(job *self, bal_work *work, bal_error *err)
{
    int rc = 0;

    if (work)
        return bal_pool_run(work, self->count, measure, self, err);
    for (size_t i = 0; i < self->count && !rc; i++)
        rc = measure(i, self, err);
    return rc;
}

int bal_fold_dora(bal_edits *self, bal_work *work, bal_error *err)
{
    job all = { .edits = self };
    size_t most = 0;
    int rc = 0;

    for (size_t i = 0; i < self->count; i++)
        most += items_of(&self->rows[i]);
    if (!most)
        return 0;
    all.items = calloc(most, sizeof(*all.items));
    if (!all.items)
        return bal_fail_memory(err, "folding an adapter");
    for (size_t i = 0; i < self->count && !rc; i++)
        rc = add_items(&all, &self->rows[i], err);
    if (!rc)
        rc = run(&all, work, err);
    free(all.items);
    return rc;
}
