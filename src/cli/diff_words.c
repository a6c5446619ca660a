/* What changed, and what came of it, in words and numbers. */
#include "cli/diff_words.h"

#include <math.h>
#include <string.h>

/* ---- weights ------------------------------------------------------------ */

static void text_extra(bal_out *out, size_t count, const char *what)
{
    if (count)
        bal_out_text(out, ", %zu %s", count, what);
}

static size_t count_not_finite(const bal_diff_weights *self)
{
    const bal_diff_entry *row = bal_diff_weights_at(self, 0);
    size_t count = 0;

    for (size_t i = 0; row; row = bal_diff_weights_at(self, ++i))
        count += !row->finite;
    return count;
}

void bal_diff_weights_text(bal_out *out, const bal_diff_weights *self)
{
    size_t wrong = count_not_finite(self);

    bal_out_text(out,
                 "  tensors: %zu changed of %zu shared, %zu removed, %zu "
                 "added",
                 self->counts[BAL_CHANGED], self->shared,
                 self->counts[BAL_REMOVED], self->counts[BAL_ADDED]);
    text_extra(out, self->counts[BAL_RESHAPED], "reshaped");
    text_extra(out, self->counts[BAL_DTYPE_CHANGED], "in another dtype");
    text_extra(out, wrong, "not finite");
    bal_out_text(out,
                 "\n  relative change: %.4f overall, %.4f in the most changed "
                 "tensor (",
                 bal_diff_weights_overall(self), self->most);
    bal_out_safe(out, self->most_name ? self->most_name : "-");
    bal_out_text(out, ")\n");
}

void bal_diff_weights_stat(bal_out *out, const bal_diff_weights *self)
{
    const bal_diff_entry *row = bal_diff_weights_at(self, 0);

    for (size_t i = 0; row; row = bal_diff_weights_at(self, ++i)) {
        if (row->change != BAL_CHANGED)
            continue;
        bal_out_text(out, "  %.4f  max %.3g  ", row->relative, row->max_abs);
        bal_out_safe(out, row->name);
        bal_out_text(out, "%s\n", row->finite ? "" : "  (not finite)");
    }
}

void bal_diff_groups_text(bal_out *out, const bal_diff_groups *self,
                          const char *title)
{
    bal_out_text(out, "  %s\n", title);
    for (size_t i = 0; i < bal_diff_groups_count(self); i++) {
        const bal_diff_group *group = bal_diff_groups_at(self, i);
        bal_out_text(out, "    %.4f  %zu of %zu changed  ",
                     bal_diff_group_relative(group), group->changed,
                     group->tensors);
        bal_out_safe(out, group->name);
        bal_out_text(out, "\n");
    }
}

/* ---- answers ------------------------------------------------------------ */

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
    if (bal_diff_answers_unobserved(self, moved)) {
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

/* ---- maps --------------------------------------------------------------- */

static void text_map(bal_out *out, const bal_lora_row *row)
{
    bal_out_text(out, "  |a| %.4g  |b| %.4g  |b - a| %.4g", row->norm_a,
                 row->norm_b, row->difference);
    if (!isnan(row->columns))
        bal_out_text(out,
                     "  cosine %.4f  columns %.4f (%.1f deg)  rows %.4f "
                     "(%.1f deg)",
                     bal_diff_maps_cosine(row), row->columns, row->column_angle,
                     row->rows, row->row_angle);
    bal_out_text(out, "  ");
    bal_out_safe(out, row->module);
    bal_out_text(out, "\n");
}

void bal_diff_maps_text(bal_out *out, const bal_diff_maps *self, bool stat)
{
    const bal_lora_row *row = bal_diff_maps_at(self, 0);
    bal_diff_maps_sums all = bal_diff_maps_sum(self);

    if (self->why.text[0]) {
        bal_out_text(out, "  not compared as maps: ");
        bal_out_safe(out, self->why.text);
        bal_out_text(out, "\n");
    }
    if (!self->compared)
        return;
    bal_out_text(out, "  as maps: relative change %.4f", self->residual.total);
    if (!isnan(all.cosine))
        bal_out_text(out, ", cosine %.4f", all.cosine);
    if (!isnan(all.columns))
        bal_out_text(out, ", column spaces overlap %.4f, row spaces %.4f",
                     all.columns, all.rows);
    bal_out_text(out, "\n");
    for (size_t i = 0; stat && row; row = bal_diff_maps_at(self, ++i))
        text_map(out, row);
}
