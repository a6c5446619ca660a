/* Ranks by counting are those that sorting gives: qsort of (value, index) is
 * the oracle, over values of every dtype with ties, zeros of either sign, NaNs,
 * infinities and what F32 cannot hold. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/arith.h"
#include "support/check.h"
#include "support/strange.h"

enum { MOST = 3000, PIECE = 97 };
#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

typedef struct element {
    double value; /* or magnitude; a NaN is infinity and more */
    size_t index;
    bool nan;
} element;

static int by_value(const void *a, const void *b)
{
    const element *left = a;
    const element *right = b;

    if (left->nan != right->nan)
        return left->nan ? 1 : -1;
    if (!left->nan && left->value != right->value)
        return left->value < right->value ? -1 : 1;
    return left->index < right->index ? -1 : 1;
}

/* Descending, then read backwards: equal ones by falling index. */
static int by_value_falling(const void *a, const void *b)
{
    const element *left = a;
    const element *right = b;
    element x = { left->value, right->index, left->nan };
    element y = { right->value, left->index, right->nan };

    return by_value(&x, &y);
}

typedef struct wanted {
    size_t n, low, high;
    bool descending, by_sign;
} wanted;

static void sort(element *out, const double *x, const wanted *want)
{
    for (size_t i = 0; i < want->n; i++) {
        double value = want->by_sign ? x[i] : fabs(x[i]);
        out[i] = (element){ value, i, isnan(x[i]) != 0 };
    }
    qsort(out, want->n, sizeof(*out),
          want->descending ? by_value_falling : by_value);
}

static size_t rank(bal_ranked *out, const double *x, const wanted *want)
{
    BAL_OWN(bal_ranking) ranking = NULL;
    size_t passes = 0;
    bool more = true;

    /* All there are may be asked for by any number above. */
    uint64_t high = want->high < want->n ? want->high : UINT64_MAX;
    CHECK_OK(bal_ranking_new(&ranking, want->n, want->low, high,
                             want->descending, &check_err));
    if (want->by_sign)
        bal_ranking_ask(ranking, BAL_RANK_BY_SIGN);
    for (; more; passes++) {
        for (size_t at = 0; at < want->n; at += PIECE)
            bal_ranking_add(ranking, x + at,
                            want->n - at < PIECE ? want->n - at : PIECE);
        more = bal_ranking_next(ranking);
        CHECK(passes < 6);
    }
    bal_ranking_end(ranking, out);
    return passes;
}

static bool equal(double got, const element *want)
{
    return want->nan ? isnan(got) : got == want->value;
}

/* Gives how many passes it took. */
static size_t check_ranks(const double *x, const wanted *want)
{
    static element order[MOST];
    static double keep[MOST];
    bal_ranked ranked;
    size_t passes = rank(&ranked, x, want);

    sort(order, x, want);
    CHECK(ranked.none == (want->low >= want->high));
    for (size_t at = 0; at < want->n; at += PIECE)
        bal_ranked_keep(&ranked, at, x + at, keep + at,
                        want->n - at < PIECE ? want->n - at : PIECE);
    for (size_t i = 0; i < want->n; i++) {
        bool in = i >= want->low && i < want->high;
        CHECK(keep[order[i].index] == (in ? 1 : 0));
    }
    if (!ranked.none) {
        CHECK(equal(ranked.least, &order[want->low]));
        CHECK(equal(ranked.most, &order[want->high - 1]));
    }
    return passes;
}

/* ---- values -------------------------------------------------------------- */

static void bf16(double *x, size_t n)
{
    bal_arith arith = { true, BAL_BF16 };

    bal_arith_round(&arith, x, n);
}

static void f32(double *x, size_t n)
{
    bal_arith arith = { true, BAL_F32 };

    bal_arith_round(&arith, x, n);
}

static void as_they_are(double *x, size_t n)
{
    (void)x;
    (void)n;
}

/* 0 and -0, and 1 and -1. */
static void few(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = copysign(fabs(x[i]) > 0.5 ? 1 : 0, x[i]);
}

static void odd(double *x, size_t n)
{
    static const double values[] = { (double)NAN,
                                     -(double)NAN,
                                     (double)INFINITY,
                                     -(double)INFINITY,
                                     0x1p-149,
                                     -0x1p-149,
                                     0x1p-150,
                                     -0x1p-1074,
                                     0x1.8p128,
                                     -0x1p128,
                                     0x1.fffffep127,
                                     0x1.fffffffffffffp1023,
                                     0.0,
                                     -0.0,
                                     1,
                                     0x1.0000000000001p0 };

    for (size_t i = 0; i < n; i++)
        x[i] = values[(size_t)(fabs(x[i]) * 1e9) % COUNT(values)];
}

/* Any bits at all. */
static void any(double *x, size_t n)
{
    uint64_t state = (uint64_t)n + 1;

    for (size_t i = 0; i < n; i++) {
        uint64_t bits = strange_bits(&state);
        memcpy(&x[i], &bits, sizeof(bits));
    }
}

/* Apart from each other in the last bits of a double alone. */
static void close_by(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = copysign(1 + floor(fabs(x[i]) * 999) * 0x1p-52, x[i]);
}

static const struct {
    const char *name;
    void (*shape)(double *x, size_t n);
    size_t passes; /* at most, without the one for ties */
} kinds[] = {
    { "bf16", bf16, 1 },      { "f32", f32, 2 }, { "f64", as_they_are, 4 },
    { "few", few, 1 },        { "odd", odd, 5 }, { "any", any, 5 },
    { "close", close_by, 4 },
};

static void values(double *x, size_t n, uint64_t seed)
{
    uint64_t state = seed;

    for (size_t i = 0; i < n; i++) {
        double unit = (double)(strange_bits(&state) >> 11) * 0x1p-53;
        x[i] = unit * (strange_bits(&state) & 1 ? 1 : -1);
    }
}

static void ranks_are_those_of_a_sort(void)
{
    static const size_t sizes[] = { 1, 2, 7, 100, 1000, MOST };
    static double x[MOST];

    for (size_t i = 0; i < COUNT(kinds) * COUNT(sizes) * 4 * 12; i++) {
        size_t kind = i % COUNT(kinds);
        uint64_t state = i;
        wanted want = { .n = sizes[i / COUNT(kinds) % COUNT(sizes)],
                        .descending = i / 7 & 1,
                        .by_sign = i / 14 & 1 };
        want.high = strange_bits(&state) % (want.n + 1);
        want.low = strange_bits(&state) % (want.high + 1);
        want.high = strange_bits(&state) % 3 ? want.high : want.n;
        check_row(kinds[kind].name);
        values(x, want.n, i);
        kinds[kind].shape(x, want.n);
        CHECK(check_ranks(x, &want) <= kinds[kind].passes + 1);
    }
}

static void a_cut_between_different_values_needs_no_pass_for_ties(void)
{
    static double x[MOST];
    static const size_t bits[] = { 7, 23, 52 };
    static const size_t passes[] = { 1, 2, 4 };

    for (size_t i = 0; i < COUNT(bits); i++) {
        size_t n = i ? MOST : 100;
        for (size_t k = 0; k < n; k++)
            x[k] = 1 + (double)(n - k) * ldexp(1, -(int)bits[i]);
        wanted want = { n, n / 3, n / 3 * 2, false, false };
        CHECK(check_ranks(x, &want) == passes[i]);
    }
}

static void equal_ones_at_the_cut_keep_the_lower_index(void)
{
    static const double x[] = { 1, -2, 2, -2, 2, 3 };
    bal_ranked ranked;
    wanted largest = { 6, 3, 6, true, false };
    double keep[6];

    rank(&ranked, x, &largest);
    bal_ranked_keep(&ranked, 0, x, keep, 6);
    CHECK(keep[5] == 1 && keep[1] == 1 && keep[2] == 1);
    CHECK(keep[0] == 0 && keep[3] == 0 && keep[4] == 0);
}

static void nothing_wanted_keeps_nothing_in_one_pass(void)
{
    static const double x[] = { 1, -2, (double)NAN };
    bal_ranked ranked;
    wanted nothing = { 3, 2, 2, false, false };
    double keep[3] = { 1, 1, 1 };

    CHECK(rank(&ranked, x, &nothing) == 1);
    bal_ranked_keep(&ranked, 0, x, keep, 3);
    CHECK(keep[0] == 0 && keep[1] == 0 && keep[2] == 0);
}

static const check_test tests[] = {
    { TEST(ranks_are_those_of_a_sort) },
    { TEST(a_cut_between_different_values_needs_no_pass_for_ties) },
    { TEST(equal_ones_at_the_cut_keep_the_lower_index) },
    { TEST(nothing_wanted_keeps_nothing_in_one_pass) },
};

CHECK_MAIN(tests)
