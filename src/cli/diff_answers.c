/* The outcome in words and numbers. */
#include "cli/diff_answers.h"

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

int bal_diff_answers_fill(bal_diff_answers *out, bal_cli *cli,
                          const bal_named *a, const bal_named *b,
                          const char *prefix, bal_error *err)
{
    if (!a->is_commit || !b->is_commit) {
        if (!prefix)
            return 0;
        return bal_fail(err, BAL_EINVAL,
                        "--probe-set: only commits have fingerprints");
    }
    out->work = cli->work;
    const bal_id commits[] = { a->commit, b->commit };
    int rc =
        bal_behaviour_find(&out->a, &out->b, cli->tenant, commits, prefix, err);
    return rc || !out->a ? rc : compare(out, err);
}

bool bal_diff_answers_drift(const bal_diff_answers *self)
{
    double noise = isnan(self->sums.kld_noise) ? 0 : self->sums.kld_noise;

    return self->known && self->sums.kld > quiet && self->sums.kld > noise;
}

static bool is_unobserved(const bal_diff_answers *self, bool moved)
{
    return self->known && moved && !self->sums.moved &&
           !bal_diff_answers_drift(self);
}

/* ---- text --------------------------------------------------------------- */

static void text_moved(bal_out *out, const bal_behaviour *sums)
{
    bal_out_text(out, "  probes: %llu of %llu moved",
                 (unsigned long long)sums->moved,
                 (unsigned long long)sums->total);
    if (sums->moved)
        bal_out_text(out, " (similarity %.2f)", sums->similarity);
    bal_out_text(out, "\n");
    if (sums->unsure)
        bal_out_text(out,
                     "  noise: %llu probes answered in several ways when asked "
                     "again\n",
                     (unsigned long long)sums->unsure);
}

/* A fingerprint may lack answers (--keep-partial). */
static void text_part(bal_out *out, const bal_diff_answers *self)
{
    size_t count = bal_probes_count(bal_fingerprint_probes(self->a));

    if (self->sums.total < count)
        bal_out_text(out, "  %llu of %zu probes have an answer on both sides\n",
                     (unsigned long long)self->sums.total, count);
}

static void text_logprobs(bal_out *out, const bal_behaviour *sums)
{
    if (!sums->tokens)
        return;
    bal_out_text(out, "  KL divergence: %.4g nats a token", sums->kld);
    if (!isnan(sums->kld_low))
        bal_out_text(out, " (95 %%: %.4g to %.4g)", sums->kld_low,
                     sums->kld_high);
    bal_out_text(out, ", 99th percentile %.4g, %llu tokens\n", sums->kld_p99,
                 (unsigned long long)sums->tokens);
    bal_out_text(out, "  likeliest token the same: %.2f %%",
                 100 * sums->same_top);
    if (!isnan(sums->perplexity_ratio))
        bal_out_text(out, ", perplexity x %.4f", sums->perplexity_ratio);
    if (isnan(sums->kld_noise))
        bal_out_text(out, ", noise not measured (fingerprint --repeat 2)\n");
    else
        bal_out_text(out, ", noise %.4g nats a token\n", sums->kld_noise);
}

static void text_graded(bal_out *out, const bal_behaviour *sums)
{
    if (!sums->graded)
        return;
    bal_out_text(
        out,
        "  right answers: %llu of %llu before, %llu after (%llu lost, "
        "%llu gained), p = %.4g\n",
        (unsigned long long)sums->right_a, (unsigned long long)sums->graded,
        (unsigned long long)sums->right_b, (unsigned long long)sums->only_a,
        (unsigned long long)sums->only_b, sums->p_value);
}

/* Two that were asked in ways that are worth a word. */
static void text_facts(bal_out *out, const bal_diff_answers *self)
{
    static const char *const members[] = { "engine", "version", "base" };
    json_t *a = json_loads(bal_fingerprint_facts(self->a), 0, NULL);
    json_t *b = json_loads(bal_fingerprint_facts(self->b), 0, NULL);

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const char *before = json_string_value(json_object_get(a, members[i]));
        const char *after = json_string_value(json_object_get(b, members[i]));
        if (!before || !after || !strcmp(before, after))
            continue;
        bal_out_text(out, "  asked with another %s: ", members[i]);
        bal_out_safe(out, before);
        bal_out_text(out, ", then ");
        bal_out_safe(out, after);
        bal_out_text(out, "\n");
    }
    json_decref(a);
    json_decref(b);
}

static void text_outcome(bal_out *out, const bal_diff_answers *self, bool moved,
                         bool differs)
{
    if (is_unobserved(self, moved)) {
        bal_out_text(out, "  ");
        bal_out_paint(out, BAL_PAINT_ERROR, "UNOBSERVED CHANGE");
        bal_out_text(out, ": weights moved, no probe detected it\n");
        return;
    }
    if (moved && !self->sums.moved)
        bal_out_text(out,
                     "  seen by log-probabilities alone: weights moved, no "
                     "answer did\n");
    else if (!differs && self->sums.moved)
        bal_out_text(out, "  no weight differs: the runner does not answer the "
                          "same twice\n");
}

void bal_diff_answers_text(bal_out *out, const bal_diff_answers *self,
                           bool moved, bool differs)
{
    if (!self->known) {
        if (differs)
            bal_out_text(out, "  no fingerprints on both commits; behavioural "
                              "effect unknown\n");
        return;
    }
    text_moved(out, &self->sums);
    text_part(out, self);
    text_logprobs(out, &self->sums);
    text_graded(out, &self->sums);
    text_facts(out, self);
    text_outcome(out, self, moved, differs);
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
    bal_json_bool(json, is_unobserved(self, moved));
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
