/* ballast wdelta save: a fine-tune's difference as a file, and how near to the
 * fine-tune it comes. */
#include <math.h>
#include <stdlib.h>

#include "cli/wdelta.h"
#include "core/error.h"
#include "core/str.h"

/* What save works with. */
typedef struct job {
    bal_cli *cli;
    const bal_wdelta_opts *given;
    bal_named tuned, base;
    bal_wdelta_files parents;
    const char **avoid;
    size_t avoid_count;
    bal_wdelta_saved saved;
} job;

static void job_done(job *self)
{
    bal_named_done(&self->tuned);
    bal_named_done(&self->base);
    bal_wdelta_files_done(&self->parents);
    free(self->avoid);
}

static double or_none(const bal_opt_f64 *option)
{
    return option->given ? option->value : -1.0;
}

static int check_range(const char *name, const bal_opt_f64 *option, double low,
                       bool below_one, bal_error *err)
{
    double value = option->value;

    if (!option->given || (value >= low && (!below_one || value < 1.0)))
        return 0;
    return bal_fail(err, BAL_EINVAL, "--%s: %g is not %s", name, value,
                    below_one ? "from 0 to below 1" : "0 or more");
}

static int check_numbers(const bal_wdelta_opts *given, bal_error *err)
{
    int rc = check_range("sparsity", &given->sparsity, 0.0, true, err);

    if (!rc)
        rc = check_range("outlier-fraction", &given->outlier_fraction, 0.0,
                         true, err);
    return rc ? rc
              : check_range("max-error", &given->max_error, 0.0, false, err);
}

static void avoid(job *self, const bal_named *named)
{
    if (!named->is_commit)
        self->avoid[self->avoid_count++] = named->text;
}

static int open_all(job *self, bal_error *err)
{
    const bal_opt_list *parents = &self->given->parents;
    bal_cli *cli = self->cli;
    int rc = check_numbers(self->given, err);
    if (!rc)
        rc = bal_cli_work(cli, err);
    if (!rc)
        rc = bal_cli_model(&self->tuned, cli, cli->args[1], err);
    if (!rc)
        rc = bal_cli_model(&self->base, cli, self->given->base, err);
    if (!rc)
        rc = bal_wdelta_files_open(&self->parents, parents->items,
                                   parents->count, err);
    if (rc)
        return rc;
    self->avoid = calloc(parents->count + 2, sizeof(*self->avoid));
    if (!self->avoid)
        return bal_fail_memory(err, "opening files");
    avoid(self, &self->tuned);
    avoid(self, &self->base);
    for (size_t i = 0; i < parents->count; i++)
        self->avoid[self->avoid_count++] = parents->items[i];
    return 0;
}

static int save(job *self, bal_error *err)
{
    const bal_wdelta_options options = {
        .strategy = self->given->strategy,
        .outlier_fraction = or_none(&self->given->outlier_fraction),
        .sparsity = or_none(&self->given->sparsity),
        .max_error = or_none(&self->given->max_error),
        .parents = self->parents.at,
        .parent_count = self->parents.count,
        .avoid = self->avoid,
        .avoid_count = self->avoid_count,
    };

    return bal_wdelta_save(self->given->out, self->tuned.model,
                           self->base.model, &options, &self->saved,
                           self->cli->work, err);
}

/* ---- quality ------------------------------------------------------------ */

typedef struct quality {
    bal_cli *cli;
    bal_json *json; /* NULL: text */
    double error2, delta2, worst;
    bal_buf worst_name;
    uint64_t wrong;
} quality;

static void quality_done(quality *self)
{
    bal_buf_done(&self->worst_name);
}

/* |got - tuned| / |tuned - base|; of a tensor that did not change, 0 or
 * infinite. */
static double relative(double error2, double delta2)
{
    if (error2 <= 0.0)
        return 0.0;
    return delta2 > 0.0 ? sqrt(error2 / delta2) : (double)INFINITY;
}

/* Infinite where nothing is lost; JSON has null then. */
static double decibels(double error2, double delta2)
{
    return error2 > 0.0 ? 10.0 * log10(delta2 / error2) : (double)INFINITY;
}

static void row_json(bal_json *json, const bal_wdelta_quality *row)
{
    bal_json_object(json);
    bal_json_key(json, "tensor");
    bal_json_string(json, row->name);
    bal_json_key(json, "relative_error");
    bal_json_f64(json, relative(row->error2, row->delta2));
    bal_json_key(json, "snr_db");
    bal_json_f64(json, decibels(row->error2, row->delta2));
    bal_json_key(json, "max_abs");
    bal_json_f64(json, row->max_abs);
    bal_json_close(json);
}

static void text_decibels(bal_out *out, double error2, double delta2)
{
    if (error2 > 0.0)
        bal_out_text(out, "  %8.2f dB", decibels(error2, delta2));
    else
        bal_out_text(out, "     exact");
}

static int each_row(void *ctx, const bal_wdelta_quality *row)
{
    quality *self = ctx;
    bal_out *out = &self->cli->out;
    double error = relative(row->error2, row->delta2);

    if (error > self->worst || !self->worst_name.len) {
        self->worst = error;
        bal_buf_clear(&self->worst_name);
        int rc = bal_buf_text(&self->worst_name, row->name, NULL);
        if (rc)
            return rc;
    }
    self->error2 += row->error2;
    self->delta2 += row->delta2;
    self->wrong += row->wrong;
    if (self->json) {
        row_json(self->json, row);
        return 0;
    }
    bal_out_text(out, "  %10.6f", error);
    text_decibels(out, row->error2, row->delta2);
    bal_out_text(out, "  ");
    bal_out_safe(out, row->name);
    bal_out_text(out, "\n");
    return bal_out_stopped(out);
}

static int read_back(job *self, bal_model **out, bal_wdelta_files *files,
                     bal_error *err)
{
    const bal_opt_list *parents = &self->given->parents;
    const char **paths = calloc(parents->count + 1, sizeof(*paths));
    if (!paths)
        return bal_fail_memory(err, "opening files");

    for (size_t i = 0; i < parents->count; i++)
        paths[i] = parents->items[i];
    paths[parents->count] = self->given->out;
    int rc = bal_wdelta_files_open(files, paths, parents->count + 1, err);
    free(paths);
    return rc ? rc
              : bal_model_from_wdelta(out, self->base.model, files->at,
                                      files->count, err);
}

static int measure(job *self, quality *sums, bal_error *err)
{
    BAL_LOCAL(bal_wdelta_files) files = { 0 };
    BAL_OWN(bal_model) got = NULL;
    int rc = read_back(self, &got, &files, err);

    return rc ? rc
              : bal_wdelta_compare(got, self->tuned.model, self->base.model,
                                   self->cli->work, each_row, sums, err);
}

/* ---- telling ------------------------------------------------------------ */

static int report_text(job *self, bal_error *err)
{
    BAL_LOCAL(quality) sums = { .cli = self->cli };
    bal_out *out = &self->cli->out;
    char size[32];
    int rc = 0;

    bal_thousands(size, self->saved.size);
    bal_out_safe(out, self->given->out);
    bal_out_text(out, "  %llu tensors, %s bytes, format %u\n",
                 (unsigned long long)self->saved.tensors, size,
                 self->saved.version);
    if (!self->given->quality)
        return 0;
    bal_out_text(out, "    relative        SNR  tensor\n");
    rc = measure(self, &sums, err);
    if (rc)
        return rc;
    bal_out_text(out, "  %10.6f", relative(sums.error2, sums.delta2));
    text_decibels(out, sums.error2, sums.delta2);
    bal_out_text(out, "  all; %.6f in the worst, ", sums.worst);
    bal_out_safe(out, bal_buf_string(&sums.worst_name));
    bal_out_text(out, "\n");
    return 0;
}

static int quality_json(job *self, bal_json *json, bal_error *err)
{
    BAL_LOCAL(quality) sums = { .cli = self->cli, .json = json };

    bal_json_key(json, "quality");
    bal_json_object(json);
    bal_json_key(json, "tensors");
    bal_json_array(json);
    int rc = measure(self, &sums, err);
    bal_json_close(json);
    bal_json_key(json, "relative_error");
    bal_json_f64(json, relative(sums.error2, sums.delta2));
    bal_json_key(json, "snr_db");
    bal_json_f64(json, decibels(sums.error2, sums.delta2));
    bal_json_key(json, "worst_tensor");
    bal_json_string(json, sums.worst_name.len ? sums.worst_name.data : NULL);
    bal_json_key(json, "worst_relative_error");
    bal_json_f64(json, sums.worst);
    bal_json_key(json, "non_finite");
    bal_json_u64(json, sums.wrong);
    bal_json_close(json);
    return rc;
}

static int report_json(job *self, bal_error *err)
{
    bal_json json;
    int rc = 0;

    bal_doc_open(&json, &self->cli->out, self->cli->command->name);
    bal_json_key(&json, "out");
    bal_json_string(&json, self->given->out);
    bal_json_key(&json, "strategy");
    bal_json_string(&json,
                    self->given->strategy ? self->given->strategy : "int4");
    bal_json_key(&json, "n_tensors");
    bal_json_u64(&json, self->saved.tensors);
    bal_json_key(&json, "size");
    bal_json_u64(&json, self->saved.size);
    bal_json_key(&json, "parent_hash");
    bal_json_string(&json, self->saved.parent_hash);
    bal_json_key(&json, "format_version");
    bal_json_u64(&json, self->saved.version);
    if (self->given->quality)
        rc = quality_json(self, &json, err);
    bal_doc_close(&json, &self->cli->out);
    return rc;
}

int bal_cli_wdelta_save(bal_cli *cli, const bal_wdelta_opts *given,
                        bal_error *err)
{
    BAL_LOCAL(job) self = { .cli = cli, .given = given };
    int rc = open_all(&self, err);

    if (!rc)
        rc = save(&self, err);
    if (rc)
        return rc;
    return cli->out.json ? report_json(&self, err) : report_text(&self, err);
}
