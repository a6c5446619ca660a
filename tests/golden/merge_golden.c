/* Every merge method against what mergekit 0.1.5 gives (arithmetic mergekit),
 * and against the truth computed in float64 and rounded once (precise).
 *
 *   merge_golden [METHOD…]
 *
 * Data and rules: tests/golden/mergekit/README.md. One line a method and
 * arithmetic; the status tells whether all passed. */
#include <stdlib.h>
#include <string.h>

#include "golden/golden_big.h"
#include "golden/golden_models.h"

enum { METHODS = 32 };

typedef struct tally {
    const char *method;
    size_t same, stable, near, failed, skipped, missing;
} tally;

typedef struct score {
    const char *arithmetic;
    tally rows[METHODS];
    size_t count;
} score;

typedef struct golden {
    char **methods; /* those asked for; NULL after the last */
    const json_t *truth;
    score mergekit, precise;
} golden;

static tally *tally_of(score *self, const char *method)
{
    for (size_t i = 0; i < self->count; i++) {
        if (!strcmp(self->rows[i].method, method))
            return &self->rows[i];
    }
    if (self->count == METHODS)
        abort();
    self->rows[self->count].method = method;
    return &self->rows[self->count++];
}

static void add(score *to, const char *file, const json_t *one,
                const golden_finding *finding)
{
    tally *row =
        tally_of(to, json_string_value(json_object_get(one, "method")));
    size_t *counts[] = {
        [GOLDEN_SAME] = &row->same,
        [GOLDEN_STABLE] = &row->stable,
        [GOLDEN_NEAR] = &row->near,
        [GOLDEN_WRONG] = &row->failed,
    };

    ++*counts[finding->verdict];
    if (finding->verdict == GOLDEN_WRONG)
        printf("FAILED %s/%s %s: %s\n", file,
               json_string_value(json_object_get(one, "id")), to->arithmetic,
               finding->text);
}

static bool is_wanted(const golden *self, const char *method)
{
    for (size_t i = 0; self->methods[i]; i++) {
        if (!strcmp(self->methods[i], method))
            return true;
    }
    return !self->methods[0];
}

/* True if there is nothing to run; it is counted. */
static bool is_passed_over(golden *self, const json_t *one)
{
    const char *method = json_string_value(json_object_get(one, "method"));

    if (!is_wanted(self, method))
        return true;
    if (!bal_method_row(method)) {
        tally_of(&self->mergekit, method)->missing++;
        return true;
    }
    return false;
}

/* ---- files -------------------------------------------------------------- */

static bool small_inputs(golden_inputs *out, const json_t *tensors,
                         const json_t *one)
{
    const json_t *order = json_object_get(one, "order");
    bool good = true;

    for (size_t i = 0; good && i < json_array_size(order); i++) {
        const char *name = json_string_value(json_array_get(order, i));
        const char *key = json_string_value(
            json_object_get(json_object_get(one, "inputs"), name));
        golden_tensor tensor;

        good = out->count < GOLDEN_INPUTS &&
               golden_tensor_read(&tensor, json_object_get(tensors, key));
        if (good)
            golden_inputs_add(out, name, &tensor);
        golden_tensor_done(&tensor);
    }
    return good;
}

/* The truth of a case: an object, null where it only has to be finite; absent
 * where there is none. */
static void run_precise(golden *self, const char *file, const json_t *one,
                        const golden_inputs *inputs)
{
    const char *id = json_string_value(json_object_get(one, "id"));
    const json_t *truth =
        json_object_get(json_object_get(self->truth, file), id);
    golden_finding finding;
    golden_result result;

    if (!truth) {
        tally_of(&self->precise,
                 json_string_value(json_object_get(one, "method")))
            ->skipped++;
        return;
    }
    golden_run(&result, one, inputs, false);
    golden_judge_truth(&finding, &result, json_is_null(truth) ? NULL : truth);
    golden_tensor_done(&result.tensor);
    add(&self->precise, file, one, &finding);
}

static void run_small(golden *self, const char *file, const json_t *one,
                      const json_t *tensors)
{
    golden_inputs inputs = { 0 };
    golden_finding finding = { GOLDEN_WRONG, "the case is not understood" };
    golden_result result;

    if (!small_inputs(&inputs, tensors, one)) {
        add(&self->mergekit, file, one, &finding);
    } else {
        golden_run(&result, one, &inputs, true);
        golden_judge(&finding, &result, one);
        golden_tensor_done(&result.tensor);
        add(&self->mergekit, file, one, &finding);
        run_precise(self, file, one, &inputs);
    }
    golden_inputs_done(&inputs);
}

static void run_big(golden *self, const char *file, const json_t *one,
                    const json_t *tensors)
{
    golden_inputs inputs = { 0 };
    golden_finding finding = { GOLDEN_WRONG, "the inputs are not as told" };
    golden_result result;
    (void)tensors;

    if (golden_big_inputs(&inputs, one)) {
        golden_run(&result, one, &inputs, true);
        golden_big_judge(&finding, &result, one);
        golden_tensor_done(&result.tensor);
    }
    add(&self->mergekit, file, one, &finding);
    golden_inputs_done(&inputs);
}

static void run_models(golden *self, const char *file, const json_t *one,
                       const json_t *tensors)
{
    golden_inputs inputs = { 0 };
    golden_finding finding = { GOLDEN_WRONG, "the case is not understood" };

    if (golden_models_inputs(&inputs, tensors, one))
        golden_models_judge(&finding, &inputs, one);
    add(&self->mergekit, file, one, &finding);
    golden_inputs_done(&inputs);
}

static const struct {
    const char *name;
    void (*run)(golden *self, const char *file, const json_t *one,
                const json_t *tensors);
} files[] = {
    { "golden_tensors.json", run_small },
    { "golden_torch113.json", run_small },
    { "golden_big.json", run_big },
    { "golden_models.json", run_models },
};

enum { FILES = sizeof(files) / sizeof(files[0]) };

static bool run_file(golden *self, size_t i, const json_t *json)
{
    const json_t *cases = json_object_get(json, "cases");

    if (!json_array_size(cases))
        return false;
    for (size_t k = 0; k < json_array_size(cases); k++) {
        const json_t *one = json_array_get(cases, k);
        if (!is_passed_over(self, one))
            files[i].run(self, files[i].name, one,
                         json_object_get(json, "tensors"));
    }
    return true;
}

/* ---- all ---------------------------------------------------------------- */

/* What did not pass. */
static size_t say(const score *self)
{
    size_t bad = 0;

    for (size_t i = 0; i < self->count; i++) {
        const tally *row = &self->rows[i];
        printf("%-16s %-8s %3zu passed (%zu stable, %zu near), %zu failed, "
               "%zu skipped, %zu missing\n",
               row->method, self->arithmetic,
               row->same + row->stable + row->near, row->stable, row->near,
               row->failed, row->skipped, row->missing);
        bad += row->failed + row->missing;
    }
    return bad;
}

int main(int argc, char **argv)
{
    golden self = {
        .methods = argv + (argc > 0),
        .mergekit = { .arithmetic = "mergekit" },
        .precise = { .arithmetic = "precise" },
    };
    json_t *json[FILES] = { NULL };
    json_t *truth = golden_load("precise.json");
    bool good = truth != NULL;

    self.truth = truth;
    for (size_t i = 0; good && i < FILES; i++) {
        json[i] = golden_load(files[i].name);
        good = json[i] && run_file(&self, i, json[i]);
    }
    size_t bad = say(&self.mergekit) + say(&self.precise);
    /* Last: the tallies borrow names from them. */
    for (size_t i = 0; i < FILES; i++)
        json_decref(json[i]);
    json_decref(truth);
    return bad || !good;
}
