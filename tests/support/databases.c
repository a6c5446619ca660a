/* A row for each database. */
#include "support/databases.h"

#include <stdio.h>
#include <string.h>

#include "support/check.h"

typedef struct database {
    const char *name;
    const char *url; /* one %s: something new for each test */
} database;

static const database databases[] = {
    { "sqlite", "sqlite:%s.db" },
};

bal_db *database_open(const database_place *at, double wait, unsigned flags)
{
    bal_db *db = NULL;

    CHECK_OK(bal_db_open(&db, at->url, check_dir(), wait, flags, &check_err));
    CHECK(db);
    return db;
}

void database_run(bal_db *db, const char *sql)
{
    CHECK_OK(bal_db_run(db, sql, NULL, 0, NULL, &check_err));
}

void database_each(const char *test, void (*fn)(const database_place *at))
{
    for (size_t i = 0; i < sizeof(databases) / sizeof(databases[0]); i++) {
        database_place at;
        check_row(databases[i].name);
        /* The format is a row of the table above. */
        const char *rest = strstr(databases[i].url, "%s");
        snprintf(at.url, sizeof(at.url), "%.*s%s%s",
                 (int)(rest - databases[i].url), databases[i].url, test,
                 rest + 2);
        fn(&at);
    }
}
