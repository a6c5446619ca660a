/* Tensors as vectors. Sums of columns in mergekit's arithmetic are torch
 * 2.13's, of a transposed tensor: torch.norm and (x * y).sum over its last
 * axis, on one thread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/vectors.h"
#include "support/check.h"

static void a_tensor_is_cut_into_vectors(void)
{
    static const uint64_t shape[3] = { 3, 4, 5 };
    static const bal_extent extent = { 3, shape, 60, 5 };
    static const struct {
        const char *name;
        bal_lines (*cut)(const bal_extent *extent);
        uint64_t count, length;
        bal_stretch from7; /* the stretch at element 7 */
    } rows[] = {
        { "whole", bal_lines_whole, 1, 60, { 0, 50 } },
        { "rows", bal_lines_rows, 12, 5, { 1, 3 } },
        { "across", bal_lines_across, 20, 3, { 7, 13 } },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bal_lines lines = rows[i].cut(&extent);
        bal_stretch part = bal_lines_at(&lines, 7, 50);

        check_row(rows[i].name);
        CHECK(lines.count == rows[i].count);
        CHECK(lines.length == rows[i].length);
        CHECK(part.vector == rows[i].from7.vector);
        CHECK(part.n == rows[i].from7.n);
    }
}

static void what_has_no_columns_is_one_vector(void)
{
    static const uint64_t shape[3] = { 6, 1, 1 }, none[2] = { 0, 5 };
    static const bal_extent rows[] = {
        { 0, shape, 1, 1 }, { 1, shape, 6, 6 }, { 2, shape, 6, 1 },
        { 3, shape, 6, 1 }, { 2, none, 0, 5 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bal_lines lines = bal_lines_across(&rows[i]);

        CHECK(lines.count == 1 && !lines.across);
        lines = bal_lines_rows(&rows[i]);
        CHECK(lines.count >= 1 && lines.length >= 1);
    }
}

static void runs_may_end_with_a_shorter_one(void)
{
    static const uint64_t shape[1] = { 10 };
    static const bal_extent extent = { 1, shape, 10, 10 };
    static const double ones[10] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    static const bal_arith precise = { 0 };
    bal_lines lines = bal_lines_runs(&extent, 4);
    BAL_LOCAL(bal_sums) sums = { 0 };
    double out[3];

    CHECK_OK(
        bal_sums_init(&sums, &lines, &precise, BAL_FOLD_SUM, out, &check_err));
    bal_sums_add(&sums, 0, ones, NULL, 3);
    bal_sums_add(&sums, 3, ones, NULL, 7);
    bal_sums_end(&sums);
    CHECK(out[0] == 4 && out[1] == 4 && out[2] == 2);
}

/* Uniform from -0.5 to 0.5, rounded to dtype. */
static double *made(bal_dtype dtype, size_t n, uint32_t seed)
{
    double *out = malloc(n * sizeof(*out));
    bal_arith arith = { .mergekit = true, .work = dtype };

    for (size_t k = 0; k < n; k++) {
        seed = seed * 1664525u + 1013904223u;
        out[k] = (seed >> 8) / 16777216.0 - 0.5;
    }
    bal_arith_round(&arith, out, n);
    return out;
}

static const struct {
    bal_dtype dtype;
    uint64_t rows, columns, column;
    double norm, dot;
} torch[] = {
    { BAL_F32, 7, 5, 0, 0x1.a9067e0000000p-1, -0x1.19e0360000000p-3 },
    { BAL_F32, 7, 5, 4, 0x1.6bd62a0000000p-1, -0x1.1991a60000000p-5 },
    { BAL_F32, 40, 33, 0, 0x1.fcac720000000p+0, -0x1.d5071c0000000p-2 },
    { BAL_F32, 40, 33, 32, 0x1.eaf1b40000000p+0, 0x1.2893100000000p-1 },
    { BAL_F32, 300, 8, 0, 0x1.46fdf40000000p+2, -0x1.00f45c0000000p-4 },
    { BAL_F32, 300, 8, 7, 0x1.42a1dc0000000p+2, 0x1.8d02980000000p-2 },
    { BAL_F32, 2103, 3, 0, 0x1.a8f23a0000000p+3, -0x1.9309500000000p+0 },
    { BAL_F32, 2103, 3, 2, 0x1.ace7740000000p+3, 0x1.288dce0000000p+2 },
    { BAL_F32, 1100, 48, 0, 0x1.3291a40000000p+3, 0x1.9fc6520000000p-2 },
    { BAL_F32, 1100, 48, 33, 0x1.33e7e00000000p+3, -0x1.6929a00000000p+1 },
    { BAL_F32, 1100, 48, 40, 0x1.35fd0e0000000p+3, 0x1.3434e40000000p+1 },
    { BAL_F32, 1100, 48, 44, 0x1.33cd620000000p+3, -0x1.6619fe0000000p-1 },
    { BAL_BF16, 300, 33, 0, 0x1.4e00000000000p+2, 0x1.7a00000000000p-5 },
    { BAL_BF16, 300, 33, 32, 0x1.4200000000000p+2, -0x1.0800000000000p+0 },
    { BAL_F16, 300, 33, 0, 0x1.4e80000000000p+2, 0x1.8380000000000p-5 },
    { BAL_F16, 300, 33, 32, 0x1.4200000000000p+2, -0x1.0880000000000p+0 },
};

static void sum_columns(double *out, const bal_lines *lines, bal_dtype dtype,
                        bal_fold fold, const double *x, const double *y)
{
    bal_arith arith = { .mergekit = true, .work = dtype };
    BAL_LOCAL(bal_sums) sums = { 0 };

    CHECK_OK(bal_sums_init(&sums, lines, &arith, fold, out, &check_err));
    for (size_t at = 0; at < lines->total; at += 37) {
        size_t n = lines->total - at < 37 ? lines->total - at : 37;
        bal_sums_add(&sums, at, x + at, y ? y + at : NULL, n);
    }
    bal_sums_end(&sums);
}

static void columns_are_summed_as_torch_does(void)
{
    for (size_t i = 0; i < sizeof(torch) / sizeof(torch[0]); i++) {
        uint64_t shape[2] = { torch[i].rows, torch[i].columns };
        uint64_t n = shape[0] * shape[1];
        bal_extent extent = { 2, shape, n, shape[1] };
        bal_lines lines = bal_lines_across(&extent);
        double *x = made(torch[i].dtype, n, 1);
        double *y = made(torch[i].dtype, n, 2);
        double out[64];

        sum_columns(out, &lines, torch[i].dtype, BAL_FOLD_NORM, x, NULL);
        CHECK(out[torch[i].column] == torch[i].norm);
        sum_columns(out, &lines, torch[i].dtype, BAL_FOLD_DOT, x, y);
        CHECK(out[torch[i].column] == torch[i].dot);
        free(x);
        free(y);
    }
}

static void numbers_of_vectors_meet_their_elements(void)
{
    static const uint64_t shape[2] = { 2, 3 };
    static const bal_extent extent = { 2, shape, 6, 3 };
    static const bal_arith precise = { 0 };
    static const double in[5] = { 1, 1, 1, 1, 1 };
    static const double by[3] = { 2, 4, 8 };
    static const struct {
        const char *name;
        bal_lines (*cut)(const bal_extent *extent);
        double want[5]; /* of elements 1 to 5 */
    } rows[] = {
        { "whole", bal_lines_whole, { 2, 2, 2, 2, 2 } },
        { "rows", bal_lines_rows, { 2, 2, 4, 4, 4 } },
        { "across", bal_lines_across, { 4, 8, 2, 4, 8 } },
    };
    bal_tile tile = { .n = 5, .start = 1, .arith = &precise };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bal_lines lines = rows[i].cut(&extent);
        double out[5];

        check_row(rows[i].name);
        bal_lines_scale(&lines, &tile, out, in, by);
        CHECK(!memcmp(out, rows[i].want, sizeof(out)));
        bal_lines_over(&lines, &tile, out, out, by);
        CHECK(!memcmp(out, in, sizeof(out)));
    }
}

static void cosines_are_clamped_and_nans_kept(void)
{
    CHECK(bal_cosine(1.0000001) == 1 && bal_cosine(-2) == -1);
    CHECK(bal_cosine(0.25) == 0.25 && isnan(bal_cosine((double)NAN)));
}

static const check_test tests[] = {
    { TEST(a_tensor_is_cut_into_vectors) },
    { TEST(what_has_no_columns_is_one_vector) },
    { TEST(runs_may_end_with_a_shorter_one) },
    { TEST(columns_are_summed_as_torch_does) },
    { TEST(numbers_of_vectors_meet_their_elements) },
    { TEST(cosines_are_clamped_and_nans_kept) },
};

CHECK_MAIN(tests)
