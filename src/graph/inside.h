/* What graph's own files share: the handle, and columns checked as they come
 * in, because a database is a file that anybody may have written to. */
#ifndef GRAPH_INSIDE_H
#define GRAPH_INSIDE_H

#include "graph/graph.h"

struct bal_graph {
    bal_db *db; /* owned; has the only lock */
};

/* The rows of db.c's table. */
extern const bal_db_ops bal_db_sqlite;

/* Bring the schema to BAL_SCHEMA_VERSION; see bal_graph_open. */
BAL_CHECK int bal_schema_prepare(bal_db *db, unsigned flags, bal_error *err);

/* Each fails with ECORRUPT where the column is not what it is to be. */
BAL_CHECK int bal_column_id(bal_id *out, const bal_value *column,
                            bal_error *err);
/* NULL: *there false. */
BAL_CHECK int bal_column_id_or_null(bal_id *out, bool *there,
                                    const bal_value *column, bal_error *err);
BAL_CHECK int bal_column_count(uint64_t *out, const bal_value *column,
                               bal_error *err);
BAL_CHECK int bal_column_text(const char **out, const bal_value *column,
                              bal_error *err);

/* The number in the first column of the first row; *there false without a
 * row. */
BAL_CHECK int bal_graph_number(bal_graph *self, const char *sql,
                               const bal_value *args, size_t count,
                               int64_t *number, bool *there, bal_error *err);
/* Call fn with the id in the first column of each row. */
BAL_CHECK int bal_graph_each_id(bal_graph *self, const char *sql,
                                const bal_value *args, size_t count,
                                bal_graph_id_fn *fn, void *ctx, bal_error *err);
/* The number a commit has inside; *there false if it is not known. */
BAL_CHECK int bal_commit_number(bal_graph *self, int64_t tenant,
                                const bal_id *id, int64_t *number, bool *there,
                                bal_error *err);
/* What an id is called in messages: its first 12 digits. */
typedef struct bal_short_id {
    char text[13];
} bal_short_id;
bal_short_id bal_id_short(const bal_id *id);

#endif
