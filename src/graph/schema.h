/* What brings a database from one version of the schema to the next. */
#ifndef GRAPH_SCHEMA_H
#define GRAPH_SCHEMA_H

#include "graph/db.h"

typedef int bal_migration_fn(bal_db *db, bal_error *err);

typedef struct bal_migration {
    int version;
    const char *scheme;    /* NULL: of every database */
    const char *sql;       /* one statement, or NULL: */
    bal_migration_fn *run; /* what SQL cannot do */
} bal_migration;

extern const bal_migration bal_migrations[];
extern const size_t bal_migration_count;

#endif
