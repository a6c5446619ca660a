/* "tenant:id": what is one, and what must not become part of a path. */
#include <string.h>

#include "store/named_id.h"
#include "support/check.h"

#define HEX "ab00000000000000000000000000000000000000000000000000000000000000"
#define LONGEST                                                                \
    "a123456789012345678901234567890123456789012345678901234567890123"

static void a_tenant_and_an_id_are_taken_apart(void)
{
    static const char *const tenants[] = { "a", "acme", "a.b_c-d", LONGEST };
    char text[160];

    for (size_t i = 0; i < sizeof(tenants) / sizeof(tenants[0]); i++) {
        bal_named_id found;
        check_row(tenants[i]);
        snprintf(text, sizeof(text), "%s:%s", tenants[i], HEX);
        CHECK_OK(bal_named_id_parse(&found, text, &check_err));
        CHECK(!strcmp(found.tenant, tenants[i]));
        CHECK(found.id.bytes[0] == 0xab && !found.id.bytes[31]);
    }
}

static void anything_else_is_refused_and_leaves_the_result_alone(void)
{
    static const char *const rows[] = {
        "",
        ":",
        "acme",
        HEX,
        ":" HEX,
        "acme:",
        "acme:" HEX "0",
        "acme:" HEX ":x",
        "acme:AB00000000000000000000000000000000000000000000000000000000000000",
        "../../victim:" HEX,
        "a..b:" HEX,
        "a/b:" HEX,
        "-a:" HEX,
        LONGEST "4:" HEX,
    };
    bal_named_id found = { .tenant = "kept" };

    CHECK_RC(BAL_ECORRUPT, bal_named_id_parse(&found, NULL, &check_err));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_row(rows[i]);
        CHECK_RC(BAL_ECORRUPT, bal_named_id_parse(&found, rows[i], &check_err));
        CHECK(!strcmp(found.tenant, "kept"));
    }
}

static const check_test tests[] = {
    { TEST(a_tenant_and_an_id_are_taken_apart) },
    { TEST(anything_else_is_refused_and_leaves_the_result_alone) },
};

CHECK_MAIN(tests)
