/* The PostgreSQL driver: transactions, what has changed, scrubbing.
 *
 * As in SQLite, there is one writer at a time: it takes an advisory lock, named
 * by the schema, before its transaction reads anything. So nothing that the
 * graph's SQL assumes of SQLite is different here, nothing fails for another
 * writer's sake, and nothing need be tried again. Who reads sees one moment
 * (REPEATABLE READ) and never waits.
 *
 * Its turn does not last until the disk has it: the transaction commits without
 * waiting for that, which ends the turn, and in the same round trip a second
 * one, of a mark in the log, is flushed. What is flushed is all that stands
 * before it, whoever wrote it, so that many writers share a flush; and who is
 * told of a commit knows that it and all it stands on are durable. */
#include "graph/postgres.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/str.h"
#include "graph/inside.h"

#define WRITING 0x62616c01

/* ---- beginning ---------------------------------------------------------- */

static int ask_alone(bal_pg *self, const char *sql, bal_error *err)
{
    const bal_query query = { .sql = sql };

    return bal_pg_send(self, &query, err);
}

/* The transaction is over; nothing of it is left on the server. What was sent
 * is awaited first: after a failure the server passes over all that follows. */
static void give_up(bal_pg *self)
{
    bal_error why = { 0 };
    bool sent = bal_pg_alive(self, self->conn) && !bal_pg_keep(self, &why);

    self->depth = 0;
    if (sent) {
        (void)!bal_pg_settle(self, &why);
        self->doomed = 0;
        sent = !ask_alone(self, "ROLLBACK", &why) && !bal_pg_settle(self, &why);
    }
    if (!sent)
        bal_pg_close_main(self);
    self->doomed = 0;
}

static int begin_writing(bal_pg *self, bal_error *err)
{
    const bal_value args[] = { bal_int(WRITING), bal_int(self->schema) };
    const bal_query turn = {
        .sql = self->grouped
                   ? "SELECT pg_advisory_xact_lock(CAST($1 AS INTEGER), "
                     "CAST($2 AS INTEGER)), "
                     "set_config('synchronous_commit', 'off', true)"
                   : "SELECT pg_advisory_xact_lock(CAST($1 AS INTEGER), "
                     "CAST($2 AS INTEGER))",
        .args = args,
        .count = 2,
    };
    int rc = ask_alone(self, "BEGIN ISOLATION LEVEL READ COMMITTED", err);

    if (!rc)
        rc = bal_pg_send(self, &turn, err);
    return rc ? rc : bal_pg_settle(self, err);
}

static int begin_locked(bal_pg *self, unsigned flags, bal_error *err)
{
    bool write = flags & BAL_TX_WRITE;

    if (self->depth) {
        assert(!write || self->write);
        assert(self->depth < BAL_PG_LEVELS);
        self->began[self->depth++] = ++self->begun;
        return 0;
    }
    int rc = bal_pg_keep(self, err);
    if (!rc)
        rc = bal_pg_revive(self, err);
    if (rc)
        return rc;
    self->doomed = 0;
    self->dirty = false;
    self->write = write;
    self->began[0] = ++self->begun;
    self->depth = 1;
    rc = write ? begin_writing(self, err)
               : ask_alone(self,
                           "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
                           err);
    if (rc)
        give_up(self);
    return rc;
}

static int postgres_begin(bal_db *base, unsigned flags, bal_error *err)
{
    bal_pg *self = (bal_pg *)base;

    pthread_mutex_lock(&self->lock);
    int rc = begin_locked(self, flags, err);
    if (rc)
        pthread_mutex_unlock(&self->lock);
    return rc;
}

/* ---- ending ------------------------------------------------------------- */

static int send_commit(bal_pg *self, bool wrote, bool flush, bal_error *err)
{
    int rc =
        wrote ? ask_alone(self, "UPDATE changes SET number = number + 1", err)
              : 0;

    if (!rc)
        rc = ask_alone(self, "COMMIT", err);
    if (!rc && flush)
        rc = ask_alone(
            self, "SELECT pg_logical_emit_message(true, 'ballast', '')", err);
    return rc;
}

/* The server has been asked to commit and has not said that it did not. */
static int unknown(const bal_pg *self, bal_error *err)
{
    bal_fail(err, BAL_EIO,
             "database '%s': the connection was lost during a commit, of "
             "which it is not known whether it was done",
             self->address.plain);
    return bal_hint(err, BAL_EIO, "look before doing it again");
}

static int commit_locked(bal_pg *self, bal_error *err)
{
    bool wrote = self->write && self->dirty;
    bool flush = wrote && self->grouped;
    int rc = bal_pg_keep(self, err);
    if (!rc)
        rc = bal_pg_going(self, err);
    if (!rc && wrote)
        rc = bal_pg_locks_held(self, err);
    if (!rc)
        rc = send_commit(self, wrote, flush, err);
    if (rc)
        return rc;
    self->committed = false;
    rc = bal_pg_settle(self, err);
    if (!rc && self->committed)
        return 0;
    bool lost = self->pq->status(self->conn) != CONNECTION_OK;
    if (wrote && (lost || self->committed))
        return unknown(self, err);
    return rc ? rc
              : bal_fail(err, BAL_EIO,
                         "database '%s': the transaction was rolled back",
                         self->address.plain);
}

static int postgres_commit(bal_db *base, bal_error *err)
{
    bal_pg *self = (bal_pg *)base;

    assert(self->depth);
    int rc =
        self->depth == 1 ? commit_locked(self, err) : bal_pg_going(self, err);
    if (rc)
        return rc;
    self->depth--;
    pthread_mutex_unlock(&self->lock);
    return 0;
}

static void doom(bal_pg *self)
{
    if (self->doomed)
        return;
    self->doomed = bal_fail(&self->why, BAL_EIO,
                            "database '%s': the transaction was rolled back",
                            self->address.plain);
}

static void postgres_rollback(bal_db *base)
{
    bal_pg *self = (bal_pg *)base;
    bal_error why;

    assert(self->depth);
    if (self->depth == 1) {
        give_up(self);
        pthread_mutex_unlock(&self->lock);
        return;
    }
    /* How much it wrote is known when all is answered. */
    bool failed =
        self->write && (bal_pg_keep(self, &why) || bal_pg_settle(self, &why));
    if (failed || self->wrote >= self->began[self->depth - 1])
        doom(self); /* half of it will not be committed */
    self->depth--;
    pthread_mutex_unlock(&self->lock);
}

/* ---- queries ------------------------------------------------------------ */

/* What writes outside of a transaction is one: its turn has to come. */
static int write_alone(bal_pg *self, const bal_query *query, bal_error *err)
{
    int rc = begin_locked(self, BAL_TX_WRITE, err);
    if (rc)
        return rc;

    rc = bal_pg_query_locked(self, query, err);
    if (!rc)
        rc = commit_locked(self, err);
    if (rc)
        give_up(self);
    self->depth = 0;
    return rc;
}

static int postgres_query(bal_db *base, const bal_query *query, bal_error *err)
{
    bal_pg *self = (bal_pg *)base;

    pthread_mutex_lock(&self->lock);
    int rc = !self->depth && bal_pg_writes(query->sql)
                 ? write_alone(self, query, err)
                 : bal_pg_query_locked(self, query, err);
    pthread_mutex_unlock(&self->lock);
    return rc;
}

static int take_number(void *ctx, const bal_value *columns, size_t count,
                       bal_error *err)
{
    (void)count;
    (void)err;
    *(int64_t *)ctx = columns[0].number;
    return BAL_ROW_STOP;
}

static int postgres_changes(bal_db *base, uint64_t *out, bal_error *err)
{
    int64_t number = 0;
    const bal_query query = {
        .sql = "SELECT number FROM changes",
        .fn = take_number,
        .ctx = &number,
    };
    int rc = postgres_query(base, &query, err);

    if (!rc)
        *out = (uint64_t)number;
    return rc;
}

/* ---- scrubbing ---------------------------------------------------------- */

/* The server passes over what is not the role's own, and says that it has done
 * it. */
static int add_name(void *ctx, const bal_value *columns, size_t count,
                    bal_error *err)
{
    (void)count;
    if (!columns[1].number)
        return bal_fail(err, BAL_EIO,
                        "table '%s' is not of the role that would scrub it",
                        (const char *)columns[0].bytes.data);
    return bal_buf_append(ctx, columns[0].bytes.data, columns[0].bytes.len + 1,
                          err);
}

static int tables_of(bal_pg *self, bal_buf *to, bal_error *err)
{
    const bal_query query = {
        .sql = "SELECT quote_ident(c.relname), "
               "pg_has_role(c.relowner, 'USAGE') FROM pg_class c "
               "JOIN pg_namespace n ON n.oid = c.relnamespace "
               "WHERE n.nspname = current_schema() AND c.relkind = 'r' "
               "ORDER BY c.relname",
        .fn = add_name,
        .ctx = to,
    };

    return bal_pg_query_locked(self, &query, err);
}

/* Who began before now may still see what is deleted, and so it would be kept.
 * Of others' sessions only a superuser is told; a store's are of one role. */
static int readers(bal_pg *self, int64_t *count, bal_error *err)
{
    const bal_query query = {
        .sql = "SELECT COUNT(*) FROM pg_stat_activity "
               "WHERE datname = current_database() "
               "AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL "
               "AND backend_type = 'client backend'",
        .fn = take_number,
        .ctx = count,
    };

    return bal_pg_query_locked(self, &query, err);
}

static int await_readers(bal_pg *self, double wait, bal_error *err)
{
    double until = bal_clock_ticks() + wait;

    for (;;) {
        int64_t count = 0;
        int rc = readers(self, &count, err);
        if (rc || !count)
            return rc;
        if (bal_clock_ticks() >= until)
            return bal_fail(err, BAL_EBUSY,
                            "database '%s': a reader still sees what was "
                            "deleted",
                            self->address.plain);
        bal_clock_sleep(0.02);
    }
}

/* The rows that are left are written into new files, and the old ones are
 * removed. Nothing can be said of the server's own log, of its copies on other
 * machines and of backups: see docs/postgres.md. */
static int rewrite_all(bal_pg *self, double wait, bal_error *err)
{
    BAL_LOCAL(bal_buf) names = { 0 };
    int rc = tables_of(self, &names, err);

    if (!rc)
        rc = await_readers(self, wait, err);
    for (size_t at = 0; at < names.len && !rc;
         at += strlen(names.data + at) + 1) {
        BAL_LOCAL(bal_buf) sql = { 0 };
        rc = bal_buf_format(&sql, err, "VACUUM (FULL, ANALYZE) %s",
                            names.data + at);
        const bal_query query = { .sql = bal_buf_string(&sql) };
        if (!rc)
            rc = bal_pg_query_locked(self, &query, err);
    }
    return rc;
}

static int set_patience(bal_pg *self, double wait, bal_error *err)
{
    BAL_LOCAL(bal_buf) sql = { 0 };
    long most = (long)(wait * 1000);
    int rc = bal_buf_format(&sql, err, "SET lock_timeout = %ld",
                            most < 1 ? 1 : most);
    if (!rc)
        rc = ask_alone(self, bal_buf_string(&sql), err);
    return rc ? rc : bal_pg_settle(self, err);
}

static int scrub_locked(bal_pg *self, unsigned flags, bal_error *err)
{
    double wait = flags & BAL_SCRUB_NOW ? 0 : self->wait;

    if (self->depth)
        return bal_fail(err, BAL_EINVAL,
                        "a database is not scrubbed inside a transaction");
    int rc = bal_pg_keep(self, err);
    if (!rc)
        rc = bal_pg_revive(self, err);
    if (!rc)
        rc = set_patience(self, wait, err);
    if (!rc)
        rc = rewrite_all(self, wait, err);
    bal_error why;
    if (set_patience(self, self->wait, &why))
        bal_pg_close_main(self);
    return rc;
}

static int postgres_scrub(bal_db *base, unsigned flags, bal_error *err)
{
    bal_pg *self = (bal_pg *)base;

    pthread_mutex_lock(&self->lock);
    int rc = scrub_locked(self, flags, err);
    pthread_mutex_unlock(&self->lock);
    return rc;
}

/* ---- opening and closing ------------------------------------------------ */

static void postgres_free(bal_db *base)
{
    bal_pg *self = (bal_pg *)base;

    bal_pg_locks_done(self);
    bal_pg_close_main(self);
    for (size_t i = 0; i < self->cached; i++)
        bal_str_free(self->cache[i].sql);
    bal_pg_address_done(&self->address);
    pthread_mutex_destroy(&self->lock);
    pthread_mutex_destroy(&self->locks);
    free(self);
}

static int locks_init(bal_pg *self)
{
    pthread_mutexattr_t attr;

    if (pthread_mutexattr_init(&attr))
        return -1;
    int rc = pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    if (!rc)
        rc = pthread_mutex_init(&self->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    if (rc)
        return rc;
    rc = pthread_mutex_init(&self->locks, NULL);
    if (rc)
        pthread_mutex_destroy(&self->lock);
    return rc;
}

static int postgres_open(bal_db **out, const char *rest, const char *root,
                         double wait, unsigned flags, bal_error *err)
{
    bal_pg_address address = { 0 };

    (void)root;
    int rc = bal_pq_load(err);
    if (!rc)
        rc = bal_pg_address_read(&address, rest, err);
    if (rc)
        return rc;
    bal_pg *server = calloc(1, sizeof(*server));
    if (!server || locks_init(server)) {
        bal_pg_address_done(&address);
        free(server);
        return bal_fail_memory(err, "opening a database");
    }
    server->base.ops = &bal_db_postgres;
    server->pq = bal_pq_use();
    server->address = address;
    server->wait = wait;
    BAL_OWN(bal_db) self = &server->base;

    rc = bal_pg_open_main(server, flags, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

static int postgres_plain(char **out, const char *rest, bal_error *err)
{
    bal_pg_address address = { 0 };
    int rc = bal_pg_address_read(&address, rest, err);
    if (rc)
        return rc;

    *out = BAL_TAKE(address.plain);
    bal_pg_address_done(&address);
    return 0;
}

/* Texts are compared by their bytes, as SQLite does. The longer of two that
 * begin alike stands first. */
static const bal_db_word words[] = {
    { "INTEGER PRIMARY KEY",
      "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY" },
    { "INTEGER", "BIGINT" },
    { "BLOB", "BYTEA" },
    { "TEXT", "TEXT COLLATE \"C\"" },
    { " STRICT, WITHOUT ROWID", "" },
    { " STRICT", "" },
    { NULL, NULL },
};

const bal_db_ops bal_db_postgres = {
    .scheme = "postgresql",
    .words = words,
    .open = postgres_open,
    .plain = postgres_plain,
    .query = postgres_query,
    .begin = postgres_begin,
    .commit = postgres_commit,
    .rollback = postgres_rollback,
    .scrub = postgres_scrub,
    .changes = postgres_changes,
    .place = bal_pg_place,
    .lock = bal_pg_lock_take,
    .unlock = bal_pg_unlock,
    .held = bal_pg_held,
    .free = postgres_free,
};
