/* What a ranking still wants after a pass, and that giving it that alone is
 * enough: a sort of all is the oracle. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/arith.h"
#include "support/check.h"
#include "support/strange.h"

enum { MOST = 700 * 1000, PIECE = 1000 };
#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static double x[MOST], keep[MOST];
static uint32_t order[MOST];

/* Few different values: as differences of BF16 models are. */
static void halves(uint64_t *state)
{
    bal_arith arith = { true, BAL_BF16 };

    for (size_t i = 0; i < MOST; i++) {
        uint64_t bits = strange_bits(state);
        x[i] = (double)(bits >> 56) * (bits & 1 ? 0x1p-14 : -0x1p-14);
    }
    bal_arith_round(&arith, x, MOST);
}

/* Values that a second pass is needed for. */
static void wide(uint64_t *state)
{
    for (size_t i = 0; i < MOST; i++) {
        uint64_t bits = strange_bits(state);
        x[i] = 1 + (double)(bits >> 45) * 0x1p-19;
    }
}

/* The same, with hundreds of each. */
static void coarse(uint64_t *state)
{
    for (size_t i = 0; i < MOST; i++)
        x[i] = 1 + (double)(strange_bits(state) >> 53) * 0x1p-11;
}

static void zeros(uint64_t *state)
{
    halves(state);
    for (size_t i = 0; i < MOST; i += 2)
        x[i] = 0;
}

static int by_size(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a;
    uint32_t j = *(const uint32_t *)b;

    if (fabs(x[i]) != fabs(x[j]))
        return fabs(x[i]) < fabs(x[j]) ? -1 : 1;
    return i < j ? -1 : i > j;
}

/* Equal ones by falling index. */
static int by_size_falling(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a;
    uint32_t j = *(const uint32_t *)b;

    return fabs(x[i]) == fabs(x[j]) ? by_size(b, a) : by_size(a, b);
}

/* Elements that came in one pass are those of [from, to), by pieces. */
static void give(bal_ranking *ranking, uint64_t from, uint64_t to)
{
    for (uint64_t at = from; at < to && at < MOST; at += PIECE) {
        size_t n = MOST - at < PIECE ? MOST - at : PIECE;
        bal_ranking_see(ranking, at, x + at, n);
    }
}

/* Gives how many elements were given in all. */
static uint64_t rank(bal_ranked *out, uint64_t low, uint64_t high, bool falls)
{
    BAL_OWN(bal_ranking) ranking = NULL;
    uint64_t given = MOST;
    uint64_t from, to;

    CHECK_OK(bal_ranking_new(&ranking, MOST, low, high, falls, &check_err));
    bal_ranking_ask(ranking, BAL_RANK_ENDS_OPEN);
    give(ranking, 0, MOST);
    while (bal_ranking_next(ranking)) {
        for (size_t end = 0; end < 2; end++) {
            if (!bal_ranking_wants(ranking, end, &from, &to))
                continue;
            /* A little more than is wanted, as whole rows would be. */
            from -= from % PIECE;
            give(ranking, from, to);
            given += (to < MOST ? to : MOST) - from;
        }
    }
    bal_ranking_end(ranking, out);
    return given;
}

static const struct {
    const char *name;
    void (*make)(uint64_t *state);
    uint64_t low, high;
    bool falls;
    uint64_t most; /* elements that it is worth */
} rows[] = {
    { "largest", halves, MOST / 2, MOST, true, MOST + 263000 },
    { "middle", halves, MOST / 3, MOST - 7000, false, MOST + 2 * 263000 },
    { "all", halves, 0, MOST, true, MOST },
    { "largest of many", wide, MOST / 2, MOST, true, 2 * MOST },
    { "middle of many", wide, MOST / 3, MOST - 7000, false, 3 * MOST },
    { "largest of equals", coarse, MOST / 2, MOST, true, 2 * MOST },
    { "middle of equals", coarse, MOST / 3, MOST - 7000, false, 3 * MOST },
    { "some of the zeros", zeros, MOST / 4, MOST, true, MOST + 263000 },
};

static void what_a_pass_wants_is_enough(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        bal_ranked ranked;
        uint64_t state = i + 1;

        check_row(rows[i].name);
        rows[i].make(&state);
        for (uint32_t k = 0; k < MOST; k++)
            order[k] = k;
        qsort(order, MOST, sizeof(*order),
              rows[i].falls ? by_size_falling : by_size);
        CHECK(rank(&ranked, rows[i].low, rows[i].high, rows[i].falls) <=
              rows[i].most);
        for (size_t at = 0; at < MOST; at += PIECE)
            bal_ranked_keep(&ranked, at, x + at, keep + at, PIECE);
        for (size_t k = 0; k < MOST; k++) {
            bool in = k >= rows[i].low && k < rows[i].high;
            CHECK(keep[order[k]] == (in ? 1 : 0));
        }
    }
}

static void values_alone_need_no_look_for_equal_ones(void)
{
    BAL_OWN(bal_ranking) ranking = NULL;
    uint64_t state = 9;
    bal_ranked ranked;

    halves(&state);
    CHECK_OK(bal_ranking_new(&ranking, MOST, MOST / 2, MOST / 2 + 1, false,
                             &check_err));
    bal_ranking_ask(ranking, BAL_RANK_VALUES);
    give(ranking, 0, MOST);
    CHECK(!bal_ranking_next(ranking));
    bal_ranking_end(ranking, &ranked);
    for (uint32_t k = 0; k < MOST; k++)
        order[k] = k;
    qsort(order, MOST, sizeof(*order), by_size);
    CHECK(ranked.least == fabs(x[order[MOST / 2]]));
}

static void an_open_end_wants_nothing(void)
{
    for (size_t open = 0; open < 2; open++) {
        BAL_OWN(bal_ranking) ranking = NULL;
        uint64_t state = 11;
        uint64_t from, to;

        wide(&state);
        CHECK_OK(
            bal_ranking_new(&ranking, MOST, MOST / 2, MOST, true, &check_err));
        if (open)
            bal_ranking_ask(ranking, BAL_RANK_ENDS_OPEN);
        give(ranking, 0, MOST);
        CHECK(bal_ranking_next(ranking));
        CHECK(bal_ranking_wants(ranking, 0, &from, &to));
        CHECK(bal_ranking_wants(ranking, 1, &from, &to) == !open);
    }
}

static void zeros_are_known_before_ranks_are_told(void)
{
    BAL_OWN(bal_ranking) ranking = NULL;
    uint64_t state = 10;
    uint64_t count = 0;

    zeros(&state);
    for (size_t i = 0; i < MOST; i++)
        count += x[i] == 0 ? 1 : 0;
    CHECK_OK(bal_ranking_new(&ranking, MOST, 0, MOST, true, &check_err));
    give(ranking, 0, MOST);
    CHECK(bal_ranking_zeros(ranking) == count);
    bal_ranking_want(ranking, MOST, MOST);
    CHECK(!bal_ranking_next(ranking));
}

static const check_test tests[] = {
    { TEST(what_a_pass_wants_is_enough) },
    { TEST(values_alone_need_no_look_for_equal_ones) },
    { TEST(an_open_end_wants_nothing) },
    { TEST(zeros_are_known_before_ranks_are_told) },
};

CHECK_MAIN(tests)
