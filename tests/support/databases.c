/* A row for each database. */
#include "support/databases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/pq.h"
#include "support/check.h"

#define HERE "postgresql://postgres@127.0.0.1:5432/test"

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

/* Asked once. Where a server is named, it has to answer. */
static bool answers(const char *url)
{
    static int known = -1;
    bal_db *db = NULL;
    bal_error why;

    if (known >= 0)
        return known;
    int rc = bal_db_open(&db, url, "/", 1, 0, &why);
    bal_db_free(db);
    known = !rc || rc == BAL_ENOTFOUND;
    if (getenv("BALLAST_PG"))
        CHECK(known);
    if (!known)
        printf("PostgreSQL is passed over: %s; BALLAST_PG names another\n",
               why.text);
    return known;
}

bool database_postgres(database_place *out, const char *test)
{
    const char *server = getenv("BALLAST_PG");

    if (!server)
        server = HERE;
    snprintf(out->url, sizeof(out->url), "%s%sschema=t%d_%.48s", server,
             strchr(server, '?') ? "&" : "?", (int)getpid(), test);
    return answers(out->url);
}

static bool file(database_place *out, const char *test)
{
    snprintf(out->url, sizeof(out->url), "sqlite:%s.db", test);
    return true;
}

typedef struct database {
    const char *name;
    bool (*place)(database_place *out, const char *test);
} database;

static const database databases[] = {
    { "sqlite", file },
    { "postgresql", database_postgres },
};

/* Not by a bal_db: it counts its commits in the schema. */
void database_drop(const database_place *at)
{
    const char *schema = strstr(at->url, "schema=");
    char sql[128], url[256];

    if (!schema)
        return;
    snprintf(url, sizeof(url), "%.*s", (int)(schema - at->url - 1), at->url);
    snprintf(sql, sizeof(sql), "DROP SCHEMA %s CASCADE",
             schema + strlen("schema="));
    const bal_pq *pq = bal_pq_use();
    const char *const keys[] = { "dbname", "options", NULL };
    const char *const values[] = { url, "-c client_min_messages=error", NULL };
    PGconn *conn = pq->connectdbParams(keys, values, 1);
    CHECK(pq->sendQueryParams(conn, sql, 0, NULL, NULL, NULL, NULL, 0));
    PGresult *result = pq->getResult(conn);
    CHECK(pq->resultStatus(result) == PGRES_COMMAND_OK);
    pq->clear(result);
    pq->finish(conn);
}

void database_each(const char *test, void (*fn)(const database_place *at))
{
    for (size_t i = 0; i < sizeof(databases) / sizeof(databases[0]); i++) {
        database_place at;
        check_row(databases[i].name);
        if (!databases[i].place(&at, test))
            continue;
        fn(&at);
        database_drop(&at);
    }
}
