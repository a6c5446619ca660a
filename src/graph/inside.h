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
extern const bal_db_ops bal_db_postgres;

/* Bring the schema to BAL_SCHEMA_VERSION; see bal_graph_open. */
BAL_CHECK int bal_schema_prepare(bal_db *db, unsigned flags, bal_error *err);
/* Set and seal a setting. */
BAL_CHECK int bal_setting_put(bal_db *db, const char *key, const char *value,
                              bal_error *err);

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
/* Of one fixed length. */
BAL_CHECK int bal_column_bytes(void *out, size_t len, const bal_value *column,
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
/* Forget what a block is coded by; what is coded by it still holds it. */
BAL_CHECK int bal_bases_clear(bal_graph *self, int64_t tenant, const bal_id *id,
                              bal_error *err);
/* Keep what a row says of squares, if it does; what was kept of them goes. */
BAL_CHECK int bal_norm_put(bal_graph *self, int64_t tenant,
                           const bal_block_row *row, bal_error *err);
/* The number a commit has inside; *there false if it is not known. */
BAL_CHECK int bal_commit_number(bal_graph *self, int64_t tenant,
                                const bal_id *id, int64_t *number, bool *there,
                                bal_error *err);
/* The first and the last id with a prefix of `least` … 64 hex digits; EINVAL.
 */
BAL_CHECK int bal_id_range(bal_id *low, bal_id *high, const char *prefix,
                           size_t least, bal_error *err);
/* The columns of bal_block_read, of blocks b. */
#define BAL_BLOCK_COLUMNS "b.id, b.size, b.stored, b.codec, b.check_hash "
BAL_CHECK int bal_block_read(bal_block_row *row, const bal_value *columns,
                             bal_error *err);
/* Call fn with the ref's name and its commit's id in the first two columns of
 * each row. */
BAL_CHECK int bal_graph_each_ref(bal_graph *self, const char *sql,
                                 const bal_value *args, size_t count,
                                 bal_graph_ref_fn *fn, void *ctx,
                                 bal_error *err);
/* Call fn with the blocks of a query whose columns are BAL_BLOCK_COLUMNS. */
BAL_CHECK int bal_graph_each_block(bal_graph *self, const char *sql,
                                   const bal_value *args, size_t count,
                                   bal_graph_block_fn *fn, void *ctx,
                                   bal_error *err);
/* What an id is called in messages: its first 12 digits. */
typedef struct bal_short_id {
    char text[13];
} bal_short_id;
bal_short_id bal_id_short(const bal_id *id);

#endif
