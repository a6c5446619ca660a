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

static size_t count_of(const bal_lora_report *self)
{
    return self->rows.len / sizeof(bal_lora_row);
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
    size_t count = count_of(self);

    bal_out_text(&cli->out, "%zu module%s", count, count == 1 ? "" : "s");
    bal_residual_text(&cli->out, &self->residual);
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

static void row_json(bal_json *json, const bal_lora_row *row)
{
    bal_json_object(json);
    bal_json_key(json, "module");
    bal_json_string(json, row->module);
    bal_json_key(json, "rank_before");
    bal_json_u64(json, row->rank_a);
    bal_json_key(json, "rank");
    bal_json_u64(json, row->rank_b);
    bal_json_key(json, "norm");
    bal_json_f64(json, row->norm_a);
    bal_json_key(json, "residual");
    bal_json_f64(json, row->difference > 0 ? row->difference / row->norm_a : 0);
    bal_json_close(json);
}

void bal_lora_report_json(bal_json *json, const bal_lora_report *self)
{
    const bal_lora_row *rows = (const void *)self->rows.data;

    bal_residual_json(json, &self->residual);
    bal_json_key(json, "modules");
    bal_json_array(json);
    for (size_t i = 0; i < count_of(self); i++)
        row_json(json, &rows[i]);
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
