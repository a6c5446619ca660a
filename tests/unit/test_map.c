/* The table of names. */
#include <stdlib.h>
#include <string.h>

#include "core/map.h"
#include "support/check.h"

static void an_empty_map_has_nothing(void)
{
    BAL_LOCAL(bal_map) map = { 0 };

    CHECK(bal_map_find(&map, "x", 1) == BAL_NONE);
    CHECK(bal_map_find(&map, "", 0) == BAL_NONE);
}

static void what_was_added_first_stays(void)
{
    BAL_LOCAL(bal_map) map = { 0 };
    size_t value = 5;
    bool there = true;

    CHECK_OK(bal_map_add(&map, "name", 4, &value, &there, &check_err));
    CHECK(!there && value == 5);
    value = 6;
    CHECK_OK(bal_map_add(&map, "name", 4, &value, &there, &check_err));
    CHECK(there && value == 5 && map.count == 1);
    CHECK(bal_map_find(&map, "name", 4) == 5);
    CHECK(bal_map_find(&map, "name", 3) == BAL_NONE);
}

static void keys_may_be_empty_or_hold_anything(void)
{
    static const struct {
        const char *key;
        size_t len;
    } rows[] = { { "", 0 }, { "\0", 1 }, { "\0\0", 2 }, { "a\0b", 3 } };
    BAL_LOCAL(bal_map) map = { 0 };

    for (size_t i = 0; i < 4; i++) {
        size_t value = i;
        bool there;
        CHECK_OK(bal_map_add(&map, rows[i].key, rows[i].len, &value, &there,
                             &check_err));
        CHECK(!there);
    }
    for (size_t i = 0; i < 4; i++)
        CHECK(bal_map_find(&map, rows[i].key, rows[i].len) == i);
}

static void many_names_are_all_found_again(void)
{
    enum { COUNT = 20000, WIDTH = 24 };
    BAL_LOCAL(bal_map) map = { 0 };
    char(*names)[WIDTH] = calloc(COUNT, sizeof(*names));

    CHECK(names != NULL);
    for (size_t i = 0; i < COUNT; i++) {
        size_t value = i;
        bool there;
        size_t len = (size_t)snprintf(names[i], WIDTH, "layer.%zu.w", i);
        CHECK_OK(bal_map_add(&map, names[i], len, &value, &there, &check_err));
        CHECK(!there);
    }
    CHECK(map.count == COUNT);
    for (size_t i = 0; i < COUNT; i++)
        CHECK(bal_map_find(&map, names[i], strlen(names[i])) == i);
    CHECK(bal_map_find(&map, "layer.x.w", 9) == BAL_NONE);
    free(names);
}

static void two_maps_have_two_seeds(void)
{
    BAL_LOCAL(bal_map) a = { 0 };
    BAL_LOCAL(bal_map) b = { 0 };
    size_t value = 0;
    bool there;

    CHECK_OK(bal_map_add(&a, "x", 1, &value, &there, &check_err));
    CHECK_OK(bal_map_add(&b, "x", 1, &value, &there, &check_err));
    CHECK(memcmp(a.seed, b.seed, sizeof(a.seed)) != 0);
}

static const check_test tests[] = {
    { TEST(an_empty_map_has_nothing) },
    { TEST(what_was_added_first_stays) },
    { TEST(keys_may_be_empty_or_hold_anything) },
    { TEST(many_names_are_all_found_again) },
    { TEST(two_maps_have_two_seeds) },
};

CHECK_MAIN(tests)
