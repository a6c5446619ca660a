/* Seals. Of a row that no id covers, `seal` has the hash of its columns, so
 * that a row which something else has written to (a damaged disk, a hand with
 * an editor) is told from one that this program wrote. A seal is no signature:
 * whoever can compute BLAKE3 can make one. docs/format.md, "Database". */
#ifndef GRAPH_SEAL_H
#define GRAPH_SEAL_H

#include "core/buf.h"
#include "graph/db.h"

#define BAL_SEAL_COLUMNS 10

typedef enum bal_sealed {
    BAL_SEALED_SETTINGS,
    BAL_SEALED_TENANTS,
    BAL_SEALED_BLOCKS,
    BAL_SEALED_MANIFESTS,
    BAL_SEALED_COMMITS,
    BAL_SEALED_MOVES,
    BAL_SEALED_GRANTS,
    BAL_SEALED_JOURNAL,
    BAL_SEALED_PROOFS,
    BAL_SEALED_TOMBSTONES,
    BAL_SEALED_EXPORTS,
    BAL_SEALED_EPOCH,
    BAL_SEALED_PROBE_SETS,
    BAL_SEALED_FINGERPRINTS,
    BAL_SEALED_NORMS,
    BAL_SEALED_LOADS,
    BAL_SEALED_TABLES,
} bal_sealed;

/* What the seals of a table cover: SQL over one row, in order, the columns that
 * find the row first. */
typedef struct bal_seal_row {
    const char *table;
    const char *tenant; /* SQL of whose it is, by name, */
    const char *what;   /* and of what it is called, for messages */
    size_t keys;
    int since; /* version of the schema that it came with, 0: before seals */
    const char *columns[BAL_SEAL_COLUMNS + 1]; /* ends with NULL */
} bal_seal_row;

const bal_seal_row *bal_seal_row_of(bal_sealed table);
/* BLAKE3 of: the table's name and a NUL byte; then for each column a byte (n,
 * i, t, b: null, integer, text, blob), the integer or the length in bytes as 8
 * bytes, little-endian (0 for null), and the bytes. */
void bal_seal_of(bal_id *out, bal_sealed table, const bal_value *columns,
                 size_t count);
/* Appends "SELECT <first>seal, <columns> FROM <table>". */
BAL_CHECK int bal_seal_select(bal_buf *to, bal_sealed table, const char *first,
                              bal_error *err);
/* Does the seal, a column and those behind it, fit? */
bool bal_seal_fits(bal_sealed table, const bal_value *seal, size_t count);

/* Insert a row of a table whose columns are all sealed; *changed (may be NULL)
 * is 0 where its key is taken. */
BAL_CHECK int bal_sealed_put(bal_db *db, bal_sealed table,
                             const bal_value *columns, uint64_t *changed,
                             bal_error *err);
/* ECORRUPT if the row's seal does not fit; none is fine. */
BAL_CHECK int bal_seal_verify(bal_db *db, bal_sealed table,
                              const bal_value *keys, bal_error *err);
/* Run a statement that changes one row, and seal it anew. Only if it was sealed
 * before: what somebody else wrote would else become ours. ENOTFOUND: it is not
 * there. */
BAL_CHECK int bal_sealed_change(bal_db *db, bal_sealed table,
                                const bal_value *keys, const bal_query *change,
                                bal_error *err);
/* Seal every row of every table that is older than seals: the step of a
 * migration. */
BAL_CHECK int bal_seal_all(bal_db *db, bal_error *err);

#endif
