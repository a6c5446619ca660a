/* What the inputs have to be re-rowed: their tensors that have a row a token,
 * and how many of their tokens have one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/json.h"
#include "core/json_edit.h"
#include "merge/join.h"
#include "merge/vocab_inside.h"

#define CONFIG_MAX ((uint64_t)64 << 20)

void bal_vocab_label(char out[BAL_INPUT_LABEL], const bal_vocab *self,
                     size_t input)
{
    const char *name = bal_model_facts(self->inputs[input])->name;

    snprintf(out, BAL_INPUT_LABEL, "input %zu ('%.90s')", input + 1,
             name ? name : "");
}

int bal_vocab_file(bal_buf *out, bool *found, const bal_vocab *self,
                   size_t input, const char *name, uint64_t most,
                   bal_error *err)
{
    bal_model *model = self->inputs[input];
    size_t i = bal_model_find(model, BAL_PART_FILE, name);
    char label[BAL_INPUT_LABEL];

    *found = false;
    if (i == BAL_NONE || bal_model_at(model, i)->form != BAL_FORM_WHOLE)
        return 0;
    uint64_t size = bal_model_at(model, i)->size;
    bal_vocab_label(label, self, input);
    if (size > most)
        return bal_fail(err, BAL_EUNSUPPORTED, "%s: a %s of more than %llu MiB",
                        label, name, (unsigned long long)(most >> 20));
    int rc = bal_buf_reserve(out, (size_t)size, err);
    if (rc)
        return rc;
    rc = bal_model_read(model, i, 0, out->data, (size_t)size, err);
    if (rc)
        return bal_within(err, rc, "%s", label);
    out->len = (size_t)size;
    out->data[out->len] = '\0';
    *found = true;
    return 0;
}

/* ---- tensors ------------------------------------------------------------- */

static uint64_t row_width(const bal_tensor *entry)
{
    uint64_t width = 1;

    for (uint32_t i = 1; i < entry->rank; i++) {
        if (!bal_mul(&width, width, entry->shape[i]))
            return UINT64_MAX;
    }
    return width;
}

static bool same_rows(const bal_tensor *a, const bal_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->shape + 1, b->shape + 1,
                                         (a->rank - 1) * sizeof(*a->shape));
}

static int check_tensor(const bal_vocab *self, size_t input,
                        const bal_tensor *entry, bal_error *err)
{
    char label[BAL_INPUT_LABEL];

    bal_vocab_label(label, self, input);
    if (entry->form != BAL_FORM_WHOLE)
        return bal_fail(err, BAL_EINVAL,
                        "tensor '%s' of %s is no whole one: a vocabulary is "
                        "for whole models",
                        entry->name, label);
    if (!bal_tensor_float(entry))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' of %s is not of BF16, F16, F32 or F64",
                        entry->name, label);
    uint64_t width = entry->rank ? row_width(entry) : 0;
    if (!width || !entry->shape[0])
        return bal_fail(err, BAL_EINVAL, "tensor '%s' of %s has no rows",
                        entry->name, label);
    if (width > BAL_ROW_MAX)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' of %s has rows of more than %llu numbers",
                        entry->name, label, (unsigned long long)BAL_ROW_MAX);
    return 0;
}

static int add_tensor(bal_vocab *self, const bal_tensor *entry,
                      bal_row_tensor **out, bal_error *err)
{
    size_t n = self->tensor_count;
    bool there = false;
    int rc = bal_map_add(&self->names, entry->name, strlen(entry->name), &n,
                         &there, err);
    if (rc)
        return rc;
    *out = &self->tensors[n];
    if (there)
        return 0;
    size_t *entries =
        bal_arena_alloc(&self->arena, self->count * sizeof(*entries));
    if (!entries)
        return bal_fail_memory(err, "a vocabulary");
    for (size_t i = 0; i < self->count; i++)
        entries[i] = BAL_NONE;
    self->tensors[self->tensor_count++] = (bal_row_tensor){
        .name = entry->name,
        .entries = entries,
        .dtype = entry->dtype,
        .width = row_width(entry),
    };
    return 0;
}

/* The first input that has the tensor has it in this form. */
static int check_alike(const bal_vocab *self, const bal_row_tensor *tensor,
                       size_t input, const bal_tensor *entry, bal_error *err)
{
    size_t first = 0;
    char label[BAL_INPUT_LABEL];

    while (tensor->entries[first] == BAL_NONE)
        first++;
    if (same_rows(bal_model_at(self->inputs[first], tensor->entries[first]),
                  entry))
        return 0;
    bal_vocab_label(label, self, input);
    return bal_fail(err, BAL_EINVAL,
                    "tensor '%s' of %s has rows of another shape than in input "
                    "%zu",
                    entry->name, label, first + 1);
}

static int take_tensor(bal_vocab *self, size_t input, size_t i, bal_error *err)
{
    const bal_tensor *entry = bal_model_at(self->inputs[input], i);
    bal_row_tensor *tensor = NULL;
    int rc = check_tensor(self, input, entry, err);

    if (!rc)
        rc = add_tensor(self, entry, &tensor, err);
    if (rc)
        return rc;
    tensor->entries[input] = i;
    tensor->dtype = bal_dtype_join(tensor->dtype, entry->dtype);
    self->bounds[input] = bal_min(self->bounds[input], entry->shape[0]);
    return check_alike(self, tensor, input, entry, err);
}

/* ---- how many rows ------------------------------------------------------- */

/* What config.json says of the number of tokens: of a model of several parts
 * its text part counts. */
static int read_size(uint64_t *out, bal_bytes config, const char *what,
                     bal_error *err)
{
    static const char *const paths[] = { "text_config.vocab_size",
                                         "vocab_size" };

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        bal_bytes value = { 0 };
        int rc = bal_json_find(&value, config, paths[i], what, err);
        if (rc)
            return rc;
        bal_scan scan = { value.data, value.len, 0, NULL, what };
        if (value.len && !bal_scan_u64(&scan, out, NULL))
            return 0;
    }
    return 0;
}

static int take_size(bal_vocab *self, size_t input, bal_error *err)
{
    BAL_LOCAL(bal_buf) config = { 0 };
    uint64_t size = UINT64_MAX;
    char label[BAL_INPUT_LABEL];
    bool found = false;
    int rc = bal_vocab_file(&config, &found, self, input, "config.json",
                            CONFIG_MAX, err);
    if (rc || !found)
        return rc;

    bal_vocab_label(label, self, input);
    rc = read_size(&size, (bal_bytes){ config.data, config.len }, "config.json",
                   err);
    if (rc)
        return bal_within(err, rc, "%s", label);
    self->bounds[input] = bal_min(self->bounds[input], size);
    return 0;
}

static int take_input(bal_vocab *self, size_t input, bal_error *err)
{
    bal_model *model = self->inputs[input];
    char label[BAL_INPUT_LABEL];

    self->bounds[input] = UINT64_MAX;
    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        if (entry->part != BAL_PART_TENSOR || !bal_vocab_named(entry->name))
            continue;
        int rc = take_tensor(self, input, i, err);
        if (rc)
            return rc;
    }
    bal_vocab_label(label, self, input);
    if (self->bounds[input] == UINT64_MAX)
        return bal_fail(err, BAL_EINVAL,
                        "%s has no tensor that is known to have a row a token",
                        label);
    return take_size(self, input, err);
}

/* As many as there can be: every vocabulary's tensor of every input. */
static size_t count_named(const bal_vocab *self)
{
    size_t count = 0;

    for (size_t k = 0; k < self->count; k++) {
        for (size_t i = 0; i < bal_model_count(self->inputs[k]); i++)
            count += bal_vocab_named(bal_model_at(self->inputs[k], i)->name);
    }
    return count;
}

int bal_vocab_tensors(bal_vocab *self, bal_error *err)
{
    self->tensors = bal_arena_alloc(&self->arena, (count_named(self) + 1) *
                                                      sizeof(*self->tensors));
    self->bounds =
        bal_arena_alloc(&self->arena, self->count * sizeof(*self->bounds));
    if (!self->tensors || !self->bounds)
        return bal_fail_memory(err, "a vocabulary");
    int rc = 0;
    for (size_t i = 0; i < self->count && !rc; i++)
        rc = take_input(self, i, err);
    return rc;
}
