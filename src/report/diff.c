/* The parts of a diff in their order. Answers come first: that there are no
 * probes of that id is known before all weights are read. */
#include "report/diff.h"

#include "core/error.h"
#include "core/str.h"

void bal_diff_whole_done(bal_diff_whole *self)
{
    bal_diff_weights_done(&self->weights);
    bal_diff_maps_done(&self->maps);
    bal_diff_answers_done(&self->answers);
}

/* Of anything but commits nothing is known. */
static int compare_answers(bal_diff_whole *self,
                           const bal_diff_options *options, bal_error *err)
{
    if (options->commits[0] && options->commits[1] && options->tenant) {
        const bal_id commits[] = { *options->commits[0], *options->commits[1] };
        return bal_diff_answers_fill(&self->answers, options->tenant, commits,
                                     options->probe_set, options->work, err);
    }
    if (!options->probe_set)
        return 0;
    return bal_fail(err, BAL_EINVAL,
                    "probe set '%s': only commits have fingerprints",
                    options->probe_set);
}

int bal_diff_whole_fill(bal_diff_whole *out, bal_model *a, bal_model *b,
                        const bal_diff_options *options, bal_error *err)
{
    int rc = compare_answers(out, options, err);
    if (rc)
        return rc;

    out->threshold =
        options->threshold ? *options->threshold : BAL_DIFF_THRESHOLD;
    out->weights.work = options->work;
    out->weights.fn = options->fn;
    out->weights.ctx = options->ctx;
    rc = bal_diff_weights_fill(&out->weights, a, b, err);
    return rc ? rc : bal_diff_maps_fill(&out->maps, a, b, options->work, err);
}

bool bal_diff_whole_moved(const bal_diff_whole *self)
{
    return bal_diff_weights_moved(&self->weights, self->threshold);
}

/* ---- JSON --------------------------------------------------------------- */

static void json_name(bal_json *json, const char *key,
                      const bal_diff_options *options, size_t i)
{
    bal_json_key(json, key);
    if (options->commits[i])
        bal_json_id(json, options->commits[i]);
    else
        bal_json_string(json, options->names[i]);
}

void bal_diff_whole_json(bal_json *json, const bal_diff_whole *self,
                         const bal_diff_options *options)
{
    json_name(json, "a", options, 0);
    json_name(json, "b", options, 1);
    bal_diff_weights_json(json, &self->weights);
    bal_json_key(json, "threshold");
    bal_json_f64(json, self->threshold);
    bal_diff_answers_json(json, &self->answers, bal_diff_whole_moved(self));
    bal_diff_weights_json_groups(json, &self->weights);
    bal_diff_maps_json(json, &self->maps);
    if (options->flags & BAL_DIFF_PROBES)
        bal_diff_answers_json_table(json, &self->answers);
    if (options->flags & BAL_DIFF_CELLS) {
        bal_json_key(json, "cells");
        bal_diff_groups_json(json, &self->weights.cells);
    }
}

int bal_diff_whole_write(bal_buf *to, const bal_diff_whole *self,
                         const bal_diff_options *options, bal_error *err)
{
    bal_json json;

    bal_json_begin(&json, to, 0);
    bal_json_object(&json);
    bal_json_key(&json, "schema");
    bal_json_string(&json, "ballast/diff/1");
    bal_diff_whole_json(&json, self, options);
    bal_json_close(&json);
    return bal_json_end(&json, err);
}

int bal_diff_json(char **out, bal_model *a, bal_model *b,
                  const bal_diff_options *options, bal_error *err)
{
    BAL_LOCAL(bal_diff_whole) whole = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };

    int rc = bal_diff_whole_fill(&whole, a, b, options, err);
    if (!rc)
        rc = bal_diff_whole_write(&text, &whole, options, err);
    if (rc)
        return rc;
    char *copy = bal_str_copy(bal_buf_string(&text));
    if (!copy)
        return bal_fail_memory(err, "a diff");
    *out = copy;
    return 0;
}
