/* What is said of a change of answers. Expected numbers: numpy over the same
 * tokens; scipy.special.rel_entr for the divergences, numpy.percentile with
 * "inverted_cdf" for ranks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probe/compare.h"
#include "support/check.h"
#include "support/probes.h"
#include "unit/behaviour_rows.h"

#define NEAR(got, want) CHECK(fabs((got) - (want)) < 1e-12)

static bal_probes *six_probes(void)
{
    return probes_of(
        "[{\"id\":\"p0\",\"prompt\":\"0\"},"
        "{\"id\":\"p1\",\"prompt\":\"1\"},"
        "{\"id\":\"p2\",\"prompt\":\"2\",\"references\":[\"yes\"]},"
        "{\"id\":\"p3\",\"prompt\":\"3\",\"references\":[\"yes\"]},"
        "{\"id\":\"p4\",\"prompt\":\"4\",\"references\":[\"yes\"]},"
        "{\"id\":\"p5\",\"prompt\":\"5\",\"references\":[\"yes\"]}]");
}

static bal_fingerprint *new_print(bal_probes *probes)
{
    bal_fingerprint *self = NULL;

    CHECK_OK(bal_fingerprint_new(&self, probes, "{\"runner\":\"fake\"}",
                                 &check_err));
    return self;
}

static void add_rows(bal_fingerprint *to, size_t i, const char *output,
                     const token_row *rows)
{
    bal_said said[TOKENS] = { { 0 } };
    size_t count = 0;

    for (; count < TOKENS && rows[count].token; count++) {
        const token_row *row = &rows[count];
        size_t top = 0;
        double logprob = -100;
        for (; top < TOP && row->top[top].token; top++) {
            if (!strcmp(row->top[top].token, row->token))
                logprob = row->top[top].logprob;
        }
        said[count] = (bal_said){ row->token, logprob, row->top, top };
    }
    bal_answer answer = { output, said, count };
    CHECK_OK(bal_fingerprint_add(to, i, &answer, &check_err));
}

static void add_text(bal_fingerprint *to, size_t i, const char *output)
{
    bal_answer answer = { .output = output };

    CHECK_OK(bal_fingerprint_add(to, i, &answer, &check_err));
}

static const char *const outputs_a[] = { "same",   "kitten", "yes",
                                         "yes it", "no",     "no" };
static const char *const outputs_b[] = { "same", "sitting", "yes",
                                         "no",   "yes",     "never" };

static void fill(bal_fingerprint *a, bal_fingerprint *b)
{
    for (size_t i = 0; i < PROBES; i++) {
        add_rows(a, i, outputs_a[i], rows_a[i]);
        add_rows(b, i, outputs_b[i], rows_b[i]);
    }
}

static bal_behaviour compare(const bal_fingerprint *a, const bal_fingerprint *b)
{
    bal_behaviour out = { 0 };

    CHECK_OK(bal_behaviour_compare(&out, a, b, NULL, NULL, &check_err));
    return out;
}

static void token_by_token_the_numbers_are_numpys(void)
{
    BAL_OWN(bal_probes) probes = six_probes();
    BAL_OWN(bal_fingerprint) a = new_print(probes);
    BAL_OWN(bal_fingerprint) b = new_print(probes);

    fill(a, b);
    bal_behaviour all = compare(a, b);
    CHECK(all.total == 6 && all.tokens == 11);
    NEAR(all.kld, 0.04065964465864676);
    NEAR(all.kld_low, 0.0179662208638713);
    NEAR(all.kld_high, 0.06335306845342221);
    NEAR(all.kld_p99, 0.12841981456134519);
    NEAR(all.kld_most, 0.12841981456134519);
    NEAR(all.same_top, 0.6363636363636364);
    NEAR(all.perplexity_ratio, 1.0857383140683399);
    CHECK(isnan(all.kld_noise));
}

static void texts_are_counted_and_graded(void)
{
    BAL_OWN(bal_probes) probes = six_probes();
    BAL_OWN(bal_fingerprint) a = new_print(probes);
    BAL_OWN(bal_fingerprint) b = new_print(probes);

    fill(a, b);
    bal_behaviour all = compare(a, b);
    CHECK(all.moved == 4 && all.unsure == 0);
    /* kitten/sitting 3 of 7; "yes it"/no 6 of 6; no/yes 3 of 3; no/never 4 of
     * 5 */
    NEAR(all.similarity, (4.0 / 7 + 0 + 0 + 1.0 / 5) / 4);
    CHECK(all.graded == 4 && all.right_a == 2 && all.right_b == 2);
    CHECK(all.only_a == 1 && all.only_b == 1);
    NEAR(all.p_value, 1);
}

typedef struct seen {
    size_t count, stop;
    bal_probe_row rows[PROBES];
    double klds[PROBES][TOKENS];
} seen;

static int see(void *ctx, const bal_probe_row *row)
{
    seen *self = ctx;

    if (row->tokens)
        memcpy(self->klds[self->count], row->klds,
               row->tokens * sizeof(double));
    self->rows[self->count++] = *row;
    return self->count == self->stop;
}

static void each_probe_is_told_in_its_place(void)
{
    static const double sums[] = { 0.09378207955481754, 0.14389199802931865,
                                   0.1769382906189067, 0.021045409434775446,
                                   0.01159831360729598 };
    static const uint64_t tokens[] = { 3, 2, 3, 1, 2, 0 };
    static const uint64_t parted[] = { 3, 1, 2, 0, 2, 0 };
    BAL_OWN(bal_probes) probes = six_probes();
    BAL_OWN(bal_fingerprint) a = new_print(probes);
    BAL_OWN(bal_fingerprint) b = new_print(probes);
    bal_behaviour out;
    seen all = { 0 };

    fill(a, b);
    CHECK_OK(bal_behaviour_compare(&out, a, b, see, &all, &check_err));
    CHECK(all.count == PROBES);
    for (size_t i = 0; i < PROBES; i++) {
        const bal_probe_row *row = &all.rows[i];
        double sum = 0;
        double most = 0;

        check_row(row->probe->id);
        CHECK(row->tokens == tokens[i] && row->parted == parted[i]);
        CHECK(!strcmp(row->before, outputs_a[i]));
        CHECK(!strcmp(row->after, outputs_b[i]));
        CHECK(row->moved == (strcmp(outputs_a[i], outputs_b[i]) != 0));
        for (size_t k = 0; k < row->tokens; k++) {
            sum += all.klds[i][k];
            most = fmax(most, all.klds[i][k]);
        }
        if (!row->tokens) {
            CHECK(isnan(row->kld) && isnan(row->kld_most));
            continue;
        }
        NEAR(sum, sums[i]);
        NEAR(row->kld, sum / (double)row->tokens);
        NEAR(row->kld_most, most);
    }
    NEAR(all.rows[0].similarity, 1);
    NEAR(all.rows[1].similarity, 4.0 / 7);
    CHECK(all.rows[0].right_a == -1 && all.rows[0].right_b == -1);
    CHECK(all.rows[3].right_a == 1 && all.rows[3].right_b == 0);
    CHECK(all.rows[4].right_a == 0 && all.rows[4].right_b == 1);
}

static void who_has_seen_enough_gets_the_sums_of_that(void)
{
    BAL_OWN(bal_probes) probes = six_probes();
    BAL_OWN(bal_fingerprint) a = new_print(probes);
    BAL_OWN(bal_fingerprint) b = new_print(probes);
    bal_behaviour out;
    seen all = { .stop = 2 };

    fill(a, b);
    CHECK_OK(bal_behaviour_compare(&out, a, b, see, &all, &check_err));
    CHECK(all.count == 2 && out.total == 2);
}

static void a_model_is_as_it_is(void)
{
    BAL_OWN(bal_probes) probes = six_probes();
    BAL_OWN(bal_fingerprint) a = new_print(probes);
    BAL_OWN(bal_fingerprint) b = new_print(probes);

    fill(a, b);
    bal_behaviour all = compare(a, a);
    CHECK(all.moved == 0 && all.unsure == 0 && isnan(all.similarity));
    CHECK(all.tokens == 12);
    NEAR(all.kld, 0);
    NEAR(all.kld_high, 0);
    NEAR(all.same_top, 1);
    NEAR(all.perplexity_ratio, 1);
}

static void without_log_probabilities_they_are_not_known(void)
{
    BAL_OWN(bal_probes) probes = six_probes();
    BAL_OWN(bal_fingerprint) a = new_print(probes);
    BAL_OWN(bal_fingerprint) b = new_print(probes);

    add_text(a, 1, "x");
    add_text(b, 1, "x");
    add_text(b, 2, "only b has this");
    bal_behaviour all = compare(a, b);
    CHECK(all.total == 1 && all.tokens == 0 && all.graded == 0);
    CHECK(isnan(all.kld) && isnan(all.kld_low) && isnan(all.kld_high));
    CHECK(isnan(all.kld_p99) && isnan(all.kld_most) && isnan(all.same_top));
    CHECK(isnan(all.perplexity_ratio) && isnan(all.p_value));
    CHECK(isnan(all.kld_noise) && isnan(all.similarity));
}

/* One probe's tokens are one sample: there is no interval. */
static void one_cluster_has_no_interval(void)
{
    BAL_OWN(bal_probes) probes = six_probes();
    BAL_OWN(bal_fingerprint) a = new_print(probes);
    BAL_OWN(bal_fingerprint) b = new_print(probes);

    add_rows(a, 0, "x", rows_a[0]);
    add_rows(b, 0, "x", rows_b[0]);
    bal_behaviour all = compare(a, b);
    CHECK(all.tokens == 3 && all.kld > 0);
    CHECK(isnan(all.kld_low) && isnan(all.kld_high));
}

static void an_answer_that_came_once_has_not_moved(void)
{
    BAL_OWN(bal_probes) probes = six_probes();
    BAL_OWN(bal_fingerprint) a = new_print(probes);
    BAL_OWN(bal_fingerprint) b = new_print(probes);

    add_text(a, 0, "one");
    add_text(a, 0, "two");
    add_text(b, 0, "three");
    add_text(b, 0, "two");
    add_text(a, 1, "one");
    add_text(a, 1, "two");
    add_text(b, 1, "three");
    bal_behaviour all = compare(a, b);
    CHECK(all.total == 2 && all.moved == 1 && all.unsure == 2);
}

static void noise_is_what_both_have_against_themselves(void)
{
    BAL_OWN(bal_probes) probes = six_probes();
    BAL_OWN(bal_fingerprint) a = new_print(probes);
    BAL_OWN(bal_fingerprint) b = new_print(probes);

    fill(a, b);
    add_rows(a, 0, outputs_b[0], rows_b[0]);
    add_rows(b, 3, outputs_b[3], rows_b[3]);
    bal_behaviour all = compare(a, b);
    /* 3 tokens of probe 0, and 2 of probe 3 that are the same */
    NEAR(all.kld_noise, 0.09378207955481754 / 5);
}

static void other_probes_or_terms_are_refused(void)
{
    BAL_OWN(bal_probes) probes = six_probes();
    BAL_OWN(bal_probes)
    others = probes_of("[{\"id\":\"p0\",\"prompt\":\"0\"}]");
    BAL_OWN(bal_fingerprint) a = new_print(probes);
    BAL_OWN(bal_fingerprint) b = new_print(others);
    BAL_OWN(bal_fingerprint) c = NULL;
    bal_behaviour out;

    CHECK_RC(BAL_EINVAL,
             bal_behaviour_compare(&out, a, b, NULL, NULL, &check_err));
    CHECK_OK(
        bal_fingerprint_new(&c, probes, "{\"runner\":\"peft\"}", &check_err));
    CHECK_RC(BAL_EINVAL,
             bal_behaviour_compare(&out, a, c, NULL, NULL, &check_err));
    CHECK(strstr(check_err.text, "peft") != NULL);
}

/* Terms are an object, however it is written. */
static void terms_that_say_the_same_are_the_same(void)
{
    BAL_OWN(bal_probes) probes = six_probes();
    BAL_OWN(bal_fingerprint) a = NULL;
    BAL_OWN(bal_fingerprint) b = NULL;
    bal_behaviour out;

    CHECK_OK(bal_fingerprint_new(&a, probes, "{\"a\": 1, \"b\": \"x\"}",
                                 &check_err));
    CHECK_OK(
        bal_fingerprint_new(&b, probes, "{\"b\":\"x\",\"a\":1}", &check_err));
    CHECK_OK(bal_behaviour_compare(&out, a, b, NULL, NULL, &check_err));
    CHECK(!strcmp(bal_fingerprint_terms(a), bal_fingerprint_terms(b)));
}

static int compare_doubles(const void *a, const void *b)
{
    double one = *(const double *)a;
    double two = *(const double *)b;

    return (one > two) - (one < two);
}

enum { MANY = 250 };

static int keep_klds(void *ctx, const bal_probe_row *row)
{
    memcpy(ctx, row->klds, row->tokens * sizeof(double));
    return 0;
}

static void the_percentile_is_one_of_the_values(void)
{
    static const struct {
        size_t count, rank; /* numpy.percentile(range(count), 99, …) */
    } rows[] = { { 1, 0 },    { 99, 98 },   { 100, 98 },
                 { 101, 99 }, { 200, 197 }, { 250, 247 } };

    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        BAL_OWN(bal_probes) probes = six_probes();
        BAL_OWN(bal_fingerprint) a = new_print(probes);
        BAL_OWN(bal_fingerprint) b = new_print(probes);
        bal_said said_a[MANY];
        bal_said said_b[MANY];
        double klds[MANY];
        bal_behaviour all;

        for (size_t i = 0; i < rows[r].count; i++) {
            said_a[i] = (bal_said){ .token = "x", .logprob = -0.5 };
            said_b[i] =
                (bal_said){ .token = "x", .logprob = -0.5 - 0.001 * (double)i };
        }
        bal_answer one = { "x", said_a, rows[r].count };
        bal_answer two = { "x", said_b, rows[r].count };
        CHECK_OK(bal_fingerprint_add(a, 0, &one, &check_err));
        CHECK_OK(bal_fingerprint_add(b, 0, &two, &check_err));
        CHECK_OK(
            bal_behaviour_compare(&all, a, b, keep_klds, klds, &check_err));
        qsort(klds, rows[r].count, sizeof(*klds), compare_doubles);
        NEAR(all.kld_p99, klds[rows[r].rank]);
        CHECK(rows[r].rank + 1 == rows[r].count ||
              all.kld_p99 < klds[rows[r].rank + 1]);
    }
}

static const check_test tests[] = {
    { TEST(token_by_token_the_numbers_are_numpys) },
    { TEST(texts_are_counted_and_graded) },
    { TEST(each_probe_is_told_in_its_place) },
    { TEST(who_has_seen_enough_gets_the_sums_of_that) },
    { TEST(a_model_is_as_it_is) },
    { TEST(without_log_probabilities_they_are_not_known) },
    { TEST(one_cluster_has_no_interval) },
    { TEST(an_answer_that_came_once_has_not_moved) },
    { TEST(noise_is_what_both_have_against_themselves) },
    { TEST(other_probes_or_terms_are_refused) },
    { TEST(terms_that_say_the_same_are_the_same) },
    { TEST(the_percentile_is_one_of_the_values) },
};

CHECK_MAIN(tests)
