/* What a diff of two adapters says of their maps: factors differ wherever a
 * matrix was put between them, the maps may not. */
#include "report/diff_maps.h"

#include <math.h>
#include <stdlib.h>

#include "core/arith.h"
#include "core/error.h"

typedef struct keeping {
    bal_diff_maps *maps;
    int rc;
    bal_error err;
} keeping;

void bal_diff_maps_done(bal_diff_maps *self)
{
    bal_buf_done(&self->rows);
    bal_arena_done(&self->names);
}

static int keep(void *ctx, const bal_lora_row *row)
{
    keeping *self = ctx;
    bal_lora_row kept = *row;

    kept.module =
        bal_arena_copy(&self->maps->names, row->module, strlen(row->module));
    self->rc = kept.module ? bal_buf_append(&self->maps->rows, &kept,
                                            sizeof(kept), &self->err)
                           : bal_fail_memory(&self->err, "diff");
    return self->rc;
}

static bool is_adapter(const bal_model *model)
{
    return bal_model_facts(model)->kind == BAL_KIND_ADAPTER;
}

/* Can every byte be read? What is the same in two commits may not have been. */
static int read_all(bal_model *model, bal_error *err)
{
    size_t room = (size_t)1 << 20;
    int rc = 0;

    void *data = malloc(room);
    if (!data)
        return bal_fail_memory(err, "diff");
    for (size_t i = 0; i < bal_model_count(model) && !rc; i++) {
        uint64_t size = bal_model_at(model, i)->size;
        for (uint64_t at = 0; at < size && !rc; at += room)
            rc = bal_model_read(model, i, at, data,
                                (size_t)bal_min(room, size - at), err);
    }
    free(data);
    return rc;
}

/* No maps in what is there, or something that is not there any more? */
static int look_again(int why, bal_model *a, bal_model *b, bal_error *err)
{
    if (why != BAL_ECORRUPT)
        return 0;
    int rc = read_all(a, err);
    return rc ? rc : read_all(b, err);
}

static int pass_on(const bal_error *from, bal_error *err)
{
    if (err)
        *err = *from;
    return from->code;
}

int bal_diff_maps_fill(bal_diff_maps *out, bal_model *a, bal_model *b,
                       bal_work *work, bal_error *err)
{
    keeping self = { .maps = out };

    if (!is_adapter(a) || !is_adapter(b))
        return 0;
    int rc =
        bal_lora_spaces(&out->residual, a, b, work, keep, &self, &out->why);
    if (rc == BAL_EUNSUPPORTED || rc == BAL_EINVAL || rc == BAL_ECORRUPT)
        return look_again(rc, a, b, err);
    if (!rc && self.rc)
        return pass_on(&self.err, err);
    if (rc)
        return pass_on(&out->why, err);
    out->compared = true;
    return 0;
}

/* ---- sums --------------------------------------------------------------- */

const bal_lora_row *bal_diff_maps_at(const bal_diff_maps *self, size_t i)
{
    const bal_lora_row *rows = (const void *)self->rows.data;

    return i < self->rows.len / sizeof(*rows) ? &rows[i] : NULL;
}

/* <a, b>, of what the norms are. */
static double inner(const bal_lora_row *row)
{
    double norms = row->norm_a * row->norm_a + row->norm_b * row->norm_b;

    return (norms - row->difference * row->difference) / 2;
}

static double cosine(double product, double norm_a, double norm_b)
{
    return norm_a > 0 && norm_b > 0 ? product / norm_a / norm_b : (double)NAN;
}

double bal_diff_maps_cosine(const bal_lora_row *row)
{
    return cosine(inner(row), row->norm_a, row->norm_b);
}

bal_diff_maps_sums bal_diff_maps_sum(const bal_diff_maps *self)
{
    const bal_lora_row *row = bal_diff_maps_at(self, 0);
    bal_diff_maps_sums out = { 0 };
    double product = 0;
    double squares[2] = { 0 };
    size_t both = 0;

    for (size_t i = 0; row; row = bal_diff_maps_at(self, ++i)) {
        product += inner(row);
        squares[0] += row->norm_a * row->norm_a;
        squares[1] += row->norm_b * row->norm_b;
        if (isnan(row->columns))
            continue;
        out.columns += row->columns;
        out.rows += row->rows;
        both++;
    }
    out.cosine = cosine(product, sqrt(squares[0]), sqrt(squares[1]));
    out.columns = both ? out.columns / (double)both : (double)NAN;
    out.rows = both ? out.rows / (double)both : (double)NAN;
    return out;
}

/* ---- JSON --------------------------------------------------------------- */

static void number(bal_json *json, const char *key, double value)
{
    bal_json_key(json, key);
    bal_json_f64(json, value);
}

static void json_row(bal_json *json, const bal_lora_row *row)
{
    bal_json_object(json);
    bal_json_key(json, "module");
    bal_json_string(json, row->module);
    bal_json_key(json, "rank_a");
    bal_json_u64(json, row->rank_a);
    bal_json_key(json, "rank_b");
    bal_json_u64(json, row->rank_b);
    number(json, "norm_a", row->norm_a);
    number(json, "norm_b", row->norm_b);
    number(json, "difference", row->difference);
    number(json, "cosine", bal_diff_maps_cosine(row));
    number(json, "column_overlap", row->columns);
    number(json, "column_angle", row->column_angle);
    number(json, "row_overlap", row->rows);
    number(json, "row_angle", row->row_angle);
    bal_json_close(json);
}

void bal_diff_maps_json(bal_json *json, const bal_diff_maps *self)
{
    bal_diff_maps_sums all = bal_diff_maps_sum(self);
    const bal_lora_row *row = bal_diff_maps_at(self, 0);

    if (!self->compared && !self->why.text[0])
        return;
    bal_json_key(json, "maps");
    bal_json_object(json);
    if (!self->compared) {
        bal_json_key(json, "not_compared");
        bal_json_string(json, self->why.text);
        bal_json_close(json);
        return;
    }
    number(json, "relative_change", self->residual.total);
    number(json, "cosine", all.cosine);
    number(json, "column_overlap", all.columns);
    number(json, "row_overlap", all.rows);
    bal_json_key(json, "modules");
    bal_json_array(json);
    for (size_t i = 0; row; row = bal_diff_maps_at(self, ++i))
        json_row(json, row);
    bal_json_close(json);
    bal_json_close(json);
}
