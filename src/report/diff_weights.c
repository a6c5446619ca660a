/* Weights side by side, as the library's rows come in. */
#include "report/diff_weights.h"

#include <math.h>

#include "core/error.h"
#include "report/parts.h"

void bal_diff_weights_done(bal_diff_weights *self)
{
    bal_buf_done(&self->entries);
    bal_arena_done(&self->names);
    bal_diff_groups_done(&self->layers);
    bal_diff_groups_done(&self->modules);
    bal_diff_groups_done(&self->cells);
}

static int keep(bal_diff_weights *self, const bal_diff_row *row)
{
    bal_diff_entry kept = {
        .name = bal_arena_copy(&self->names, row->name, strlen(row->name)),
        .change = row->change,
        .dtype_changed = row->dtype_changed || row->change == BAL_DTYPE_CHANGED,
        .finite = row->finite,
        .relative = row->relative,
        .max_abs = row->max_abs,
    };

    if (!kept.name)
        return bal_fail_memory(&self->err, "diff");
    if (row->change == BAL_CHANGED && !row->same_bits &&
        !isnan(row->relative) &&
        (!self->most_name || row->relative > self->most)) {
        self->most = row->relative;
        self->most_name = kept.name;
    }
    return bal_buf_append(&self->entries, &kept, sizeof(kept), &self->err);
}

/* Not finite, too large to be squared, or of a dtype that has no numbers: were
 * it left out, the whole would look as if little had changed. What is not
 * finite and yet the same (a mask of -inf) has not moved. */
static bool is_unmeasured(const bal_diff_row *row)
{
    if (row->change != BAL_CHANGED || row->same_bits)
        return false;
    return !row->finite || isinf(row->diff2) || isinf(row->norm2) ||
           (isinf(row->relative) && row->diff2 <= 0);
}

static int add_groups(bal_diff_weights *self, const bal_diff_row *row)
{
    char text[BAL_MODULE_ROOM];
    char module[BAL_MODULE_ROOM];
    size_t layer;
    bool unmeasured = is_unmeasured(row) || row->change == BAL_ADDED ||
                      row->change == BAL_REMOVED || row->change == BAL_RESHAPED;
    bal_error *err = &self->err;
    int rc = 0;

    bal_part_of(row->name, &layer, module);
    bal_part_layer(row->name, &layer, text);
    if (layer != BAL_NONE)
        rc = bal_diff_groups_add(&self->layers, NULL, text, row, unmeasured,
                                 err);
    if (!rc)
        rc = bal_diff_groups_add(&self->modules, NULL, module, row, unmeasured,
                                 err);
    return rc ? rc
              : bal_diff_groups_add(&self->cells, text, module, row, unmeasured,
                                    err);
}

static int add(void *ctx, const bal_diff_row *row)
{
    bal_diff_weights *self = ctx;

    self->counts[row->change]++;
    if (row->change != BAL_ADDED && row->change != BAL_REMOVED)
        self->shared++;
    self->differing += row->change != BAL_UNCHANGED;
    self->diff2 += row->diff2;
    self->norm2 += row->norm2;
    self->unmeasured |= is_unmeasured(row);
    self->rc = keep(self, row);
    if (!self->rc)
        self->rc = add_groups(self, row);
    if (self->rc || !self->fn)
        return self->rc;
    return self->fn(self->ctx, row);
}

int bal_diff_weights_fill(bal_diff_weights *out, bal_model *a, bal_model *b,
                          bal_error *err)
{
    int rc = bal_diff(a, b, out->work, add, out, err);

    bal_diff_groups_sort(&out->layers);
    if (rc || !out->rc)
        return rc;
    if (err)
        *err = out->err;
    return out->rc;
}

const bal_diff_entry *bal_diff_weights_at(const bal_diff_weights *self,
                                          size_t i)
{
    const bal_diff_entry *entries = (const void *)self->entries.data;

    return i < self->entries.len / sizeof(*entries) ? &entries[i] : NULL;
}

double bal_diff_weights_overall(const bal_diff_weights *self)
{
    const bal_diff_group all = {
        .unmeasured = self->unmeasured,
        .diff2 = self->diff2,
        .norm2 = self->norm2,
    };

    return bal_diff_group_relative(&all);
}

bool bal_diff_weights_moved(const bal_diff_weights *self, double threshold)
{
    return self->unmeasured || self->counts[BAL_ADDED] ||
           self->counts[BAL_REMOVED] || self->counts[BAL_RESHAPED] ||
           self->most > threshold || bal_diff_weights_overall(self) > threshold;
}

/* ---- JSON --------------------------------------------------------------- */

static void json_changed(bal_json *json, const bal_diff_weights *self)
{
    const bal_diff_entry *row = bal_diff_weights_at(self, 0);

    bal_json_key(json, "changed");
    bal_json_array(json);
    for (size_t i = 0; row; row = bal_diff_weights_at(self, ++i)) {
        if (row->change != BAL_CHANGED)
            continue;
        bal_json_object(json);
        bal_json_key(json, "tensor");
        bal_json_string(json, row->name);
        bal_json_key(json, "relative");
        bal_json_f64(json, row->relative);
        bal_json_key(json, "max_abs");
        bal_json_f64(json, row->max_abs);
        bal_json_close(json);
    }
    bal_json_close(json);
}

static bool is_removed(const bal_diff_entry *row)
{
    return row->change == BAL_REMOVED;
}

static bool is_added(const bal_diff_entry *row)
{
    return row->change == BAL_ADDED;
}

static bool is_reshaped(const bal_diff_entry *row)
{
    return row->change == BAL_RESHAPED;
}

static bool has_other_dtype(const bal_diff_entry *row)
{
    return row->dtype_changed;
}

static bool is_not_finite(const bal_diff_entry *row)
{
    return !row->finite;
}

static void json_names(bal_json *json, const bal_diff_weights *self,
                       const char *key, bool (*chosen)(const bal_diff_entry *))
{
    const bal_diff_entry *row = bal_diff_weights_at(self, 0);

    bal_json_key(json, key);
    bal_json_array(json);
    for (size_t i = 0; row; row = bal_diff_weights_at(self, ++i)) {
        if (chosen(row))
            bal_json_string(json, row->name);
    }
    bal_json_close(json);
}

void bal_diff_weights_json(bal_json *json, const bal_diff_weights *self)
{
    bal_json_key(json, "shared");
    bal_json_u64(json, self->shared);
    json_changed(json, self);
    json_names(json, self, "removed", is_removed);
    json_names(json, self, "added", is_added);
    json_names(json, self, "reshaped", is_reshaped);
    json_names(json, self, "dtype_changed", has_other_dtype);
    bal_json_key(json, "relative_change");
    bal_json_f64(json, bal_diff_weights_overall(self));
    bal_json_key(json, "max_tensor_change");
    bal_json_f64(json, self->most);
    bal_json_key(json, "max_tensor");
    bal_json_string(json, self->most_name);
    json_names(json, self, "non_finite", is_not_finite);
}

void bal_diff_weights_json_groups(bal_json *json, const bal_diff_weights *self)
{
    bal_json_key(json, "layers");
    bal_diff_groups_json(json, &self->layers);
    bal_json_key(json, "modules");
    bal_diff_groups_json(json, &self->modules);
}
