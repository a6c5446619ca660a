/* Statements on a SQLite connection: prepared once, bound by name, stepped
 * with patience, and what SQLite says when they fail.
 *
 * SQLite numbers parameters by first appearance: in "... $2 ... $1" index 1 is
 * $2. So they are bound by name. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "graph/sqlite.h"

#define MAX_COLUMNS 24

/* ---- errors ------------------------------------------------------------ */

typedef struct error_row {
    int sqlite;
    int code;
    const char *text; /* NULL: what SQLite says */
} error_row;

static const error_row errors[] = {
    { SQLITE_BUSY, BAL_EBUSY, "in use by another process" },
    { SQLITE_LOCKED, BAL_EBUSY, "in use by another process" },
    { SQLITE_PROTOCOL, BAL_EBUSY, "in use by another process" },
    { SQLITE_NOMEM, BAL_ENOMEM, "out of memory" },
    { SQLITE_IOERR_NOMEM, BAL_ENOMEM, "out of memory" },
    { SQLITE_FULL, BAL_EIO, "no space left" },
    { SQLITE_CORRUPT, BAL_ECORRUPT, "malformed" },
    { SQLITE_NOTADB, BAL_ECORRUPT, "not a SQLite database" },
    { SQLITE_ERROR, BAL_ECORRUPT, NULL },
    { SQLITE_MISMATCH, BAL_ECORRUPT, NULL },
    { SQLITE_CONSTRAINT, BAL_ECONFLICT, NULL },
    { SQLITE_READONLY, BAL_EIO, "read-only, or in a read-only directory" },
    { SQLITE_CANTOPEN, BAL_EIO, "cannot be opened" },
    { SQLITE_INTERRUPT, BAL_ECANCELLED, "interrupted" },
    { SQLITE_TOOBIG, BAL_EINVAL, "a value is too large" },
};

static const error_row *error_find(int sqlite)
{
    static const error_row other = { 0, BAL_EIO, NULL };

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].sqlite == sqlite)
            return &errors[i];
    }
    return &other;
}

/* errno of the last file operation, where that is what failed. */
static int cause_of(bal_sqlite *self, int sqlite)
{
    int primary = sqlite & 0xff;

    if (primary != SQLITE_IOERR && primary != SQLITE_CANTOPEN)
        return 0;
    return sqlite3_system_errno(self->handle);
}

/* After some failures (a full disk) SQLite ends the transaction by itself;
 * what follows would then be committed statement by statement. */
static void doom(bal_sqlite *self, int code)
{
    if (self->depth && sqlite3_get_autocommit(self->handle))
        self->doomed = code;
}

int bal_sqlite_fail(bal_sqlite *self, int sqlite, bal_error *err)
{
    const error_row *row = error_find(sqlite);
    int cause = cause_of(self, sqlite);

    if (!row->sqlite)
        row = error_find(sqlite & 0xff);
    if (cause == ENOSPC || cause == EDQUOT)
        row = error_find(SQLITE_FULL);
    const char *text = row->text ? row->text : sqlite3_errmsg(self->handle);
    doom(self, row->code);
    if (!cause || row->code != BAL_EIO || row->sqlite == SQLITE_FULL)
        return bal_fail(err, row->code, "database '%s': %s", self->path, text);

    bal_error told = { 0 };
    errno = cause;
    bal_fail_errno(&told, "database '%s': %s", self->path, text);
    return bal_fail(err, BAL_EIO, "%s", told.text);
}

/* ---- waiting ----------------------------------------------------------- */

int bal_sqlite_wait(void *ctx, int tries)
{
    const bal_sqlite *self = ctx;
    double left = self->deadline - bal_clock_ticks();
    double nap = 0.001 * (tries < 3 ? 1 << tries : 10);

    if (left <= 0)
        return 0;
    bal_clock_sleep(nap < left ? nap : left);
    return 1;
}

static bool is_busy(int sqlite)
{
    int primary = sqlite & 0xff;

    return primary == SQLITE_BUSY || primary == SQLITE_PROTOCOL ||
           primary == SQLITE_LOCKED;
}

/* SQLite gives up at once, without asking its busy handler, where a log is
 * being recovered or a journal mode set by another process. */
static int step_first(bal_sqlite *self, sqlite3_stmt *stmt)
{
    for (int tries = 0;; tries++) {
        int rc = sqlite3_step(stmt);
        if (!is_busy(rc) || !bal_sqlite_wait(self, tries))
            return rc;
        sqlite3_reset(stmt);
    }
}

/* ---- statements -------------------------------------------------------- */

static uint64_t hash_of(const char *sql)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (const char *at = sql; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
    return hash;
}

static int prepare(bal_sqlite *self, bal_statement *to, const char *sql,
                   bal_error *err)
{
    int rc = SQLITE_OK;

    for (int tries = 0;; tries++) {
        rc = sqlite3_prepare_v3(self->handle, sql, -1,
                                SQLITE_PREPARE_PERSISTENT, &to->stmt, NULL);
        if (!is_busy(rc) || !bal_sqlite_wait(self, tries))
            break;
    }
    if (rc != SQLITE_OK)
        return bal_sqlite_fail(self, rc, err);

    assert(sqlite3_column_count(to->stmt) <= MAX_COLUMNS);
    for (int i = 0; i < BAL_SQLITE_ARGS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "$%d", i + 1);
        to->place[i] = sqlite3_bind_parameter_index(to->stmt, name);
    }
    return 0;
}

static bal_statement *cached(bal_sqlite *self, const char *sql, uint64_t hash)
{
    for (size_t i = 0; i < BAL_SQLITE_CACHED; i++) {
        bal_statement *at = &self->cache[i];
        if (at->stmt && at->hash == hash && !at->busy &&
            !strcmp(sqlite3_sql(at->stmt), sql))
            return at;
    }
    return NULL;
}

/* A slot that is free, or was used before any other. NULL: all are in use by
 * queries within queries. */
static bal_statement *slot(bal_sqlite *self)
{
    for (size_t i = 0; i < BAL_SQLITE_CACHED; i++) {
        bal_statement *at = &self->cache[self->next++ % BAL_SQLITE_CACHED];
        if (!at->busy)
            return at;
    }
    return NULL;
}

static int statement_get(bal_statement **out, bal_sqlite *self, const char *sql,
                         bal_error *err)
{
    uint64_t hash = hash_of(sql);
    bal_statement *found = cached(self, sql, hash);
    if (found) {
        *out = found;
        return 0;
    }

    bal_statement *to = slot(self);
    if (!to)
        return bal_fail(err, BAL_EINVAL, "queries nested too deep");
    sqlite3_finalize(to->stmt);
    memset(to, 0, sizeof(*to));
    to->hash = hash;
    int rc = prepare(self, to, sql, err);
    if (rc)
        return rc;
    *out = to;
    return 0;
}

/* The bytes are borrowed until the bal_statement is reset. */
static int bind_one(sqlite3_stmt *stmt, int place, const bal_value *value)
{
    /* SQLite takes a null pointer for NULL, whatever the length. */
    const void *data = value->bytes.data ? value->bytes.data : "";
    sqlite3_uint64 len = value->bytes.len;

    switch (value->type) {
    case BAL_VALUE_INT:
        return sqlite3_bind_int64(stmt, place, value->number);
    case BAL_VALUE_TEXT:
        return sqlite3_bind_text64(stmt, place, data, len, SQLITE_STATIC,
                                   SQLITE_UTF8);
    case BAL_VALUE_BLOB:
        return sqlite3_bind_blob64(stmt, place, data, len, SQLITE_STATIC);
    case BAL_VALUE_NULL:
        break;
    }
    return sqlite3_bind_null(stmt, place);
}

static int bind_all(bal_sqlite *self, const bal_statement *to,
                    const bal_value *args, size_t count, bal_error *err)
{
    assert(count <= BAL_SQLITE_ARGS);
    assert(sqlite3_bind_parameter_count(to->stmt) == (int)count);
    for (size_t i = 0; i < count; i++) {
        assert(to->place[i]);
        int rc = bind_one(to->stmt, to->place[i], &args[i]);
        if (rc != SQLITE_OK)
            return bal_sqlite_fail(self, rc, err);
    }
    return 0;
}

static int column(bal_sqlite *self, bal_value *out, sqlite3_stmt *stmt, int i,
                  bal_error *err)
{
    int type = sqlite3_column_type(stmt, i);

    *out = bal_null();
    if (type == SQLITE_NULL)
        return 0;
    if (type == SQLITE_INTEGER) {
        *out = bal_int(sqlite3_column_int64(stmt, i));
        return 0;
    }
    if (type == SQLITE_FLOAT)
        return bal_fail(err, BAL_ECORRUPT,
                        "database '%s': column '%s' is a real number",
                        self->path, sqlite3_column_name(stmt, i));

    out->type = type == SQLITE_TEXT ? BAL_VALUE_TEXT : BAL_VALUE_BLOB;
    out->bytes.data = type == SQLITE_TEXT
                          ? (const void *)sqlite3_column_text(stmt, i)
                          : sqlite3_column_blob(stmt, i);
    out->bytes.len = sqlite3_column_bytes(stmt, i);
    if (!out->bytes.data && out->bytes.len)
        return bal_sqlite_fail(self, SQLITE_NOMEM, err);
    if (!out->bytes.data)
        out->bytes.data = "";
    return 0;
}

static int pass_row(bal_sqlite *self, sqlite3_stmt *stmt, bal_row_fn *fn,
                    void *ctx, bal_error *err)
{
    bal_value columns[MAX_COLUMNS];
    int count = sqlite3_column_count(stmt);

    if (!fn)
        return 0;
    for (int i = 0; i < count; i++) {
        int rc = column(self, &columns[i], stmt, i, err);
        if (rc)
            return rc;
    }
    return fn(ctx, columns, count, err);
}

static int step_all(bal_sqlite *self, sqlite3_stmt *stmt, bal_row_fn *fn,
                    void *ctx, bal_error *err)
{
    int step = step_first(self, stmt);

    while (step == SQLITE_ROW) {
        int rc = pass_row(self, stmt, fn, ctx, err);
        if (rc == BAL_ROW_STOP)
            return 0;
        if (rc)
            return rc;
        step = sqlite3_step(stmt);
    }
    if (step != SQLITE_DONE)
        return bal_sqlite_fail(self, step, err);
    return 0;
}

int bal_sqlite_alive(bal_sqlite *self, bal_error *err)
{
    if (!self->doomed)
        return 0;
    return bal_fail(err, self->doomed,
                    "database '%s': the transaction was rolled back",
                    self->path);
}

int bal_sqlite_query_locked(bal_sqlite *self, const bal_query *query,
                            bal_error *err)
{
    bal_statement *to = NULL;

    self->deadline = bal_clock_ticks() + self->wait;
    int rc = bal_sqlite_alive(self, err);
    if (rc)
        return rc;
    rc = statement_get(&to, self, query->sql, err);
    if (rc)
        return rc;
    to->busy = true;
    rc = bind_all(self, to, query->args, query->count, err);
    if (!rc)
        rc = step_all(self, to->stmt, query->fn, query->ctx, err);
    if (!rc && query->changed)
        *query->changed = sqlite3_stmt_readonly(to->stmt)
                              ? 0
                              : (uint64_t)sqlite3_changes(self->handle);
    sqlite3_reset(to->stmt);
    sqlite3_clear_bindings(to->stmt);
    to->busy = false;
    return rc;
}

int bal_sqlite_run_locked(bal_sqlite *self, const char *sql, bal_error *err)
{
    const bal_query query = { .sql = sql };

    return bal_sqlite_query_locked(self, &query, err);
}
