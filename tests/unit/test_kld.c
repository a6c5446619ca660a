/* Divergence of two lists of likely tokens. Expected values: the classes of
 * the two as arrays of numpy, scipy.special.rel_entr of these summed up;
 * scipy.stats.entropy says the same. "top N of 200" are the N likeliest of a
 * softmax of 200 normal logits, and of the same with noise. */
#include <math.h>

#include "probe/compare.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

enum { TOP = 20 };

typedef struct kld_row {
    const char *name;
    bal_likely a[TOP], b[TOP];
    double kld;
} kld_row;

static const kld_row rows[] = {
    { "the same list",
      { { "a", -0.5 }, { "b", -1.5 } },
      { { "a", -0.5 }, { "b", -1.5 } },
      0.0 },
    { "two tokens of three",
      { { "x", -0.25 }, { "y", -2.0 } },
      { { "y", -1.5 }, { "x", -0.75 }, { "z", -2.5 } },
      0.21303605025374953 },
    { "nothing in common", { { "x", -0.1 } }, { { "y", -0.1 } }, 0.0 },
    { "all of it in one",
      { { "x", 0.0 } },
      { { "x", -3.0 }, { "y", -0.05 } },
      3.0 },
    { "b sure, a not",
      { { "x", -3.0 }, { "y", -0.1 } },
      { { "x", 0.0 }, { "z", -40.0 } },
      12.974860488605096 },
    { "b sure of all", { { "x", -0.5 } }, { { "x", 0.0 } }, 4.784368582210642 },
    { "listed by b with nothing",
      { { "x", -0.7 }, { "y", -0.9 } },
      { { "x", -0.7 }, { "y", -(double)INFINITY } },
      0.0 },
    { "listed by a with nothing",
      { { "x", -0.1 }, { "y", -(double)INFINITY } },
      { { "x", -0.8 }, { "y", -0.9 } },
      0.5939003601340149 },
    { "very near",
      { { "x", -0.5 }, { "y", -1.0 } },
      { { "x", -0.500001 }, { "y", -0.999999 } },
      1.6000233387029506e-12 },
    { "top 5 of 200",
      { { "t103", -1.1562626305887322 },
        { "t49", -1.8892828710196126 },
        { "t158", -2.92835986364559 },
        { "t79", -3.3199443086784006 },
        { "t199", -3.345613562052728 } },
      { { "t103", -1.2007345934247553 },
        { "t49", -2.3505762008466897 },
        { "t158", -2.737036498183784 },
        { "t79", -3.209001880331379 },
        { "t162", -3.3617785736490395 } },
      0.018494448777693823 },
    { "top 20 of 200",
      { { "t16", -0.7378657862888716 },  { "t84", -2.6240033790764388 },
        { "t116", -2.7484541336274484 }, { "t78", -2.7650461359493486 },
        { "t181", -3.104750605427844 },  { "t182", -3.5665652087171598 },
        { "t18", -3.5860549204386984 },  { "t44", -3.8537494474898963 },
        { "t94", -4.1752828630553545 },  { "t103", -4.19113700754618 },
        { "t10", -4.305517585097308 },   { "t12", -4.31862553359504 },
        { "t115", -4.476968383275002 },  { "t178", -4.530880963035883 },
        { "t167", -4.8402415207052165 }, { "t64", -5.031599620695996 },
        { "t25", -5.131971861880699 },   { "t195", -5.135817169487277 },
        { "t98", -5.227553057060712 },   { "t3", -5.261116798590989 } },
      { { "t16", -0.744349371363108 },   { "t84", -2.701640207812087 },
        { "t78", -2.7765728846929276 },  { "t181", -3.1618571857465803 },
        { "t116", -3.2247212947158186 }, { "t18", -3.350538953900691 },
        { "t44", -3.511328076915097 },   { "t182", -3.7353754009268574 },
        { "t10", -4.005448919679696 },   { "t103", -4.012006979138542 },
        { "t178", -4.081445305996509 },  { "t94", -4.257837659554848 },
        { "t64", -4.329144224955487 },   { "t12", -4.468032137527027 },
        { "t115", -4.54847853473973 },   { "t167", -4.77277792868693 },
        { "t168", -4.822557338005587 },  { "t98", -4.9830758033697045 },
        { "t25", -5.113150899395899 },   { "t23", -5.130428788118317 } },
      0.013983475675589958 },
};

static bal_said said(const bal_likely *top)
{
    size_t count = 0;

    while (count < TOP && top[count].token)
        count++;
    return (bal_said){ top[0].token, top[0].logprob, top, count };
}

static void the_divergence_is_that_of_the_classes(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        bal_said a = said(rows[i].a);
        bal_said b = said(rows[i].b);
        double got = bal_kld(&a, &b);
        check_row(rows[i].name);
        CHECK(got >= 0);
        CHECK(fabs(got - rows[i].kld) <= 1e-9 * fmax(1, rows[i].kld));
    }
}

static void nothing_listed_is_not_known(void)
{
    bal_said some = said(rows[0].a);
    bal_said none = { .token = "a", .logprob = -1 };

    CHECK(isnan(bal_kld(&some, &none)));
    CHECK(isnan(bal_kld(&none, &some)));
    CHECK(isnan(bal_kld(&none, &none)));
}

/* Some servers write -9999 where they mean that they do not know. */
static void what_no_double_can_tell_from_nothing_is_rest(void)
{
    static const double nothings[] = { -(double)INFINITY, -9999, -1e300 };

    for (size_t i = 0; i < COUNT(nothings); i++) {
        bal_likely a[] = { { "x", -0.7 }, { "y", -0.9 } };
        bal_likely b[] = { { "x", -0.7 }, { "y", nothings[i] } };
        bal_said of_a = { "x", -0.7, a, 2 };
        bal_said of_b = { "x", -0.7, b, 2 };
        CHECK(bal_kld(&of_a, &of_b) < 1e-12);
        CHECK(isfinite(bal_kld(&of_b, &of_a)));
    }
}

static void probabilities_of_more_than_one_in_all_are_borne(void)
{
    bal_likely a[] = { { "x", 0 }, { "y", 0 } };
    bal_likely b[] = { { "x", -0.5 }, { "y", 0 } };
    bal_said of_a = { "x", 0, a, 2 };
    bal_said of_b = { "y", 0, b, 2 };

    CHECK(fabs(bal_kld(&of_a, &of_b) - 0.5) < 1e-12);
    CHECK(isfinite(bal_kld(&of_b, &of_a)));
}

static const check_test tests[] = {
    { TEST(the_divergence_is_that_of_the_classes) },
    { TEST(nothing_listed_is_not_known) },
    { TEST(what_no_double_can_tell_from_nothing_is_rest) },
    { TEST(probabilities_of_more_than_one_in_all_are_borne) },
};

CHECK_MAIN(tests)
