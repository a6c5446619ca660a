/* The SQLite driver's connection, and running statements on it. */
#ifndef GRAPH_SQLITE_H
#define GRAPH_SQLITE_H

#include <pthread.h>
#include <sqlite3.h>

#include "graph/db.h"

#define BAL_SQLITE_ARGS 16
/* More than the tree has SQL texts. */
#define BAL_SQLITE_CACHED 192
#define BAL_SQLITE_LEVELS 8

typedef struct bal_statement {
    sqlite3_stmt *stmt;
    uint64_t hash;
    bool busy; /* a row function of its own query asks again */
    int place[BAL_SQLITE_ARGS];
} bal_statement;

typedef struct bal_sqlite {
    bal_db base;
    sqlite3 *handle;
    char *path;
    double wait;
    /* Guards all below and the connection. Held by a transaction from begin to
     * its end and by a query outside of one while it lasts. Recursive, since a
     * transaction's queries, a row function's queries and inner transactions
     * come from the thread that has it. */
    pthread_mutex_t lock;
    double deadline; /* of the call in hand, by bal_clock_ticks */
    unsigned depth;  /* transactions begun, the inner ones included */
    bool write;
    int changes[BAL_SQLITE_LEVELS]; /* SQLite's count when each began */
    int doomed; /* 0, or why all must be rolled back: a bal_code */
    bal_statement cache[BAL_SQLITE_CACHED];
    size_t next; /* where the cache is overwritten next */
} bal_sqlite;

/* Fill err with what a call on the connection failed with. Returns the
 * bal_code. */
int bal_sqlite_fail(bal_sqlite *self, int sqlite, bal_error *err);
/* SQLite's busy handler: sleeps a little, or gives 0 after the deadline. */
int bal_sqlite_wait(void *self, int tries);
/* Fails, as what ended it did, if the transaction is over although nobody asked
 * for that. */
BAL_CHECK int bal_sqlite_alive(bal_sqlite *self, bal_error *err);
/* See query of bal_db_ops. The caller holds the lock. */
BAL_CHECK int bal_sqlite_query_locked(bal_sqlite *self, const bal_query *query,
                                      bal_error *err);
BAL_CHECK int bal_sqlite_run_locked(bal_sqlite *self, const char *sql,
                                    bal_error *err);

#endif
