/* The PostgreSQL driver's connections, and running statements on them. */
#ifndef GRAPH_POSTGRES_H
#define GRAPH_POSTGRES_H

#include <pthread.h>

#include "graph/db.h"
#include "graph/pq.h"

#define BAL_PG_ARGS    16
#define BAL_PG_CACHED  320 /* more than the tree has SQL texts */
#define BAL_PG_LEVELS  8
#define BAL_PG_COLUMNS 24
#define BAL_PG_SENT    128
#define BAL_PG_SPARE   4

/* What a postgresql: URL says; see bal_pg_address_read. */
typedef struct bal_pg_address {
    char *url;   /* for libpq: without what is ours */
    char *plain; /* without passwords */
    char schema[64];
} bal_pg_address;

typedef struct bal_pg_statement {
    uint64_t hash;
    char *sql;
    char types[BAL_PG_ARGS + 1]; /* of its arguments, a letter each */
    bool sent;                   /* to be prepared, on this connection */
} bal_pg_statement;

/* One question that was sent and not answered yet. */
typedef struct bal_pg_sent {
    bal_pg_statement *prepares; /* NULL: it runs something */
    bool commits;
    uint64_t begun; /* transactions, when it was sent */
} bal_pg_sent;

/* Rows that come in while a row function looks at one. */
typedef struct bal_pg_rows {
    bool coming;  /* from the connection; else what is left is kept */
    bal_buf kept; /* see postgres_rows.c */
    size_t at;
    PGresult *held; /* what the row in hand is borrowed from */
} bal_pg_rows;

typedef struct bal_pg_lock bal_pg_lock;

typedef struct bal_pg {
    bal_db base;
    const bal_pq *pq;
    bal_pg_address address;
    double wait;
    int32_t schema; /* the number it has in the database */
    bool grouped;   /* commits are flushed many at a time; see postgres.c */
    /* Guards all below and the connection, as SQLite's does. */
    pthread_mutex_t lock;
    PGconn *conn;
    unsigned depth; /* transactions begun, the inner ones included */
    bool write;
    bool dirty;                    /* it may have written something */
    uint64_t writes;               /* rows that were written, ever */
    uint64_t begun;                /* transactions, ever */
    uint64_t began[BAL_PG_LEVELS]; /* what `begun` was for each of them */
    uint64_t wrote;                /* … and for what wrote last */
    int doomed;                    /* 0, or why all must be rolled back */
    bal_error why;                 /* in the words of what failed first */
    bool committed;                /* the answer to COMMIT */
    bal_pg_rows *rows;             /* of the query in hand */
    bal_pg_sent sent[BAL_PG_SENT]; /* a queue: */
    size_t sent_count, sent_at;    /* … answered up to here */
    size_t unsynced;               /* of those sent, after the last sync */
    bool marked;                   /* the answer to a sync is still to come */
    bal_pg_statement cache[BAL_PG_CACHED];
    size_t cached;
    /* Guards the two below. Taken inside of `lock`, never around it. */
    pthread_mutex_t locks;
    bal_pg_lock *held;
    PGconn *spare[BAL_PG_SPARE]; /* connections that held a lock */
} bal_pg;

/* ---- postgres_address.c ------------------------------------------------- */

/* rest: a URL without its scheme. EINVAL tells nothing of it. */
BAL_CHECK int bal_pg_address_read(bal_pg_address *out, const char *rest,
                                  bal_error *err);
void bal_pg_address_done(bal_pg_address *self);

/* ---- postgres_connect.c ------------------------------------------------- */

/* Fill err with what a question failed with. Returns the bal_code. */
int bal_pg_fail(const bal_pg *self, const PGresult *result, bal_error *err);
int bal_pg_lost(const bal_pg *self, const PGconn *conn, bal_error *err);
/* A connection, tried for `wait` seconds where the server says that it will be
 * there, or with RETRY, whatever it says. */
enum bal_pg_connect_flags { BAL_PG_RETRY = 1 };
BAL_CHECK int bal_pg_connect(PGconn **out, const bal_pg *self, unsigned flags,
                             bal_error *err);
/* Nothing is known to be wrong with it: does not ask. */
bool bal_pg_alive(const bal_pg *self, PGconn *conn);
/* One question on a connection that is not in pipeline mode. */
BAL_CHECK int bal_pg_ask(PGresult **out, const bal_pg *self, PGconn *conn,
                         const char *sql, const char *const *args, size_t count,
                         bal_error *err);
/* The main connection, with its schema, which is made with BAL_DB_CREATE. */
BAL_CHECK int bal_pg_open_main(bal_pg *self, unsigned flags, bal_error *err);
/* Again, where it is lost. Not inside of a transaction. */
BAL_CHECK int bal_pg_revive(bal_pg *self, bal_error *err);
void bal_pg_close_main(bal_pg *self);

/* ---- postgres_query.c: the caller holds the lock ------------------------ */

/* Fails, as what ended it did, if the transaction is over although nobody asked
 * for that. */
BAL_CHECK int bal_pg_going(const bal_pg *self, bal_error *err);
/* Send it, with no answer awaited. */
BAL_CHECK int bal_pg_send(bal_pg *self, const bal_query *query, bal_error *err);
/* Await the answers to all that was sent. */
BAL_CHECK int bal_pg_settle(bal_pg *self, bal_error *err);
/* See query of bal_db_ops, within a transaction, or reading. */
BAL_CHECK int bal_pg_query_locked(bal_pg *self, const bal_query *query,
                                  bal_error *err);
/* What a statement begins with says whether it writes. */
bool bal_pg_writes(const char *sql);

/* ---- postgres_answer.c -------------------------------------------------- */

/* The next answer's results, noted and thrown away. */
void bal_pg_answer(bal_pg *self);
/* Note what one result says of the question that is next. */
void bal_pg_note(bal_pg *self, PGresult *result);
/* What is left to be answered is not going to be. */
void bal_pg_forget_sent(bal_pg *self);
/* The rows of a query, one by one. 1: there is one, 0: no more. */
int bal_pg_row(bal_pg *self, bal_pg_rows *rows, bal_value *columns,
               size_t *count, bal_error *err);
/* Keep what is still coming, for the connection is needed. */
BAL_CHECK int bal_pg_keep(bal_pg *self, bal_error *err);
/* Pass over the next row that comes. */
void bal_pg_skip(bal_pg *self, bal_pg_rows *rows);
/* Pass the mark behind all that was sent: what follows starts afresh. */
void bal_pg_pass_mark(bal_pg *self);
void bal_pg_rows_done(bal_pg_rows *self);

/* ---- postgres_lock.c ---------------------------------------------------- */

int bal_pg_lock_take(bal_db *self, bal_db_lock **out, enum bal_lock_mode mode,
                     double wait, bal_error *err);
void bal_pg_unlock(bal_db_lock *lock);
BAL_CHECK int bal_pg_place(bal_db *self, bal_buf *to, bal_error *err);
/* EIO if one that is held was lost. */
BAL_CHECK int bal_pg_locks_held(bal_pg *self, bal_error *err);
BAL_CHECK int bal_pg_held(bal_db *self, bal_error *err);
void bal_pg_locks_done(bal_pg *self);

#endif
