/* What changed of a model's answers. One walk over the probes; all sums are
 * taken in their order, and in each answer in that of its tokens. */
#include "probe/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "probe/fingerprint.h"

/* Half of a 95 % interval, in standard errors. */
static const double confidence = 1.96;

/* A probe's tokens are no independent samples: together they are one. */
typedef struct cluster {
    double sum;
    double tokens;
} cluster;

typedef struct walk {
    const bal_fingerprint *a, *b;
    bal_behaviour all;
    double *klds; /* all.tokens of them */
    cluster *clusters;
    size_t cluster_count;
    double similarity;
    uint64_t same_top;
    double ratio; /* sum of ln p_a(token) / p_b(token) */
    uint64_t ratio_tokens;
} walk;

static void walk_done(walk *self)
{
    free(self->klds);
    free(self->clusters);
}

/* ---- tokens -------------------------------------------------------------- */

/* ln of the probability that the token has at most; NAN: nobody says. */
static double listed(const bal_said *by, const char *token)
{
    double least = (double)NAN;

    for (size_t i = 0; i < by->top_count; i++) {
        double logprob = by->top[i].logprob;

        /* Nothing that a double can tell from 0: as good as not listed. */
        if (!(exp(logprob) > 0))
            continue;
        if (!strcmp(by->top[i].token, token))
            return logprob;
        least = fmin(least, logprob); /* of a NAN: the other */
    }
    return least;
}

static void add_token(walk *self, const bal_said *a, const bal_said *b)
{
    double log_ratio = a->logprob - listed(b, a->token);

    self->klds[self->all.tokens++] = bal_kld(a, b);
    self->same_top += !strcmp(a->top[0].token, b->top[0].token);
    if (isnan(log_ratio) || !(exp(a->logprob) > 0))
        return;
    self->ratio += log_ratio;
    self->ratio_tokens++;
}

static void add_tokens(walk *self, bal_probe_row *row, const bal_answer *a,
                       const bal_answer *b)
{
    const double *klds = self->klds + self->all.tokens;
    size_t compared;
    double sum = 0;

    row->kld = (double)NAN;
    row->kld_most = (double)NAN;
    row->parted = bal_answer_common(a, b, &compared);
    row->tokens = compared;
    row->klds = klds;
    if (!compared)
        return;
    for (size_t i = 0; i < compared; i++) {
        add_token(self, &a->tokens[i], &b->tokens[i]);
        sum += klds[i];
        row->kld_most = fmax(row->kld_most, klds[i]);
    }
    row->kld = sum / (double)compared;
    self->clusters[self->cluster_count++] = (cluster){ sum, (double)compared };
}

/* ---- texts --------------------------------------------------------------- */

static bool has_text(const bal_fingerprint *of, size_t i, const char *text)
{
    size_t count = bal_fingerprint_distinct(of, i);

    for (size_t k = 0; k < count; k++) {
        if (!strcmp(bal_fingerprint_text(of, i, k, NULL), text))
            return true;
    }
    return false;
}

static bool share_text(const bal_fingerprint *a, const bal_fingerprint *b,
                       size_t i)
{
    size_t count = bal_fingerprint_distinct(a, i);

    for (size_t k = 0; k < count; k++) {
        if (has_text(b, i, bal_fingerprint_text(a, i, k, NULL)))
            return true;
    }
    return false;
}

static int add_texts(walk *self, bal_probe_row *row, size_t i, bal_error *err)
{
    row->moved = !share_text(self->a, self->b, i);
    row->unsure = bal_fingerprint_distinct(self->a, i) > 1 ||
                  bal_fingerprint_distinct(self->b, i) > 1;
    row->similarity = 1;
    self->all.unsure += row->unsure;
    if (!row->moved)
        return 0;
    int rc = bal_similarity(&row->similarity, row->before, row->after, err);
    self->all.moved++;
    self->similarity += row->similarity;
    return rc;
}

static void add_grades(walk *self, bal_probe_row *row)
{
    row->right_a = -1;
    row->right_b = -1;
    if (!row->probe->reference_count)
        return;
    bool a = bal_probe_right(row->probe, row->before);
    bool b = bal_probe_right(row->probe, row->after);
    row->right_a = a;
    row->right_b = b;
    self->all.graded++;
    self->all.right_a += a;
    self->all.right_b += b;
    self->all.only_a += a && !b;
    self->all.only_b += b && !a;
}

/* ---- in all -------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    double one = *(const double *)a;
    double two = *(const double *)b;

    return (one > two) - (one < two);
}

/* The mean of a ratio of sums, and how far it may be off. */
static void add_interval(walk *self)
{
    double count = (double)self->cluster_count;
    double tokens = (double)self->all.tokens;
    double squares = 0;

    if (self->cluster_count < 2)
        return;
    for (size_t i = 0; i < self->cluster_count; i++) {
        const cluster *one = &self->clusters[i];
        double off = one->sum - self->all.kld * one->tokens;
        squares += off * off;
    }
    double error = sqrt(count / (count - 1) * squares) / tokens;
    self->all.kld_low = fmax(0, self->all.kld - confidence * error);
    self->all.kld_high = self->all.kld + confidence * error;
}

/* The smallest of the values that 99 % are at most. */
static size_t rank_of_p99(uint64_t count)
{
    return (size_t)(count - count / 100 - 1);
}

static void sum_tokens(walk *self)
{
    uint64_t count = self->all.tokens;
    double sum = 0;

    if (!count)
        return;
    for (size_t i = 0; i < count; i++)
        sum += self->klds[i];
    self->all.kld = sum / (double)count;
    add_interval(self);
    qsort(self->klds, (size_t)count, sizeof(*self->klds), compare_doubles);
    self->all.kld_p99 = self->klds[rank_of_p99(count)];
    self->all.kld_most = self->klds[count - 1];
    self->all.same_top = (double)self->same_top / (double)count;
    if (self->ratio_tokens)
        self->all.perplexity_ratio =
            exp(self->ratio / (double)self->ratio_tokens);
}

static void sum_noise(walk *self)
{
    uint64_t tokens_a;
    uint64_t tokens_b;
    double sum = bal_fingerprint_noise(self->a, &tokens_a);

    sum += bal_fingerprint_noise(self->b, &tokens_b);
    if (tokens_a || tokens_b)
        self->all.kld_noise = sum / ((double)tokens_a + (double)tokens_b);
}

static void sum_up(walk *self)
{
    sum_tokens(self);
    sum_noise(self);
    if (self->all.moved)
        self->all.similarity = self->similarity / (double)self->all.moved;
    if (self->all.graded)
        self->all.p_value = bal_mcnemar(self->all.only_a, self->all.only_b);
}

/* ---- the walk ------------------------------------------------------------ */

static int check_same(const bal_fingerprint *a, const bal_fingerprint *b,
                      bal_error *err)
{
    const bal_id *one = bal_probes_id(bal_fingerprint_probes(a));
    const bal_id *two = bal_probes_id(bal_fingerprint_probes(b));
    const char *terms = bal_fingerprint_terms(a);
    const char *others = bal_fingerprint_terms(b);

    if (!bal_id_equal(one, two))
        return bal_fail(err, BAL_EINVAL,
                        "the two fingerprints are of different probes");
    if (strcmp(terms, others) != 0)
        return bal_fail(err, BAL_EINVAL,
                        "the two fingerprints are on different terms: %s and "
                        "%s",
                        terms, others);
    return 0;
}

static int walk_begin(walk *self, bal_error *err)
{
    size_t count = bal_probes_count(bal_fingerprint_probes(self->a));
    size_t tokens = 0;

    for (size_t i = 0; i < count; i++) {
        const bal_answer *answer = bal_fingerprint_at(self->a, i);
        tokens += answer ? answer->token_count : 0;
    }
    self->klds = calloc(tokens + 1, sizeof(*self->klds));
    self->clusters = calloc(count + 1, sizeof(*self->clusters));
    self->all = (bal_behaviour){
        .similarity = (double)NAN,
        .kld = (double)NAN,
        .kld_low = (double)NAN,
        .kld_high = (double)NAN,
        .kld_p99 = (double)NAN,
        .kld_most = (double)NAN,
        .kld_noise = (double)NAN,
        .same_top = (double)NAN,
        .perplexity_ratio = (double)NAN,
        .p_value = (double)NAN,
    };
    return self->klds && self->clusters
               ? 0
               : bal_fail_memory(err, "comparing answers");
}

static int walk_probe(walk *self, bal_probe_row *row, size_t i, bool *there,
                      bal_error *err)
{
    const bal_answer *a = bal_fingerprint_at(self->a, i);
    const bal_answer *b = bal_fingerprint_at(self->b, i);

    *there = a && b;
    if (!*there)
        return 0;
    *row = (bal_probe_row){
        .probe = bal_probes_at(bal_fingerprint_probes(self->a), i),
        .before = a->output,
        .after = b->output,
    };
    self->all.total++;
    add_tokens(self, row, a, b);
    add_grades(self, row);
    return add_texts(self, row, i, err);
}

int bal_behaviour_compare(bal_behaviour *out, const bal_fingerprint *a,
                          const bal_fingerprint *b, bal_probe_row_fn *fn,
                          void *ctx, bal_error *err)
{
    BAL_LOCAL(walk) self = { .a = a, .b = b };
    size_t count = bal_probes_count(bal_fingerprint_probes(a));
    int rc = check_same(a, b, err);
    if (!rc)
        rc = walk_begin(&self, err);

    for (size_t i = 0; i < count && !rc; i++) {
        bal_probe_row row;
        bool there;

        rc = walk_probe(&self, &row, i, &there, err);
        if (!rc && there && fn && fn(ctx, &row))
            break;
    }
    if (rc)
        return rc;
    sum_up(&self);
    *out = self.all;
    return 0;
}
