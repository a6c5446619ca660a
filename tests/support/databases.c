/* A row for each database. */
#include "support/databases.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* A schema is called by the program's folder, which its children know as well,
 * and the test. */
static void call(char out[64], const char *test)
{
    const char *dir = strrchr(check_dir(), '/') + 1;

    snprintf(out, 64, "t_%.20s_%.40s", dir, test);
    for (char *at = out; *at; at++) {
        if (!isalnum((unsigned char)*at))
            *at = '_';
        *at = (char)tolower((unsigned char)*at);
    }
}

bool database_postgres(database_place *out, const char *test)
{
    const char *server = getenv("BALLAST_PG");
    char schema[64];

    if (!server)
        server = HERE;
    call(schema, test);
    snprintf(out->url, sizeof(out->url), "%s%sschema=%s", server,
             strchr(server, '?') ? "&" : "?", schema);
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
static void run_aside(const char *url, const char *options, const char *sql)
{
    const bal_pq *pq = bal_pq_use();
    const char *const keys[] = { "dbname", "options", NULL };
    const char *const values[] = { url, options, NULL };
    PGconn *conn = pq->connectdbParams(keys, values, 1);

    CHECK(pq->sendQueryParams(conn, sql, 0, NULL, NULL, NULL, NULL, 0));
    PGresult *result = pq->getResult(conn);
    if (pq->resultStatus(result) != PGRES_COMMAND_OK)
        print_error("%s: %s\n", pq->errorMessage(conn), sql);
    CHECK(pq->resultStatus(result) == PGRES_COMMAND_OK);
    pq->clear(result);
    pq->finish(conn);
}

/* The schema's name; url: the rest of the place's. */
static const char *split(char url[256], const database_place *at)
{
    const char *schema = strstr(at->url, "schema=");

    if (!schema)
        return NULL;
    snprintf(url, 256, "%.*s", (int)(schema - at->url - 1), at->url);
    return schema + strlen("schema=");
}

void database_drop(const database_place *at)
{
    char sql[128], url[256];
    const char *schema = split(url, at);

    if (!schema)
        return;
    snprintf(sql, sizeof(sql), "DROP SCHEMA IF EXISTS %s CASCADE", schema);
    run_aside(url, "-c client_min_messages=error", sql);
}

/* ---- one for a test ------------------------------------------------------ */

#define PLACES 512

static struct {
    database_place at[PLACES];
    size_t count;
} places;

static void drop_all(void)
{
    for (size_t i = 0; i < places.count; i++)
        database_drop(&places.at[i]);
}

static void drop_at_exit(const database_place *at)
{
    for (size_t i = 0; i < places.count; i++) {
        if (!strcmp(places.at[i].url, at->url))
            return;
    }
    CHECK(places.count < PLACES);
    if (!places.count)
        CHECK(!atexit(drop_all));
    places.at[places.count++] = *at;
}

static bool is_postgres(void)
{
    const char *asked = getenv("BALLAST_TEST_DB");

    return asked && !strcmp(asked, "postgresql");
}

const char *database_url(const char *test)
{
    static database_place at;

    if (!is_postgres()) {
        file(&at, test);
        return at.url;
    }
    if (!database_postgres(&at, test))
        skip();
    drop_at_exit(&at);
    return at.url;
}

bool database_meddle(const char *test, const char *sql)
{
    database_place at;
    char url[256], options[160];

    if (!is_postgres())
        return false;
    CHECK(database_postgres(&at, test));
    const char *schema = split(url, &at);
    snprintf(options, sizeof(options),
             "-c search_path=%s -c session_replication_role=replica", schema);
    run_aside(url, options, sql);
    return true;
}

/* ---- all of them --------------------------------------------------------- */

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
