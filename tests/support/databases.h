/* Every database that there is, one after the other: what a suite over them all
 * shares.
 *
 * PostgreSQL is the one that BALLAST_PG names, a postgresql: URL without a
 * schema; where that is not set, the one on this machine, if it answers. */
#ifndef SUPPORT_DATABASES_H
#define SUPPORT_DATABASES_H

#include "graph/db.h"

/* A database of one test. */
typedef struct database_place {
    char url[256];
} database_place;

/* Calls fn for each, with a place that is the test's own. */
void database_each(const char *test, void (*fn)(const database_place *at));
/* A place on PostgreSQL; false, and it is said once, where there is none. */
bool database_postgres(database_place *out, const char *test);
/* What was made in it goes away. */
void database_drop(const database_place *at);
/* The URL of a test's database, good until the next call: a file below
 * check_dir(), or with BALLAST_TEST_DB=postgresql, a schema, dropped when the
 * program ends; the test is skipped where there is no server. */
const char *database_url(const char *test);
/* What somebody else does to PostgreSQL's, without keys; false: it is in a
 * file. */
bool database_meddle(const char *test, const char *sql);
/* Never NULL. */
bal_db *database_open(const database_place *at, double wait, unsigned flags);
void database_run(bal_db *db, const char *sql);

#endif
