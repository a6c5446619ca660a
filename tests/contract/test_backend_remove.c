/* What every backend promises of runs that go (blocks/backend.h). */
#include <string.h>

#include "support/backends.h"
#include "support/check.h"

/* Names in no order, of which one twice and some were never there. */
static void many_are_removed_and_others_stay(void)
{
    static const char *const gone[] = {
        "b/2/x", "a/1/y", "a/1/x", "c",     "a/1/never",
        "a/1/x", "a/2/x", "a/1-",  "d/d/d", "a/2/y",
    };
    static const char *const there[] = { "a/1/x", "a/1/y",  "a/2/x", "a/2/y",
                                         "a/2/z", "a/1-",   "b/2/x", "c",
                                         "e",     "b/2/xy", "b/22/x" };

    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        uint64_t freed = 0;
        if (!contract_begin(&self, row))
            continue;
        for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++)
            contract_put(&self, there[i], there[i]);
        CHECK_OK(contract_remove(&self, gone, 10, &freed));
        CHECK(freed == 5 + 5 + 5 + 5 + 4 + 5 + 1);
        CHECK(contract_count(&self, "") == 4);
        CHECK(contract_count(&self, "a/2/") == 1);
        contract_done(&self);
    }
}

static void what_is_removed_can_be_put_again(void)
{
    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        uint64_t freed = 0;
        if (!contract_begin(&self, row))
            continue;
        contract_put(&self, "a/1/x", "a/1/x");
        CHECK_OK(
            contract_remove(&self, (const char *[]){ "a/1/x" }, 1, &freed));
        contract_put(&self, "a/1/x", "a/1/x");
        CHECK(contract_count(&self, "a/") == 1);
        contract_done(&self);
    }
}

static void what_is_removed_is_gone(void)
{
    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        BAL_LOCAL(bal_buf) out = { 0 };
        uint64_t freed = 7;
        if (!contract_begin(&self, row))
            continue;
        contract_put(&self, "a/1/b", "hello");
        CHECK_OK(
            contract_remove(&self, (const char *[]){ "a/1/b" }, 1, &freed));
        CHECK(freed == 5);
        CHECK_RC(BAL_ENOTFOUND, contract_get(&self, &out, "a/1/b", 0, 0));
        CHECK_OK(
            contract_remove(&self, (const char *[]){ "a/1/b" }, 1, &freed));
        CHECK(freed == 0);
        CHECK_OK(
            contract_remove(&self, (const char *[]){ "never/was" }, 1, &freed));
        CHECK(freed == 0);
        CHECK_OK(contract_remove(&self, NULL, 0, &freed));
        CHECK(contract_count(&self, "") == 0);
        contract_done(&self);
    }
}

static const check_test tests[] = {
    { TEST(what_is_removed_is_gone) },
    { TEST(many_are_removed_and_others_stay) },
    { TEST(what_is_removed_can_be_put_again) },
};

CHECK_MAIN(tests)
