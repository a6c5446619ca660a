/* What addresses of databases are taken, and what is said of the others. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/str.h"
#include "graph/db.h"
#include "support/check.h"

static const struct {
    const char *url;
    int code;
} bad_urls[] = {
    { "", BAL_EINVAL },
    { "graph.db", BAL_EINVAL },
    { "sqlite", BAL_EINVAL },
    { "sqlite:", BAL_EINVAL },
    { "nosuch:graph.db", BAL_EINVAL },
    { "sqlit:graph.db", BAL_EINVAL },
    { "sqlite:no/such/folder/graph.db", BAL_EIO },
    { "sqlite:/", BAL_EIO },
    { "postgresql:", BAL_EINVAL },
    { "postgresql:graph", BAL_EINVAL },
    { "postgresql://h/d?schema=", BAL_EINVAL },
    { "postgresql://h/d?schema=pg_x", BAL_EINVAL },
    { "postgresql://h/d?schema=a\"b", BAL_EINVAL },
    { "postgresql://h/d?nosuch=1", BAL_EINVAL },
    { "postgresql://u:a/b@h/d", BAL_EINVAL },
    { "postgresql://127.0.0.1:1/d", BAL_EIO },
};

static void bad_addresses_are_told(void)
{
    for (size_t i = 0; i < sizeof(bad_urls) / sizeof(bad_urls[0]); i++) {
        bal_db *db = NULL;
        check_row(bad_urls[i].url);
        CHECK_RC(bad_urls[i].code,
                 bal_db_open(&db, bad_urls[i].url, check_dir(), 1,
                             BAL_DB_CREATE, &check_err));
        CHECK(!db && check_err.text[0]);
    }
}

static const struct {
    const char *url;
    const char *plain;
} plain_urls[] = {
    { "sqlite:a/b.db", "sqlite:a/b.db" },
    { "postgresql://h/d", "postgresql://h/d" },
    { "postgresql://u:secret@h:5/d?schema=a", "postgresql://u@h:5/d?schema=a" },
    { "postgresql://u:se?cret@h/d", "postgresql://u@h/d" },
    { "postgresql:///d?password=secret&user=u&sslpassword=x&sslmode=require",
      "postgresql:///d?user=u&sslmode=require" },
};

static void an_address_is_kept_without_what_is_secret(void)
{
    for (size_t i = 0; i < sizeof(plain_urls) / sizeof(plain_urls[0]); i++) {
        char *plain = NULL;
        check_row(plain_urls[i].url);
        CHECK_OK(bal_db_plain(&plain, plain_urls[i].url, &check_err));
        CHECK(!strcmp(plain, plain_urls[i].plain));
        bal_str_free(plain);
    }
}

static void write_file(const char *name, const char *text, size_t len)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", check_dir(), name);
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(text, 1, len, file) == len && !fclose(file));
}

static void what_is_no_database_is_corrupt(void)
{
    char text[8192];
    bal_db *db = NULL;

    memset(text, 'x', sizeof(text));
    write_file("junk.db", text, sizeof(text));
    CHECK_RC(BAL_ECORRUPT, bal_db_open(&db, "sqlite:junk.db", check_dir(), 1,
                                       BAL_DB_CREATE, &check_err));
    CHECK(strstr(check_err.text, "junk.db"));
}

/* ":memory:" and "file:x?mode=memory" are names of files like any other. */
static void no_name_is_special(void)
{
    static const char *const names[] = { ":memory:", "file:x?mode=memory" };

    for (size_t i = 0; i < 2; i++) {
        char url[64];
        char path[256];
        check_row(names[i]);
        snprintf(url, sizeof(url), "sqlite:%s", names[i]);
        snprintf(path, sizeof(path), "%s/%s", check_dir(), names[i]);
        bal_db *db = NULL;
        CHECK_OK(
            bal_db_open(&db, url, check_dir(), 1, BAL_DB_CREATE, &check_err));
        bal_db_free(db);
        CHECK(!access(path, F_OK));
    }
}

static void an_absent_database_is_not_made_unasked(void)
{
    bal_db *db = NULL;

    for (size_t i = 0; i < 2; i++) {
        CHECK_RC(BAL_ENOTFOUND, bal_db_open(&db, "sqlite:absent.db",
                                            check_dir(), 1, 0, &check_err));
        CHECK(!db && strstr(check_err.text, "absent.db"));
    }
}

static const check_test tests[] = {
    { TEST(an_absent_database_is_not_made_unasked) },
    { TEST(bad_addresses_are_told) },
    { TEST(an_address_is_kept_without_what_is_secret) },
    { TEST(what_is_no_database_is_corrupt) },
    { TEST(no_name_is_special) },
};

CHECK_MAIN(tests)
