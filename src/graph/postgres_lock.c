/* Locks that outlast transactions: advisory locks of PostgreSQL, each on a
 * connection of its own, so that the server gives it back when the process or
 * its machine is gone, and two threads of one process exclude each other as two
 * machines do.
 *
 * Who waits asks again and does not stand in the server's queue: there, one who
 * wants it alone would shut out those who share it, and a command that shares
 * it twice would wait for itself. */
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "graph/inside.h"
#include "graph/postgres.h"

#define STORE 0x62616c02

struct bal_pg_lock {
    bal_db_lock base;
    bal_pg *db;
    PGconn *conn;
    const char *give_back;
    bal_pg_lock *next;
};

typedef struct mode_row {
    const char *take;
    const char *give_back;
} mode_row;

#define KEY "(CAST($1 AS INTEGER), CAST($2 AS INTEGER))"

static const mode_row modes[] = {
    [BAL_LOCK_SHARED] = { "SELECT pg_try_advisory_lock_shared" KEY,
                          "SELECT pg_advisory_unlock_shared" KEY },
    [BAL_LOCK_EXCLUSIVE] = { "SELECT pg_try_advisory_lock" KEY,
                             "SELECT pg_advisory_unlock" KEY },
};

/* ---- connections -------------------------------------------------------- */

/* One that held a lock before, or NULL. */
static PGconn *take_spare(bal_pg *self)
{
    PGconn *conn = NULL;

    pthread_mutex_lock(&self->locks);
    for (size_t i = 0; i < BAL_PG_SPARE && !conn; i++)
        conn = BAL_TAKE(self->spare[i]);
    pthread_mutex_unlock(&self->locks);
    return conn;
}

static void put_spare(bal_pg *self, PGconn *conn)
{
    pthread_mutex_lock(&self->locks);
    for (size_t i = 0; i < BAL_PG_SPARE && conn; i++) {
        if (!self->spare[i])
            self->spare[i] = BAL_TAKE(conn);
    }
    pthread_mutex_unlock(&self->locks);
    if (conn)
        self->pq->finish(conn);
}

static int connection(PGconn **out, bal_pg *self, bal_error *err)
{
    PGconn *conn = NULL;

    while ((conn = take_spare(self)) != NULL) {
        if (bal_pg_alive(self, conn)) {
            *out = conn;
            return 0;
        }
        self->pq->finish(conn);
    }
    return bal_pg_connect(out, self, 0, err);
}

/* ---- taking ------------------------------------------------------------- */

/* *done: the answer is true. */
static int ask(bool *done, const bal_pg *self, PGconn *conn, const char *sql,
               bal_error *err)
{
    char what[16], whose[16];
    const char *const args[] = { what, whose };
    PGresult *found = NULL;

    snprintf(what, sizeof(what), "%d", STORE);
    snprintf(whose, sizeof(whose), "%d", (int)self->schema);
    int rc = bal_pg_ask(&found, self, conn, sql, args, 2, err);
    if (rc)
        return rc;
    *done = self->pq->getvalue(found, 0, 0)[0] == 't';
    self->pq->clear(found);
    return 0;
}

static int try_for(const bal_pg *self, PGconn *conn, const char *sql,
                   double wait, bal_error *err)
{
    double until = bal_clock_ticks() + wait;
    bool done = false;

    for (double nap = 0.002;; nap = nap < 0.05 ? nap * 2 : nap) {
        int rc = ask(&done, self, conn, sql, err);
        if (rc || done)
            return rc;
        if (bal_clock_ticks() >= until)
            return bal_fail(err, BAL_EBUSY,
                            "database '%s': at work for another command",
                            self->address.plain);
        bal_clock_sleep(nap);
    }
}

int bal_pg_lock_take(bal_db *base, bal_db_lock **out, enum bal_lock_mode mode,
                     double wait, bal_error *err)
{
    bal_pg *self = (bal_pg *)base;
    bal_pg_lock *lock = calloc(1, sizeof(*lock));
    PGconn *conn = NULL;

    if (!lock)
        return bal_fail_memory(err, "locking a database");
    int rc = connection(&conn, self, err);
    if (!rc)
        rc = try_for(self, conn, modes[mode].take, wait, err);
    if (rc) {
        if (rc == BAL_EBUSY && conn)
            put_spare(self, BAL_TAKE(conn));
        self->pq->finish(conn);
        free(lock);
        return rc;
    }
    lock->base.ops = &bal_db_postgres;
    lock->db = self;
    lock->conn = conn;
    lock->give_back = modes[mode].give_back;
    pthread_mutex_lock(&self->locks);
    lock->next = self->held;
    self->held = lock;
    pthread_mutex_unlock(&self->locks);
    *out = &lock->base;
    return 0;
}

/* ---- giving back -------------------------------------------------------- */

static void unlink_held(bal_pg *self, bal_pg_lock *lock)
{
    pthread_mutex_lock(&self->locks);
    bal_pg_lock **at = &self->held;
    while (*at != lock)
        at = &(*at)->next;
    *at = lock->next;
    pthread_mutex_unlock(&self->locks);
}

/* What cannot be given back ends with its connection. */
void bal_pg_unlock(bal_db_lock *base)
{
    bal_pg_lock *lock = (bal_pg_lock *)base;
    bal_pg *self = lock->db;
    bool done = false;
    bal_error why;

    unlink_held(self, lock);
    if (bal_pg_alive(self, lock->conn) &&
        !ask(&done, self, lock->conn, lock->give_back, &why) && done)
        put_spare(self, BAL_TAKE(lock->conn));
    self->pq->finish(lock->conn);
    free(lock);
}

typedef bool held_fn(const bal_pg *self, PGconn *conn);

/* What the server has not said yet, a question finds out. */
static bool answers(const bal_pg *self, PGconn *conn)
{
    bal_error why;

    return bal_pg_alive(self, conn) &&
           !bal_pg_ask(NULL, self, conn, "SELECT 1", NULL, 0, &why);
}

static int each_held(bal_pg *self, held_fn *fn, bal_error *err)
{
    bool held = true;

    pthread_mutex_lock(&self->locks);
    for (bal_pg_lock *at = self->held; at && held; at = at->next)
        held = fn(self, at->conn);
    pthread_mutex_unlock(&self->locks);
    if (held)
        return 0;
    return bal_fail(err, BAL_EIO,
                    "database '%s': the connection was lost, and with it the "
                    "hold on the store",
                    self->address.plain);
}

int bal_pg_locks_held(bal_pg *self, bal_error *err)
{
    return each_held(self, bal_pg_alive, err);
}

int bal_pg_held(bal_db *base, bal_error *err)
{
    return each_held((bal_pg *)base, answers, err);
}

void bal_pg_locks_done(bal_pg *self)
{
    for (size_t i = 0; i < BAL_PG_SPARE; i++)
        self->pq->finish(self->spare[i]);
}

/* ---- which database it is -------------------------------------------------
 */

static int take_place(void *ctx, const bal_value *columns, size_t count,
                      bal_error *err)
{
    (void)count;
    int rc =
        bal_buf_append(ctx, columns[0].bytes.data, columns[0].bytes.len, err);
    return rc ? rc : BAL_ROW_STOP;
}

/* A server tells itself from others by when it was started, to the
 * microsecond. */
int bal_pg_place(bal_db *self, bal_buf *to, bal_error *err)
{
    const char *sql = "SELECT concat('postgresql:', current_database(), '/', "
                      "current_schema(), ' of ', pg_postmaster_start_time())";
    int rc = bal_db_query(self, sql, NULL, 0, take_place, to, err);

    return rc ? rc : bal_buf_append(to, "", 0, err);
}
