/* Maps of low rank: singular values by numpy (LAPACK), and what must hold of
 * any nearest map of lower rank, by multiplying out what is small here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/dense.h"
#include "merge/lowrank.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
enum { MOST = 16 };

/* Factors of small integers, and numpy.linalg.svd of their product. */
static const double tall_b[] = { 8, 2, 3,  8, 1, 5,  6, -5, -8, -4, -4,
                                 7, 8, -9, 0, 6, -7, 6, -7, -1, 6 };
static const double tall_a[] = { -4, -3, -4, 4, -5, 9, -1, 0,
                                 0,  2,  1,  0, 9,  6, 6 };
static const double tall_s[] = { 0x1.a9a3568c27035p+7, 0x1.2e185f624e90cp+7,
                                 0x1.09693599cce43p+6 };
static const double wide_b[] = { 4, 2, -3, 9, -1, -5, 7, -6, 7, 2, -7, -9 };
static const double wide_a[] = { -1, -9, -7, 0,  9, -1, 6,  8,  6,
                                 2,  -1, 0,  -4, 0, -2, -5, 9,  -9,
                                 -8, -6, 9,  4,  7, -6, 4,  -2, 0 };
static const double wide_s[] = { 0x1.02ed98220d25fp+8, 0x1.a064afce27169p+7,
                                 0x1.070a583410fd9p+6 };
static const double over_b[] = { -9, 2, 6, 3, -7, 1, -4, 9, 7,
                                 -6, 0, 8, 7, 4,  3, -9, 5, -1 };
static const double over_a[] = { -8, -5, 1,  4, 0,  2,  7,  4,  -3, 3,  2,  -7,
                                 -8, 3,  -2, 2, -3, -5, -7, -2, 6,  -2, -2, 1 };
static const double over_s[] = { 0x1.455aa116b40f2p+7, 0x1.ca60f749bb811p+6,
                                 0x1.dd0dd27c8e5b3p+3 };
static const double one_b[] = { 9, -2 };
static const double one_a[] = { 2, -1, 2, -1, 3, 1, 3, 9, -7, 1, -1, -3 };
static const double one_s[] = { 0x1.bc452b0b76f15p+5 };

static const struct {
    const char *name;
    size_t m, n, r;
    const double *b, *a, *sigma;
    size_t count;
} cases[] = {
    { "tall", 7, 5, 3, tall_b, tall_a, tall_s, COUNT(tall_s) },
    { "wide", 4, 9, 3, wide_b, wide_a, wide_s, COUNT(wide_s) },
    { "more terms than rows", 3, 4, 6, over_b, over_a, over_s, COUNT(over_s) },
    { "one row", 1, 6, 2, one_b, one_a, one_s, COUNT(one_s) },
};

static void fill(bal_lowrank *out, size_t i)
{
    CHECK_OK(
        bal_lowrank_init(out, cases[i].m, cases[i].n, cases[i].r, &check_err));
    memcpy(out->b, cases[i].b, out->r * out->m * sizeof(double));
    memcpy(out->a, cases[i].a, out->r * out->n * sizeof(double));
}

/* The map itself, by columns. */
static void multiply_out(double *to, const bal_lowrank *map)
{
    memset(to, 0, map->m * map->n * sizeof(*to));
    for (size_t k = 0; k < map->r; k++) {
        for (size_t j = 0; j < map->n; j++) {
            for (size_t i = 0; i < map->m; i++)
                to[j * map->m + i] +=
                    map->b[k * map->m + i] * map->a[k * map->n + j];
        }
    }
}

static double distance(const bal_lowrank *one, const bal_lowrank *two)
{
    double x[MOST * MOST];
    double y[MOST * MOST];
    double sum = 0;

    multiply_out(x, one);
    multiply_out(y, two);
    for (size_t i = 0; i < one->m * one->n; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sqrt(sum);
}

static bool near(double got, double want, double size)
{
    return fabs(got - want) <= 1e-14 * size;
}

static void singular_values_are_those_of_lapack(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        BAL_LOCAL(bal_lowrank) map = { 0 };
        BAL_LOCAL(bal_spectrum) spectrum = { 0 };
        double largest = cases[i].sigma[0];

        check_row(cases[i].name);
        fill(&map, i);
        CHECK_OK(bal_spectrum_init(&spectrum, &map, &check_err));
        CHECK(!map.b && spectrum.count == cases[i].count);
        for (size_t k = 0; k < spectrum.count; k++)
            CHECK(near(spectrum.sigma[k], cases[i].sigma[k], largest));
    }
}

/* Eckart and Young: no map of that rank is nearer than the root of the squares
 * of the values left out. */
static void a_cut_is_as_near_as_can_be(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        BAL_LOCAL(bal_lowrank) map = { 0 };
        BAL_LOCAL(bal_lowrank) work = { 0 };
        BAL_LOCAL(bal_spectrum) spectrum = { 0 };

        check_row(cases[i].name);
        fill(&map, i);
        fill(&work, i);
        CHECK_OK(bal_spectrum_init(&spectrum, &work, &check_err));
        for (size_t rank = 0; rank <= cases[i].count + 1; rank++) {
            BAL_LOCAL(bal_lowrank) cut = { 0 };
            double rest = 0;

            for (size_t k = rank; k < cases[i].count; k++)
                rest += cases[i].sigma[k] * cases[i].sigma[k];
            CHECK_OK(bal_spectrum_cut(&cut, &spectrum, rank, &check_err));
            CHECK(cut.r == rank);
            CHECK(near(distance(&map, &cut), sqrt(rest), cases[i].sigma[0]));
        }
    }
}

static void energy_is_the_share_of_squares_that_is_kept(void)
{
    BAL_LOCAL(bal_lowrank) map = { 0 };
    BAL_LOCAL(bal_spectrum) spectrum = { 0 };

    /* Values of 8, 4, 2: squares of 64, 16, 4. */
    CHECK_OK(bal_lowrank_init(&map, 4, 3, 3, &check_err));
    for (size_t k = 0; k < 3; k++) {
        map.b[k * 4 + k] = 1;
        map.a[k * 3 + 2 - k] = 8 >> k;
    }
    CHECK_OK(bal_spectrum_init(&spectrum, &map, &check_err));
    CHECK(bal_spectrum_norm(&spectrum) == sqrt(84));
    CHECK(bal_spectrum_rank(&spectrum, 0) == 0);
    CHECK(bal_spectrum_rank(&spectrum, 64.0 / 84) == 1);
    CHECK(bal_spectrum_rank(&spectrum, 0.77) == 2);
    CHECK(bal_spectrum_rank(&spectrum, 80.0 / 84) == 2);
    CHECK(bal_spectrum_rank(&spectrum, 1) == 3);
}

/* The second half of the terms is the first one, times -1 and, so that no two
 * columns are equal, times 3 on one side and a third on the other. */
static void terms_that_cancel_leave_exactly_nothing(void)
{
    BAL_LOCAL(bal_lowrank) map = { 0 };
    BAL_LOCAL(bal_lowrank) cut = { 0 };
    BAL_LOCAL(bal_spectrum) spectrum = { 0 };

    CHECK_OK(bal_lowrank_init(&map, 7, 5, 6, &check_err));
    for (size_t i = 0; i < 21; i++) {
        map.b[i] = tall_b[i];
        map.b[21 + i] = -tall_b[i] * 3;
    }
    for (size_t i = 0; i < 15; i++) {
        map.a[i] = tall_a[i] * 1e-3;
        map.a[15 + i] = tall_a[i] * 1e-3 / 3;
    }
    CHECK_OK(bal_spectrum_init(&spectrum, &map, &check_err));
    CHECK(spectrum.count == 0 && bal_spectrum_norm(&spectrum) == 0);
    CHECK_OK(bal_spectrum_cut(&cut, &spectrum, 2, &check_err));
    for (size_t i = 0; i < 14; i++)
        CHECK(cut.b[i] == 0);
    for (size_t i = 0; i < 10; i++)
        CHECK(cut.a[i] == 0);
}

/* A term is as large as its product, however that is shared out: neither of
 * these drowns in the other's rounding. */
static void how_a_term_is_shared_out_does_not_matter(void)
{
    BAL_LOCAL(bal_lowrank) map = { 0 };
    BAL_LOCAL(bal_spectrum) spectrum = { 0 };

    CHECK_OK(bal_lowrank_init(&map, 2, 2, 2, &check_err));
    map.b[0] = 1e30;
    map.a[0] = 3e-30;
    map.b[3] = 1e-30;
    map.a[3] = 2e30;
    CHECK_OK(bal_spectrum_init(&spectrum, &map, &check_err));
    CHECK(spectrum.count == 2);
    CHECK(near(spectrum.sigma[0], 3, 3) && near(spectrum.sigma[1], 2, 3));
}

static void a_factor_that_is_not_finite_is_refused(void)
{
    static const double bad[] = { (double)NAN, (double)INFINITY, 1e300 };

    for (size_t i = 0; i < COUNT(bad); i++) {
        BAL_LOCAL(bal_lowrank) map = { 0 };
        BAL_LOCAL(bal_spectrum) spectrum = { 0 };

        CHECK_OK(bal_lowrank_init(&map, 2, 2, 1, &check_err));
        map.b[0] = bad[i];
        map.a[1] = 1;
        CHECK_RC(BAL_EUNSUPPORTED,
                 bal_spectrum_init(&spectrum, &map, &check_err));
        CHECK(!map.b && !spectrum.u);
    }
}

static void q_is_orthogonal_and_gives_the_matrix_back(void)
{
    double x[21];
    double q[21] = { 0 };
    double tau[3];

    memcpy(x, tall_b, sizeof(x));
    bal_qr(x, tau, 7, 3);
    for (size_t k = 0; k < 3; k++)
        q[k * 7 + k] = 1;
    bal_qr_times(x, tau, 7, 3, q, 3);
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 3; k++)
            CHECK(near(bal_dot(q + i * 7, q + k * 7, 7), i == k, 1));
        for (size_t row = 0; row < 7; row++) {
            double sum = 0;
            for (size_t k = 0; k <= i; k++)
                sum += q[k * 7 + row] * x[i * 7 + k];
            CHECK(near(sum, tall_b[i * 7 + row], 20));
        }
    }
}

static const check_test tests[] = {
    { TEST(singular_values_are_those_of_lapack) },
    { TEST(a_cut_is_as_near_as_can_be) },
    { TEST(energy_is_the_share_of_squares_that_is_kept) },
    { TEST(terms_that_cancel_leave_exactly_nothing) },
    { TEST(how_a_term_is_shared_out_does_not_matter) },
    { TEST(a_factor_that_is_not_finite_is_refused) },
    { TEST(q_is_orthogonal_and_gives_the_matrix_back) },
};

CHECK_MAIN(tests)
