/* Edit distance of texts, against the table written out plainly. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"
#include "probe/compare.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static double similarity(const char *a, const char *b)
{
    double out = -1;

    CHECK_OK(bal_similarity(&out, a, b, &check_err));
    return out;
}

/* Textbook pairs, and what can be counted by hand. */
static void known_distances_come_out(void)
{
    static const struct {
        const char *a, *b;
        double distance, longer;
    } rows[] = {
        { "", "", 0, 0 },
        { "", "abc", 3, 3 },
        { "kitten", "sitting", 3, 7 },
        { "saturday", "sunday", 3, 8 },
        { "intention", "execution", 5, 9 },
        { "same", "same", 0, 4 },
        { "abc", "xyz", 3, 3 },
        { "aaaa", "aa", 2, 4 },
        { "na\xc3\xafve", "naive", 1, 5 },
        { "\xf0\x9f\x98\x80x", "\xf0\x9f\x98\x81x", 1, 2 },
        { "\xf0\x9f\x98\x80", "\xc3\xa4", 1, 1 },
        { "\xff\xfe", "\xff", 1, 2 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        double want =
            rows[i].longer > 0 ? 1 - rows[i].distance / rows[i].longer : 1;
        check_row(rows[i].a);
        CHECK(fabs(similarity(rows[i].a, rows[i].b) - want) < 1e-15);
        CHECK(fabs(similarity(rows[i].b, rows[i].a) - want) < 1e-15);
    }
}

enum { MOST = 700 };

static size_t plain(const uint32_t *a, size_t m, const uint32_t *b, size_t n)
{
    size_t row[MOST + 1];

    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
        }
    }
    return row[n];
}

static uint64_t state = 1;

static size_t below(size_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)((state >> 33) % limit);
}

static const uint32_t alphabet[] = { 'a',    'b',     'c',     0xe4,
                                     0x4e2d, 0x1f600, 0x10ffff };

static void draw(uint32_t *to, size_t len, size_t letters)
{
    for (size_t i = 0; i < len; i++)
        to[i] = alphabet[below(letters)];
}

/* Some letters of a other, some more, some fewer. */
static size_t bend(uint32_t *to, const uint32_t *a, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < len && count < MOST; i++) {
        size_t what = below(12);
        if (what == 0)
            continue;
        to[count++] = what == 1 ? alphabet[below(7)] : a[i];
        if (what == 2 && count < MOST)
            to[count++] = alphabet[below(7)];
    }
    return count;
}

static void encode(char *to, const uint32_t *points, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to += bal_utf8_put(to, points[i]);
    *to = '\0';
}

static void check_same(const uint32_t *a, size_t m, const uint32_t *b, size_t n)
{
    static char left[4 * MOST + 1];
    static char right[4 * MOST + 1];
    char name[64];
    size_t longer = m > n ? m : n;

    encode(left, a, m);
    encode(right, b, n);
    snprintf(name, sizeof(name), "%zu and %zu letters", m, n);
    check_row(name);
    double got = similarity(left, right);
    double want = longer ? 1 - (double)plain(a, m, b, n) / (double)longer : 1.0;
    CHECK(fabs(got - want) < 1e-15);
}

static void random_texts_are_as_far_as_the_plain_table_says(void)
{
    static const size_t lengths[] = { 0,   1,   2,   63,  64,  65,  127,
                                      128, 129, 255, 256, 257, 511, 600 };
    uint32_t a[MOST];
    uint32_t b[MOST];

    for (size_t i = 0; i < COUNT(lengths); i++) {
        for (size_t j = 0; j < COUNT(lengths); j++) {
            draw(a, lengths[i], 7);
            draw(b, lengths[j], 7);
            check_same(a, lengths[i], b, lengths[j]);
        }
        for (size_t letters = 1; letters <= 7; letters++) {
            draw(a, lengths[i], letters);
            check_same(a, lengths[i], b, bend(b, a, lengths[i]));
        }
    }
}

/* 4096 blocks of rows by 262144 columns: were it the plain table, 10^11 cells
 * and minutes. */
static void the_longest_answers_can_be_compared(void)
{
    size_t len = BAL_ANSWER_MAX;
    char *a = malloc(len + 1);
    char *b = malloc(len + 1);

    CHECK(a && b);
    memset(a, 'a', len);
    memset(b, 'b', len);
    a[len] = '\0';
    b[len] = '\0';
    b[len / 2] = 'a';
    CHECK(fabs(similarity(a, b) - 1 / (double)len) < 1e-12);
    free(a);
    free(b);
}

static const check_test tests[] = {
    { TEST(known_distances_come_out) },
    { TEST(random_texts_are_as_far_as_the_plain_table_says) },
    { TEST(the_longest_answers_can_be_compared) },
};

CHECK_MAIN(tests)
