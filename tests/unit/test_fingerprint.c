/* Fingerprints: what is taken, how it is put in order, and that their byte form
 * gives all of it back, bit by bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probe/compare.h"
#include "probe/fingerprint_inside.h"
#include "support/bytes.h"
#include "support/check.h"
#include "support/probes.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define TERMS       "{\"runner\":\"fake\"}"

static bal_probes *three(void)
{
    return probes_of("[{\"id\":\"p0\",\"prompt\":\"0\"},"
                     "{\"id\":\"p1\",\"prompt\":\"1\"},"
                     "{\"id\":\"p2\",\"prompt\":\"2\"}]");
}

static bal_fingerprint *new_print(bal_probes *probes)
{
    bal_fingerprint *self = NULL;

    CHECK_OK(bal_fingerprint_new(&self, probes, TERMS, &check_err));
    return self;
}

static int add(bal_fingerprint *to, size_t i, const char *output,
               const bal_said *said, size_t count)
{
    bal_answer answer = { output, said, count };

    return bal_fingerprint_add(to, i, &answer, &check_err);
}

static bool same(double a, double b)
{
    return !memcmp(&a, &b, sizeof(a));
}

/* ---- what is taken ------------------------------------------------------- */

static void bad_answers_are_refused_and_leave_nothing(void)
{
    static const bal_said rows[] = {
        { .token = "x", .logprob = 2e-6 },
        { .token = "x", .logprob = (double)INFINITY },
        { .token = NULL, .logprob = -1 },
        { .token = "\xff", .logprob = -1 },
    };
    static const bal_likely high = { "y", 1 };
    BAL_OWN(bal_probes) probes = three();
    BAL_OWN(bal_fingerprint) self = new_print(probes);
    bal_said nan = { .token = "x", .logprob = (double)NAN };
    bal_said listed = { "x", -1, &high, 1 };
    char *large = calloc(1, BAL_ANSWER_MAX + 2);
    bal_said *many = calloc(BAL_SAID_MAX + 1, sizeof(*many));

    CHECK(large && many);
    memset(large, 'x', BAL_ANSWER_MAX + 1);
    CHECK_RC(BAL_EINVAL, add(self, 3, "x", NULL, 0));
    CHECK_RC(BAL_EINVAL, add(self, 0, NULL, NULL, 0));
    CHECK_RC(BAL_EINVAL, add(self, 0, "\xc3", NULL, 0));
    CHECK_RC(BAL_EINVAL, add(self, 0, large, NULL, 0));
    CHECK(strstr(check_err.text, "p0") != NULL);
    CHECK_RC(BAL_EINVAL, add(self, 0, "x", many, BAL_SAID_MAX + 1));
    for (size_t i = 0; i < COUNT(rows); i++)
        CHECK_RC(BAL_EINVAL, add(self, 0, "x", &rows[i], 1));
    CHECK_RC(BAL_EINVAL, add(self, 0, "x", &nan, 1));
    CHECK_RC(BAL_EINVAL, add(self, 0, "x", &listed, 1));
    CHECK(bal_fingerprint_count(self) == 0);
    CHECK(!bal_fingerprint_at(self, 0) && !bal_fingerprint_at(self, 9));
    large[BAL_ANSWER_MAX] = '\0';
    CHECK_OK(add(self, 0, large, NULL, 0));
    CHECK(bal_fingerprint_count(self) == 1);
    free(large);
    free(many);
}

static void terms_and_facts_are_objects(void)
{
    static const char *const bad[] = {
        "", "[]", "1", "{", "{\"a\":1,\"a\":2}", "{\"a\":0.5}", NULL,
    };
    BAL_OWN(bal_probes) probes = three();
    BAL_OWN(bal_fingerprint) self = NULL;

    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK_RC(BAL_EINVAL,
                 bal_fingerprint_new(&self, probes, bad[i], &check_err));
    CHECK_OK(bal_fingerprint_new(&self, probes, TERMS, &check_err));
    CHECK(!strcmp(bal_fingerprint_facts(self), "{}"));
    CHECK_RC(BAL_EINVAL, bal_fingerprint_about(self, "[]", &check_err));
    CHECK_RC(BAL_EINVAL, bal_fingerprint_about(self, "{}{}", &check_err));
    CHECK_OK(bal_fingerprint_about(
        self, " {\"v\" : 0.50,\n \"of\": [1, \"a b\"]} ", &check_err));
    CHECK(!strcmp(bal_fingerprint_facts(self),
                  "{\"v\":0.50,\"of\":[1,\"a b\"]}"));
    CHECK(bal_fingerprint_probes(self) == probes);
}

static void lists_are_put_in_order(void)
{
    static const bal_likely top[] = {
        { "c", -3 },     { "b", -2 }, { "same", -2 },    { "a", -2 },
        { "twice", -9 }, { "x", -4 }, { "twice", -0.5 }, { "sure", 1e-7 },
    };
    static const struct {
        const char *token;
        double logprob;
    } want[] = {
        { "sure", 0 },  { "twice", -0.5 }, { "a", -2 },      { "b", -2 },
        { "same", -2 }, { "c", -3 },       { "came", -3.5 }, { "x", -4 },
    };
    BAL_OWN(bal_probes) probes = three();
    BAL_OWN(bal_fingerprint) self = new_print(probes);
    bal_said said = { "came", -3.5, top, COUNT(top) };

    CHECK_OK(add(self, 0, "x", &said, 1));
    const bal_said *got = &bal_fingerprint_at(self, 0)->tokens[0];
    CHECK(!strcmp(got->token, "came") && same(got->logprob, -3.5));
    CHECK(got->top_count == COUNT(want));
    for (size_t i = 0; i < COUNT(want); i++) {
        check_row(want[i].token);
        CHECK(!strcmp(got->top[i].token, want[i].token));
        CHECK(same(got->top[i].logprob, want[i].logprob));
    }
}

static void what_came_is_kept_beside_the_likeliest(void)
{
    static char names[200][8];
    static bal_likely top[200];
    BAL_OWN(bal_probes) probes = three();
    BAL_OWN(bal_fingerprint) self = new_print(probes);

    for (size_t i = 0; i < COUNT(top); i++) {
        snprintf(names[i], sizeof(names[i]), "t%zu", i);
        top[i] = (bal_likely){ names[i], -1 - (double)i };
    }
    const struct {
        const char *token;
        double logprob;
        size_t count, place;
    } rows[] = {
        { "t63", -64, 64, 63 },   { "t64", -65, 65, 64 },
        { "t199", -200, 65, 64 }, { "none", -900, 65, 64 },
        { "first", -0.5, 64, 0 },
    };
    bal_said said[COUNT(rows)];
    for (size_t i = 0; i < COUNT(rows); i++)
        said[i] = (bal_said){ rows[i].token, rows[i].logprob, top, 200 };
    CHECK_OK(add(self, 0, "x", said, COUNT(rows)));
    for (size_t i = 0; i < COUNT(rows); i++) {
        const bal_said *got = &bal_fingerprint_at(self, 0)->tokens[i];
        check_row(rows[i].token);
        CHECK(got->top_count == rows[i].count);
        CHECK(got->top[rows[i].place].token == got->token);
        CHECK(!strcmp(got->token, rows[i].token));
        CHECK(same(got->logprob, rows[i].logprob));
    }
}

static void other_texts_are_kept_64_of_them(void)
{
    BAL_OWN(bal_probes) probes = three();
    BAL_OWN(bal_fingerprint) self = new_print(probes);
    uint64_t times;

    for (size_t i = 0; i < 300; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%zu", i % 100);
        CHECK_OK(add(self, 1, text, NULL, 0));
    }
    CHECK(bal_fingerprint_distinct(self, 1) == 64);
    CHECK(bal_fingerprint_distinct(self, 0) == 0);
    CHECK(bal_fingerprint_count(self) == 1);
    CHECK(!strcmp(bal_fingerprint_text(self, 1, 63, &times), "63"));
    CHECK(times == 3 && self->slots[1].more == 3 * 36);
}

static void asked_again_the_difference_is_noise(void)
{
    static const bal_said first[] = { { .token = "a", .logprob = -0.5 },
                                      { .token = "b", .logprob = -1 },
                                      { .token = "c", .logprob = -1 } };
    static const bal_said again[] = { { .token = "a", .logprob = -0.75 },
                                      { .token = "x", .logprob = -0.1 },
                                      { .token = "c", .logprob = -4 } };
    BAL_OWN(bal_probes) probes = three();
    BAL_OWN(bal_fingerprint) self = new_print(probes);
    bal_likely one = { "a", -0.5 };
    bal_likely two = { "a", -0.75 };
    bal_said said_one = { "a", -0.5, &one, 1 };
    bal_said said_two = { "a", -0.75, &two, 1 };
    uint64_t tokens;

    CHECK_OK(add(self, 0, "abc", first, 3));
    bal_fingerprint_noise(self, &tokens);
    CHECK(tokens == 0);
    CHECK_OK(add(self, 0, "axc", again, 3));
    double sum = bal_fingerprint_noise(self, &tokens);
    CHECK(tokens == 2);
    CHECK(fabs(sum - bal_kld(&said_one, &said_two)) < 1e-15 && sum > 0.01);
    CHECK_OK(add(self, 0, "no tokens", NULL, 0));
    bal_fingerprint_noise(self, &tokens);
    CHECK(tokens == 2);
}

/* ---- the byte form ------------------------------------------------------- */

static bal_fingerprint *reread(const bal_fingerprint *self, bal_probes *probes,
                               size_t *size)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    BAL_LOCAL(bal_buf) twice = { 0 };
    bal_fingerprint *back = NULL;

    CHECK_OK(bal_fingerprint_write(&body, self, &check_err));
    CHECK_OK(bal_fingerprint_parse(&back, probes,
                                   (bal_bytes){ body.data, body.len },
                                   bal_fingerprint_terms(self), &check_err));
    CHECK_OK(bal_fingerprint_write(&twice, back, &check_err));
    CHECK(twice.len == body.len && !memcmp(twice.data, body.data, body.len));
    *size = body.len;
    return back;
}

static void check_answers(const bal_answer *a, const bal_answer *b)
{
    CHECK(!strcmp(a->output, b->output));
    CHECK(a->token_count == b->token_count);
    for (size_t i = 0; i < a->token_count; i++) {
        const bal_said *one = &a->tokens[i];
        const bal_said *two = &b->tokens[i];

        CHECK(!strcmp(one->token, two->token));
        CHECK(same(one->logprob, two->logprob));
        CHECK(one->top_count == two->top_count);
        for (size_t k = 0; k < one->top_count; k++) {
            CHECK(!strcmp(one->top[k].token, two->top[k].token));
            CHECK(same(one->top[k].logprob, two->top[k].logprob));
        }
    }
}

static void check_same(const bal_fingerprint *a, const bal_fingerprint *b)
{
    uint64_t tokens_a;
    uint64_t tokens_b;

    CHECK(bal_fingerprint_count(a) == bal_fingerprint_count(b));
    CHECK(!strcmp(bal_fingerprint_terms(a), bal_fingerprint_terms(b)));
    CHECK(!strcmp(bal_fingerprint_facts(a), bal_fingerprint_facts(b)));
    CHECK(same(bal_fingerprint_noise(a, &tokens_a),
               bal_fingerprint_noise(b, &tokens_b)));
    CHECK(tokens_a == tokens_b);
    for (size_t i = 0; i < 3; i++) {
        const bal_answer *first = bal_fingerprint_at(a, i);

        CHECK(!first == !bal_fingerprint_at(b, i));
        CHECK(bal_fingerprint_distinct(a, i) == bal_fingerprint_distinct(b, i));
        CHECK(a->slots[i].more == b->slots[i].more);
        if (first)
            check_answers(first, bal_fingerprint_at(b, i));
    }
}

static void all_of_it_comes_back(void)
{
    static const bal_likely top[] = {
        { "", -0.1 },
        { "\n\"\\\x01", -2.345678901234567 },
        { "\xf0\x9f\x98\x80", -5e-324 },
        { "z", -(double)INFINITY },
        { "y", -1.7976931348623157e308 },
    };
    static const double scales[] = { 1, 0.1 };
    BAL_OWN(bal_probes) probes = three();

    for (size_t s = 0; s < COUNT(scales); s++) {
        BAL_OWN(bal_fingerprint) self = new_print(probes);
        BAL_OWN(bal_fingerprint) back = NULL;
        bal_likely floats[] = { { "f", -0.5 * scales[s] }, { "g", -1.25 } };
        bal_said said[] = { { "f", -0.5 * scales[s], floats, 2 },
                            { "z", -(double)INFINITY, s ? top : floats,
                              s ? 5 : 2 } };
        size_t size;

        CHECK_OK(bal_fingerprint_about(self, "{\"model\":\"m\"}", &check_err));
        CHECK_OK(add(self, 2, "line\nbreak \xe2\x82\xac", said, 2));
        CHECK_OK(add(self, 2, "another", said, 1));
        CHECK_OK(add(self, 0, "", NULL, 0));
        back = reread(self, probes, &size);
        check_same(self, back);
        /* and it takes more, as the first does */
        CHECK_OK(add(back, 2, "third", said, 2));
        CHECK(bal_fingerprint_distinct(back, 2) == 3);
        CHECK_OK(add(back, 1, "new", said, 2));
        CHECK(bal_fingerprint_count(back) == 3);
    }
}

static void nothing_at_all_comes_back(void)
{
    BAL_OWN(bal_probes) probes = three();
    BAL_OWN(bal_fingerprint) self = new_print(probes);
    BAL_OWN(bal_fingerprint) back = NULL;
    size_t size;

    back = reread(self, probes, &size);
    check_same(self, back);
    CHECK(bal_fingerprint_count(back) == 0);
}

/* Lists as engines give them: twenty of a vocabulary, floats, tokens of some
 * letters. Incompressible they would be 20 * (4 + 5) bytes. */
static void a_token_takes_some_hundred_bytes(void)
{
    enum { TOKENS = 2000, TOP = 20, VOCABULARY = 5000 };
    static char names[VOCABULARY][12];
    static bal_likely top[TOKENS][TOP];
    static bal_said said[TOKENS];
    static const double scales[] = { 1, 1 + 0x1p-40 };
    static const size_t most[] = { 150, 250 };
    uint32_t draws[TOP * 2];

    bytes_seed(5);
    for (size_t i = 0; i < VOCABULARY; i++) {
        bytes_random((uint8_t *)draws, sizeof(draws));
        snprintf(names[i], sizeof(names[i]), " %.*s%zu", (int)(draws[0] % 4),
                 "abcd", i);
    }
    for (size_t s = 0; s < COUNT(scales); s++) {
        BAL_OWN(bal_probes) probes = three();
        BAL_OWN(bal_fingerprint) self = new_print(probes);
        BAL_OWN(bal_fingerprint) back = NULL;
        size_t size;

        for (size_t i = 0; i < TOKENS; i++) {
            double logprob = 0;
            bytes_random((uint8_t *)draws, sizeof(draws));
            for (size_t k = 0; k < TOP; k++) {
                double step = (double)draws[k] * 0x1p-32;
                logprob = (double)(float)(logprob - step) * scales[s];
                top[i][k].token = names[draws[k + TOP] % VOCABULARY];
                top[i][k].logprob = logprob;
            }
            said[i] =
                (bal_said){ top[i][0].token, top[i][0].logprob, top[i], TOP };
        }
        CHECK_OK(add(self, 0, "x", said, TOKENS));
        back = reread(self, probes, &size);
        check_same(self, back);
        CHECK(size / TOKENS < most[s]);
    }
}

static const check_test tests[] = {
    { TEST(bad_answers_are_refused_and_leave_nothing) },
    { TEST(terms_and_facts_are_objects) },
    { TEST(lists_are_put_in_order) },
    { TEST(what_came_is_kept_beside_the_likeliest) },
    { TEST(other_texts_are_kept_64_of_them) },
    { TEST(asked_again_the_difference_is_noise) },
    { TEST(all_of_it_comes_back) },
    { TEST(nothing_at_all_comes_back) },
    { TEST(a_token_takes_some_hundred_bytes) },
};

CHECK_MAIN(tests)
