/* A database: SQL text, arguments, rows. The SQL is in graph's own files,
 * written once for every row of this vtable ($1 … $n, ON CONFLICT, RETURNING,
 * WITH RECURSIVE). One connection, usable by any thread, one call at a time. */
#ifndef GRAPH_DB_H
#define GRAPH_DB_H

#include "core/buf.h"
#include "core/file.h"
#include "core/own.h"

typedef struct bal_db bal_db;

typedef enum bal_value_type {
    BAL_VALUE_NULL,
    BAL_VALUE_INT,
    BAL_VALUE_TEXT,
    BAL_VALUE_BLOB,
} bal_value_type;

typedef struct bal_value {
    bal_value_type type;
    int64_t number;
    bal_bytes bytes; /* TEXT (NUL-terminated behind len) and BLOB */
} bal_value;

bal_value bal_null(void);
bal_value bal_int(int64_t number);
bal_value bal_text(const char *text); /* NULL: null */
bal_value bal_blob(const void *data, size_t len);
bal_value bal_id_value(const bal_id *id); /* NULL: null */

/* columns are borrowed for the call. BAL_ROW_STOP ends the query with
 * success. */
#define BAL_ROW_STOP 1
typedef int bal_row_fn(void *ctx, const bal_value *columns, size_t count,
                       bal_error *err);

enum bal_db_flags {
    BAL_DB_CREATE = 1,
};

/* A hold on the whole database for longer than a transaction, shared or alone.
 * It ends with the process. */
typedef struct bal_db_lock {
    const struct bal_db_ops *ops;
} bal_db_lock;

/* What a word of the schema, which is written in SQLite's, is called. */
typedef struct bal_db_word {
    const char *sqlite;
    const char *here;
} bal_db_word;

/* fn NULL: rows are passed over. *changed (may be NULL): rows written. */
typedef struct bal_query {
    const char *sql;
    const bal_value *args;
    size_t count;
    bal_row_fn *fn;
    void *ctx;
    uint64_t *changed;
} bal_query;

typedef struct bal_db_ops {
    const char *scheme;
    const bal_db_word *words; /* ends with an empty one */
    /* wait: seconds before EBUSY. ENOTFOUND without CREATE. */
    int (*open)(bal_db **out, const char *rest, const char *root, double wait,
                unsigned flags, bal_error *err);
    /* The URL as it may be kept and shown: without what is secret in it. */
    int (*plain)(char **out, const char *rest, bal_error *err);
    /* Inside of a writing transaction, what has neither fn nor changed may fail
     * later: in the next query that has, or in the commit. */
    int (*query)(bal_db *self, const bal_query *query, bal_error *err);
    int (*begin)(bal_db *self, unsigned flags, bal_error *err);
    /* Durable on return. Where that cannot be known (the connection is lost
     * while it commits), it fails and says so. */
    int (*commit)(bal_db *self, bal_error *err);
    void (*rollback)(bal_db *self);
    /* Leaves nothing of what was deleted in the tables' own files. Outside
     * of transactions; EBUSY where a reader or writer stays longer than
     * `wait`, or with NOW, where one is there. */
    int (*scrub)(bal_db *self, unsigned flags, bal_error *err);
    /* A number that is another one after anything was committed to the
     * database, by this connection or by others, and may be another one without
     * that. A few microseconds, or one question to the server; not inside a
     * transaction, where it stands still. */
    int (*changes)(bal_db *self, uint64_t *out, bal_error *err);
    /* Appends what tells this database from every other: the same text where
     * two are one, by whatever names they were opened. */
    int (*place)(bal_db *self, bal_buf *to, bal_error *err);
    /* With everybody who has the database open, from whatever root or machine,
     * threads of this process included. Waits at most wait seconds; EBUSY. Who
     * loses a lock that it holds, with the connection, commits nothing more
     * before it has given it back. */
    int (*lock)(bal_db *self, bal_db_lock **out, enum bal_lock_mode mode,
                double wait, bal_error *err);
    void (*unlock)(bal_db_lock *lock);
    /* Fails where a lock that was taken by this handle is lost: asks whoever
     * keeps it, a question a lock where that is a server. */
    int (*held)(bal_db *self, bal_error *err);
    void (*free)(bal_db *self);
} bal_db_ops;

struct bal_db {
    const bal_db_ops *ops;
};

enum bal_scrub_flags {
    BAL_SCRUB_NOW = 1, /* do not wait, and do not write before it is sure that
                          it is of use */
};

enum bal_tx_flags { BAL_TX_WRITE = 1 };

BAL_CHECK int bal_db_open(bal_db **out, const char *url, const char *root,
                          double wait, unsigned flags, bal_error *err);
void bal_db_free(bal_db *self);
BAL_OWNABLE(bal_db)
BAL_CHECK int bal_db_query(bal_db *self, const char *sql, const bal_value *args,
                           size_t count, bal_row_fn *fn, void *ctx,
                           bal_error *err);
/* For statements without rows; *changed may be NULL. */
BAL_CHECK int bal_db_run(bal_db *self, const char *sql, const bal_value *args,
                         size_t count, uint64_t *changed, bal_error *err);

/* See scrub of bal_db_ops. */
BAL_CHECK int bal_db_scrub(bal_db *self, unsigned flags, bal_error *err);

/* See ops. */
BAL_CHECK int bal_db_changes(bal_db *self, uint64_t *out, bal_error *err);
BAL_CHECK int bal_db_plain(char **out, const char *url, bal_error *err);
BAL_CHECK int bal_db_place(bal_db *self, bal_buf *to, bal_error *err);
BAL_CHECK int bal_db_lock_take(bal_db_lock **out, bal_db *self,
                               enum bal_lock_mode mode, double wait,
                               bal_error *err);
BAL_CHECK int bal_db_locks_held(bal_db *self, bal_error *err);
void bal_db_lock_free(bal_db_lock *self);
BAL_OWNABLE(bal_db_lock)

/* A transaction: rolled back when its scope ends without commit. Holds the
 * connection's lock from begin on; calls inside it by the same thread are
 * fine. */
typedef struct bal_tx {
    bal_db *db;
} bal_tx;
BAL_CHECK int bal_tx_begin(bal_tx *self, bal_db *db, unsigned flags,
                           bal_error *err);
BAL_CHECK int bal_tx_commit(bal_tx *self, bal_error *err);
void bal_tx_done(bal_tx *self);

#endif
