/* ballast diff: what changed from one model to another, by weights. */
#include <math.h>

#include "cli/commands.h"
#include "cli/diff_maps.h"
#include "core/error.h"

struct diff_opts {
    const char *probe_set;
    bal_opt_f64 threshold;
    bool exit_code, stat;
};

static const bal_opt opts[] = {
    { 0, "probe-set", BAL_OPT_STRING, offsetof(struct diff_opts, probe_set),
      "ID", "the probes to compare answers to" },
    { 0, "threshold", BAL_OPT_DOUBLE, offsetof(struct diff_opts, threshold),
      "F",
      "relative change above which some probe should move, 0.01 if not "
      "told" },
    { 0, "exit-code", BAL_OPT_FLAG, offsetof(struct diff_opts, exit_code), NULL,
      "exit status 1 if anything differs" },
    { 0, "stat", BAL_OPT_FLAG, offsetof(struct diff_opts, stat), NULL,
      "a line for each tensor that changed" },
    { 0 },
};

static const double default_threshold = 0.01;

/* What a diff row leaves behind. */
typedef struct entry {
    const char *name;
    bal_change change;
    bool dtype_changed, finite;
    double relative, max_abs;
} entry;

typedef struct comparison {
    bal_cli *cli;
    bal_named a, b;
    bal_buf entries; /* entry, those that are not unchanged */
    size_t shared;
    size_t counts[BAL_DTYPE_CHANGED + 1];
    double diff2, norm2;
    bool unmeasured; /* a change that is not in these sums */
    double most;     /* relative change of the most changed tensor */
    const char *most_name;
    bal_diff_maps maps;
    int rc;
    bal_error err;
} comparison;

static void comparison_done(comparison *self)
{
    bal_named_done(&self->a);
    bal_named_done(&self->b);
    bal_buf_done(&self->entries);
    bal_diff_maps_done(&self->maps);
}

static int keep(comparison *self, const bal_diff_row *row)
{
    entry kept = {
        .name = bal_arena_copy(&self->cli->arena, row->name, strlen(row->name)),
        .change = row->change,
        .dtype_changed = row->dtype_changed || row->change == BAL_DTYPE_CHANGED,
        .finite = row->finite,
        .relative = row->relative,
        .max_abs = row->max_abs,
    };

    if (!kept.name)
        return bal_fail_memory(&self->err, "diff");
    if (row->change == BAL_CHANGED && !isnan(row->relative) &&
        (!self->most_name || row->relative > self->most)) {
        self->most = row->relative;
        self->most_name = kept.name;
    }
    return bal_buf_append(&self->entries, &kept, sizeof(kept), &self->err);
}

/* Not finite, or of a dtype that has no numbers: were it left out, the whole
 * would look as if little had changed. */
static bool is_unmeasured(const bal_diff_row *row)
{
    return row->change == BAL_CHANGED &&
           (!row->finite || (isinf(row->relative) && row->diff2 <= 0));
}

static int add(void *ctx, const bal_diff_row *row)
{
    comparison *self = ctx;

    self->counts[row->change]++;
    if (row->change != BAL_ADDED && row->change != BAL_REMOVED)
        self->shared++;
    self->diff2 += row->diff2;
    self->norm2 += row->norm2;
    if (row->change != BAL_UNCHANGED)
        self->rc = keep(self, row);
    self->unmeasured |= is_unmeasured(row);
    return self->rc;
}

static const entry *entry_at(const comparison *self, size_t i)
{
    const entry *entries = (const void *)self->entries.data;

    return i < self->entries.len / sizeof(*entries) ? &entries[i] : NULL;
}

static double overall(const comparison *self)
{
    if (self->unmeasured)
        return (double)INFINITY;
    if (self->norm2 > 0 || isnan(self->norm2) || isnan(self->diff2))
        return sqrt(self->diff2) / sqrt(self->norm2);
    return self->diff2 > 0 ? (double)INFINITY : 0;
}

/* ---- text --------------------------------------------------------------- */

static void text_name(bal_out *out, const bal_named *named)
{
    if (named->is_commit)
        bal_out_id(out, &named->commit);
    else
        bal_out_safe(out, named->text);
}

static void text_extra(bal_out *out, size_t count, const char *what)
{
    if (count)
        bal_out_text(out, ", %zu %s", count, what);
}

static void text_stat(bal_out *out, const comparison *self)
{
    const entry *row = entry_at(self, 0);

    for (size_t i = 0; row; row = entry_at(self, ++i)) {
        if (row->change != BAL_CHANGED)
            continue;
        bal_out_text(out, "  %.4f  max %.3g  ", row->relative, row->max_abs);
        bal_out_safe(out, row->name);
        bal_out_text(out, "%s\n", row->finite ? "" : "  (not finite)");
    }
}

static void text(const comparison *self, bool stat)
{
    bal_out *out = &self->cli->out;

    text_name(out, &self->a);
    bal_out_text(out, " -> ");
    text_name(out, &self->b);
    bal_out_text(out,
                 "\n  tensors: %zu changed of %zu shared, %zu removed, %zu "
                 "added",
                 self->counts[BAL_CHANGED], self->shared,
                 self->counts[BAL_REMOVED], self->counts[BAL_ADDED]);
    text_extra(out, self->counts[BAL_RESHAPED], "reshaped");
    text_extra(out, self->counts[BAL_DTYPE_CHANGED], "in another dtype");
    bal_out_text(out,
                 "\n  relative change: %.4f overall, %.4f in the most changed "
                 "tensor (",
                 overall(self), self->most);
    bal_out_safe(out, self->most_name ? self->most_name : "-");
    bal_out_text(out, ")\n");
    if (self->entries.len) {
        bal_out_text(out, "  no fingerprints on both commits; behavioural "
                          "effect unknown\n");
    }
    if (stat)
        text_stat(out, self);
    bal_diff_maps_text(out, &self->maps, stat);
}

/* ---- JSON --------------------------------------------------------------- */

static void json_name(bal_json *json, const char *key, const bal_named *named)
{
    bal_json_key(json, key);
    if (named->is_commit)
        bal_json_id(json, &named->commit);
    else
        bal_json_string(json, named->text);
}

static void json_changed(bal_json *json, const comparison *self)
{
    const entry *row = entry_at(self, 0);

    bal_json_key(json, "changed");
    bal_json_array(json);
    for (size_t i = 0; row; row = entry_at(self, ++i)) {
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

static bool is_removed(const entry *row)
{
    return row->change == BAL_REMOVED;
}

static bool is_added(const entry *row)
{
    return row->change == BAL_ADDED;
}

static bool is_reshaped(const entry *row)
{
    return row->change == BAL_RESHAPED;
}

static bool has_other_dtype(const entry *row)
{
    return row->dtype_changed;
}

static bool is_not_finite(const entry *row)
{
    return !row->finite;
}

static void json_names(bal_json *json, const comparison *self, const char *key,
                       bool (*chosen)(const entry *))
{
    const entry *row = entry_at(self, 0);

    bal_json_key(json, key);
    bal_json_array(json);
    for (size_t i = 0; row; row = entry_at(self, ++i)) {
        if (chosen(row))
            bal_json_string(json, row->name);
    }
    bal_json_close(json);
}

/* No commit has fingerprints yet, so nothing is known of behaviour. */
static void json_probes(bal_json *json)
{
    bal_json_key(json, "probe_set");
    bal_json_null(json);
    bal_json_key(json, "probes_total");
    bal_json_u64(json, 0);
    bal_json_key(json, "probes_changed");
    bal_json_u64(json, 0);
    bal_json_key(json, "probes_similarity");
    bal_json_null(json);
    bal_json_key(json, "unobserved");
    bal_json_bool(json, false);
}

static void document(const comparison *self, double threshold)
{
    bal_out *out = &self->cli->out;
    bal_json json;

    bal_doc_open(&json, out, self->cli->command->name);
    json_name(&json, "a", &self->a);
    json_name(&json, "b", &self->b);
    bal_json_key(&json, "shared");
    bal_json_u64(&json, self->shared);
    json_changed(&json, self);
    json_names(&json, self, "removed", is_removed);
    json_names(&json, self, "added", is_added);
    json_names(&json, self, "reshaped", is_reshaped);
    json_names(&json, self, "dtype_changed", has_other_dtype);
    bal_json_key(&json, "relative_change");
    bal_json_f64(&json, overall(self));
    bal_json_key(&json, "max_tensor_change");
    bal_json_f64(&json, self->most);
    bal_json_key(&json, "max_tensor");
    bal_json_string(&json, self->most_name);
    json_names(&json, self, "non_finite", is_not_finite);
    bal_json_key(&json, "threshold");
    bal_json_f64(&json, threshold);
    json_probes(&json);
    bal_diff_maps_json(&json, &self->maps);
    bal_doc_close(&json, out);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct diff_opts *given = values;
    BAL_LOCAL(comparison) both = { .cli = cli };
    double threshold =
        given->threshold.given ? given->threshold.value : default_threshold;

    int rc = bal_cli_compared(&both.a, cli, cli->args[0], err);
    if (rc)
        return rc;
    rc = bal_cli_compared(&both.b, cli, cli->args[1], err);
    if (rc)
        return rc;
    if (given->probe_set) {
        return bal_fail(err, BAL_ENOTFOUND, "no probe set '%s' on both commits",
                        given->probe_set);
    }
    rc = bal_cli_work(cli, err);
    if (rc)
        return rc;
    rc = bal_diff(both.a.model, both.b.model, cli->work, add, &both, err);
    if (rc == BAL_EINVAL && !err->hint[0])
        bal_hint(err, rc,
                 "'ballast apply' makes a model of a delta; './NAME' "
                 "is the folder, NAME the ref");
    if (!rc && both.rc) {
        *err = both.err;
        rc = both.rc;
    }
    if (!rc)
        rc = bal_diff_maps_fill(&both.maps, cli, both.a.model, both.b.model,
                                err);
    if (rc)
        return rc;
    cli->status = given->exit_code && both.entries.len ? 1 : 0;
    bal_progress_clear(&cli->progress);
    bal_out_page(&cli->out);
    if (cli->out.json)
        document(&both, threshold);
    else
        text(&both, given->stat);
    return 0;
}

const bal_command bal_cmd_diff = {
    .name = "diff",
    .synopsis = "A B [OPTIONS]",
    .summary = "compare two models, tensor by tensor",
    .about =
        "A and B are commits, folders or safetensors files; a folder that "
        "has the name of a ref is meant by './NAME'. The relative change "
        "is |b - a| / |a|, in 2-norms; a tensor that one of two "
        "deltas lacks counts as zero there. Side files are not compared.\n\n"
        "Two adapters are compared as maps, too, for factors may differ "
        "where the maps do not: norms, the cosine between the maps, and "
        "how their column and row spaces lie to each other (the mean of "
        "the squared cosines of the principal angles, 1 where one space "
        "lies in the other; with --stat the largest angle).",
    .examples = "ballast diff main~1 main\n"
                "ballast diff support ./support-ft --exit-code --stat\n",
    .arg = "MODEL",
    .min_args = 2,
    .max_args = 2,
    .opts = opts,
    .opts_size = sizeof(struct diff_opts),
    .run = run,
};
