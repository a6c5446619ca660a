/* Every database that there is, one after the other: what a suite over them all
 * shares. */
#ifndef SUPPORT_DATABASES_H
#define SUPPORT_DATABASES_H

#include "graph/db.h"

/* A database of one test. */
typedef struct database_place {
    char url[128];
} database_place;

/* Calls fn for each, with a place that is the test's own. */
void database_each(const char *test, void (*fn)(const database_place *at));
/* Never NULL. */
bal_db *database_open(const database_place *at, double wait, unsigned flags);
void database_run(bal_db *db, const char *sql);

#endif
