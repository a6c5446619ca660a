/* What is staged for a bucket: in memory, on the disk, and neither. */
#include <string.h>

#include "blocks/s3_hold.h"
#include "support/check.h"

enum { HOLDS = 6 };

static const bal_bytes parts[] = {
    { "ab", 2 }, { NULL, 0 }, { "", 0 }, { "cde", 3 }
};

static bool is_whole(const char *hold)
{
    bal_bytes held = bal_s3_held(hold);

    return held.len == 5 && !memcmp(held.data, "abcde", 5);
}

static void what_is_held_is_whole_wherever_it_is(void)
{
    static char nowhere[] = "/nonexistent";
    char here[256];
    snprintf(here, sizeof(here), "%s", check_dir());
    bal_s3_room rooms[] = {
        { here, 1 << 20 }, { here, 150 }, { here, 0 },
        { nowhere, 150 },  { NULL, 0 },
    };

    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        char *holds[HOLDS] = { NULL };
        for (size_t k = 0; k < HOLDS; k++)
            CHECK_OK(bal_s3_hold(&holds[k], &rooms[i], parts, 4, &check_err));
        CHECK(!rooms[i].folder || rooms[i].folder == nowhere ||
              atomic_load(&rooms[i].used) <= rooms[i].most);
        for (size_t k = 0; k < HOLDS; k++) {
            CHECK(is_whole(holds[k]));
            bal_s3_let_go(&rooms[i], holds[k]);
        }
        CHECK(atomic_load(&rooms[i].used) == 0);
    }
}

static void nothing_is_held_too(void)
{
    bal_s3_room room = { .most = 100 };
    char *hold = NULL;

    CHECK_OK(bal_s3_hold(&hold, &room, parts + 1, 2, &check_err));
    CHECK(bal_s3_held(hold).len == 0);
    bal_s3_let_go(&room, hold);
    bal_s3_let_go(&room, NULL);
    CHECK(atomic_load(&room.used) == 0);
}

static const check_test tests[] = {
    { TEST(what_is_held_is_whole_wherever_it_is) },
    { TEST(nothing_is_held_too) },
};

CHECK_MAIN(tests)
