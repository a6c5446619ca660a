/* The outcome in words and numbers. */
#include "report/diff_answers.h"

#include <math.h>

#include "core/error.h"

/* Without a second run of each probe nobody knows how far a runner is from
 * itself; below this it is rounding. */
static const double quiet = 1e-6;

void bal_diff_answers_done(bal_diff_answers *self)
{
    bal_fingerprint_free(self->a);
    bal_fingerprint_free(self->b);
    bal_buf_done(&self->rows);
    bal_buf_done(&self->klds);
}

static int keep(void *ctx, const bal_probe_row *row)
{
    bal_diff_answers *self = ctx;
    const bal_diff_answer kept = {
        .probe = row->probe,
        .before = row->before,
        .after = row->after,
        .moved = row->moved,
        .unsure = row->unsure,
        .similarity = row->similarity,
        .kld = row->kld,
        .tokens = row->tokens,
    };

    self->rc = bal_buf_append(&self->rows, &kept, sizeof(kept), &self->err);
    if (!self->rc && row->tokens)
        self->rc = bal_buf_append(&self->klds, row->klds,
                                  row->tokens * sizeof(*row->klds), &self->err);
    if (!self->rc)
        self->rc = bal_work_poll(self->work, &self->err);
    return self->rc;
}

static int compare(bal_diff_answers *self, bal_error *err)
{
    int rc =
        bal_behaviour_compare(&self->sums, self->a, self->b, keep, self, err);

    if (!rc && self->rc) {
        if (err)
            *err = self->err;
        return self->rc;
    }
    self->known = !rc && self->sums.total > 0;
    return rc;
}

int bal_diff_answers_fill(bal_diff_answers *out, bal_tenant *tenant,
                          const bal_id commits[2], const char *prefix,
                          bal_work *work, bal_error *err)
{
    out->work = work;
    int rc = bal_behaviour_find(&out->a, &out->b, tenant, commits, prefix, err);
    return rc || !out->a ? rc : compare(out, err);
}

bool bal_diff_answers_drift(const bal_diff_answers *self)
{
    double noise = isnan(self->sums.kld_noise) ? 0 : self->sums.kld_noise;

    return self->known && self->sums.kld > quiet && self->sums.kld > noise;
}

bool bal_diff_answers_unobserved(const bal_diff_answers *self, bool moved)
{
    return self->known && moved && !self->sums.moved &&
           !bal_diff_answers_drift(self);
}

/* ---- JSON --------------------------------------------------------------- */

static void number(bal_json *json, const char *key, double value)
{
    bal_json_key(json, key);
    bal_json_f64(json, value);
}

static void count(bal_json *json, const char *key, uint64_t value)
{
    bal_json_key(json, key);
    bal_json_u64(json, value);
}

static void json_logprobs(bal_json *json, const bal_behaviour *sums)
{
    if (!sums->tokens)
        return;
    number(json, "mean_kld", sums->kld);
    number(json, "kld_low", sums->kld_low);
    number(json, "kld_high", sums->kld_high);
    number(json, "p99_kld", sums->kld_p99);
    number(json, "max_kld", sums->kld_most);
    number(json, "noise_kld", sums->kld_noise);
    count(json, "kld_tokens", sums->tokens);
    number(json, "same_top", sums->same_top);
    number(json, "perplexity_ratio", sums->perplexity_ratio);
}

static void json_graded(bal_json *json, const bal_behaviour *sums)
{
    if (!sums->graded)
        return;
    count(json, "graded", sums->graded);
    count(json, "right_a", sums->right_a);
    count(json, "right_b", sums->right_b);
    count(json, "only_a", sums->only_a);
    count(json, "only_b", sums->only_b);
    number(json, "p_value", sums->p_value);
}

/* By what a change was seen. */
static const char *evidence(const bal_diff_answers *self)
{
    if (self->known && self->sums.moved)
        return "answers";
    return bal_diff_answers_drift(self) ? "logprobs" : NULL;
}

void bal_diff_answers_json(bal_json *json, const bal_diff_answers *self,
                           bool moved)
{
    const bal_behaviour *sums = &self->sums;
    const bal_id *set =
        self->known ? bal_probes_id(bal_fingerprint_probes(self->a)) : NULL;

    bal_json_key(json, "probe_set");
    bal_json_id(json, set);
    count(json, "probes_total", self->known ? sums->total : 0);
    count(json, "probes_changed", self->known ? sums->moved : 0);
    number(json, "probes_similarity",
           self->known && sums->moved ? sums->similarity : (double)NAN);
    bal_json_key(json, "unobserved");
    bal_json_bool(json, bal_diff_answers_unobserved(self, moved));
    bal_json_key(json, "evidence");
    bal_json_string(json, evidence(self));
    if (!self->known)
        return;
    count(json, "probes_unsure", sums->unsure);
    json_logprobs(json, sums);
    json_graded(json, sums);
}

void bal_diff_answers_json_table(bal_json *json, const bal_diff_answers *self)
{
    const bal_diff_answer *rows = (const void *)self->rows.data;

    bal_json_key(json, "probes");
    bal_json_array(json);
    for (size_t i = 0; i < self->rows.len / sizeof(*rows); i++) {
        bal_json_object(json);
        bal_json_key(json, "id");
        bal_json_string(json, rows[i].probe->id);
        bal_json_key(json, "before");
        bal_json_string(json, rows[i].before);
        bal_json_key(json, "after");
        bal_json_string(json, rows[i].after);
        bal_json_key(json, "moved");
        bal_json_bool(json, rows[i].moved);
        bal_json_key(json, "unsure");
        bal_json_bool(json, rows[i].unsure);
        number(json, "similarity", rows[i].similarity);
        number(json, "mean_kld", rows[i].kld);
        bal_json_close(json);
    }
    bal_json_close(json);
}
