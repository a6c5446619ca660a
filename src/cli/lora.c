/* Adapters that were made: what is said of them. */
#include "cli/lora.h"

#include "core/error.h"

/* What keeping rows needs: a copy of each name. */
typedef struct keeping {
    bal_lora_report *report;
    bal_cli *cli;
    int rc;
    bal_error err;
} keeping;

void bal_lora_report_done(bal_lora_report *self)
{
    bal_buf_done(&self->rows);
}

static int keep(void *ctx, const bal_lora_row *row)
{
    keeping *self = ctx;
    bal_lora_row kept = *row;

    kept.module =
        bal_arena_copy(&self->cli->arena, row->module, strlen(row->module));
    self->rc = kept.module ? bal_buf_append(&self->report->rows, &kept,
                                            sizeof(kept), &self->err)
                           : bal_fail_memory(&self->err, "an adapter's report");
    return self->rc;
}

int bal_lora_report_fill(bal_lora_report *out, bal_cli *cli, bal_model *meant,
                         bal_model *made, bal_error *err)
{
    keeping self = { .report = out, .cli = cli };
    int rc = bal_lora_compare(&out->residual, meant, made, cli->work, keep,
                              &self, err);

    if (!rc && self.rc) {
        *err = self.err;
        rc = self.rc;
    }
    return rc;
}

int bal_lora_report_distance(bal_lora_report *out, bal_cli *cli,
                             bal_model *delta, bal_model *adapter,
                             bal_error *err)
{
    keeping self = { .report = out, .cli = cli };
    int rc = bal_lora_distance(&out->residual, delta, adapter, cli->work, keep,
                               &self, err);

    if (!rc && self.rc) {
        *err = self.err;
        rc = self.rc;
    }
    return rc;
}

static const bal_lora_row *rows_of(const bal_lora_report *self, size_t *count)
{
    *count = self->rows.len / sizeof(bal_lora_row);
    return (const void *)self->rows.data;
}

size_t bal_lora_left(const bal_lora_report *self)
{
    size_t count;
    const bal_lora_row *rows = rows_of(self, &count);
    size_t left = 0;

    for (size_t i = 0; i < count; i++)
        left += !rows[i].rank_b;
    return left;
}

void bal_residual_text(bal_out *out, const bal_residual *residual)
{
    bal_out_text(out, ", residual %.3g", residual->total);
    if (!residual->module[0])
        return;
    bal_out_text(out, ", at most %.3g (", residual->worst);
    bal_out_safe(out, residual->module);
    bal_out_text(out, ")");
}

void bal_lora_report_text(bal_cli *cli, const bal_lora_report *self)
{
    size_t count;

    rows_of(self, &count);
    count -= bal_lora_left(self);
    bal_out_text(&cli->out, "%zu module%s", count, count == 1 ? "" : "s");
    bal_residual_text(&cli->out, &self->residual);
}

void bal_lora_left_text(bal_out *out, const bal_lora_report *self)
{
    enum { SHOWN = 8 };
    size_t left = bal_lora_left(self);
    size_t count;
    size_t shown = 0;
    const bal_lora_row *rows = rows_of(self, &count);

    if (left)
        bal_out_text(out, "  changed, and not in it: %zu tensor%s\n", left,
                     left == 1 ? "" : "s");
    for (size_t i = 0; i < count && shown < SHOWN; i++) {
        if (rows[i].rank_b)
            continue;
        bal_out_text(out, "    ");
        bal_out_safe(out, rows[i].module);
        bal_out_text(out, "\n");
        shown++;
    }
    if (left > shown)
        bal_out_text(out, "    and %zu more\n", left - shown);
}

void bal_residual_json(bal_json *json, const bal_residual *residual)
{
    bal_json_key(json, "residual");
    bal_json_object(json);
    bal_json_key(json, "total");
    bal_json_f64(json, residual->total);
    bal_json_key(json, "worst");
    bal_json_f64(json, residual->worst);
    bal_json_key(json, "module");
    bal_json_string(json, residual->module[0] ? residual->module : NULL);
    bal_json_close(json);
}

/* What is said of every module, into the open object. */
static void row_members(bal_json *json, const bal_lora_row *row)
{
    double difference = row->difference;

    bal_json_key(json, "rank");
    bal_json_u64(json, row->rank_b);
    bal_json_key(json, "norm");
    bal_json_f64(json, row->norm_a);
    bal_json_key(json, "residual");
    bal_json_f64(json, difference == 0 ? 0 : difference / row->norm_a);
}

void bal_lora_report_json(bal_json *json, const bal_lora_report *self)
{
    size_t count;
    const bal_lora_row *rows = rows_of(self, &count);

    bal_residual_json(json, &self->residual);
    bal_json_key(json, "modules");
    bal_json_array(json);
    for (size_t i = 0; i < count; i++) {
        bal_json_object(json);
        bal_json_key(json, "module");
        bal_json_string(json, rows[i].module);
        bal_json_key(json, "rank_before");
        bal_json_u64(json, rows[i].rank_a);
        row_members(json, &rows[i]);
        bal_json_close(json);
    }
    bal_json_close(json);
}

void bal_lora_extract_json(bal_json *json, const bal_lora_report *self)
{
    size_t count;
    const bal_lora_row *rows = rows_of(self, &count);

    bal_residual_json(json, &self->residual);
    bal_json_key(json, "tensors");
    bal_json_array(json);
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].rank_b)
            continue;
        bal_json_object(json);
        bal_json_key(json, "tensor");
        bal_json_string(json, rows[i].module);
        row_members(json, &rows[i]);
        bal_json_close(json);
    }
    bal_json_close(json);
    bal_json_key(json, "left_out");
    bal_json_array(json);
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].rank_b)
            bal_json_string(json, rows[i].module);
    }
    bal_json_close(json);
}

int bal_lora_rank(bal_lora_options *out, const bal_opt_u64 *rank,
                  const bal_opt_f64 *energy, bal_error *err)
{
    if (rank->given == energy->given)
        return bal_fail(err, BAL_EINVAL,
                        rank->given ? "--rank or --energy, not both"
                                    : "--rank R or --energy F is missing");
    if (rank->given && !rank->value)
        return bal_fail(err, BAL_EINVAL, "--rank: 1 is the least");
    if (energy->given && !(energy->value > 0 && energy->value <= 1))
        return bal_fail(err, BAL_EINVAL, "--energy: above 0, and 1 at most");
    out->rank = rank->value;
    out->energy = energy->value;
    return 0;
}
