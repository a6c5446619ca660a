/* Connections to PostgreSQL: made, made again, and what is said when they or
 * the server fail.
 *
 * Settings of a session come with its start, so that they cost no question and
 * a pool between cannot hand on a session that lacks them: it refuses `options`
 * or passes them on. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/str.h"
#include "graph/postgres.h"

/* Locks are of two numbers: what for, and whose. */
#define MAKING 0x62616c00

/* ---- errors ------------------------------------------------------------- */

typedef struct error_row {
    const char *state; /* what its SQLSTATE begins with */
    int code;
    const char *text; /* NULL: what the server says */
} error_row;

static const error_row errors[] = {
    { "22021", BAL_EINVAL, NULL },
    { "22", BAL_ECORRUPT, NULL },
    { "23", BAL_ECONFLICT, NULL },
    { "25006", BAL_EIO, NULL },
    { "3D000", BAL_ENOTFOUND, NULL },
    { "40001", BAL_EBUSY, "in use by another process" },
    { "40P01", BAL_EBUSY, "in use by another process" },
    { "42501", BAL_EIO, NULL },
    { "42", BAL_ECORRUPT, NULL },
    { "53100", BAL_EIO, "no space left" },
    { "53300", BAL_EBUSY, NULL },
    { "54", BAL_EINVAL, NULL },
    { "55P03", BAL_EBUSY, "in use by another process" },
    { "57014", BAL_ECANCELLED, NULL },
    { "57P03", BAL_EBUSY, NULL },
    { "XX00", BAL_ECORRUPT, NULL },
    { "", BAL_EIO, NULL },
};

static const error_row *error_find(const char *state)
{
    size_t i = 0;

    while (strncmp(errors[i].state, state, strlen(errors[i].state)) != 0)
        i++;
    return &errors[i];
}

/* Its first line: the second is a hint for who types SQL. */
static int first_line(const char *text)
{
    return (int)strcspn(text, "\n");
}

int bal_pg_fail(const bal_pg *self, const PGresult *result, bal_error *err)
{
    const char *state = self->pq->resultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text =
        self->pq->resultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const error_row *row = error_find(state ? state : "");

    if (row->text || !text)
        text = row->text ? row->text : "failed";
    return bal_fail(err, row->code, "database '%s': %.*s", self->address.plain,
                    first_line(text), text);
}

int bal_pg_lost(const bal_pg *self, const PGconn *conn, bal_error *err)
{
    const char *text = conn ? self->pq->errorMessage(conn) : "";

    if (!text[0])
        text = "the connection is lost";
    return bal_fail(err, BAL_EIO, "database '%s': %.*s", self->address.plain,
                    first_line(text), text);
}

/* Something that the server said by itself, as why it ends. */
static bool has_said(const bal_pg *self, PGconn *conn)
{
    struct pollfd wait = { .fd = self->pq->socket(conn), .events = POLLIN };

    return wait.fd >= 0 && poll(&wait, 1, 0) > 0;
}

/* The end of the stream is behind its last words, and found by another look. */
bool bal_pg_alive(const bal_pg *self, PGconn *conn)
{
    if (!conn || self->pq->status(conn) != CONNECTION_OK)
        return false;

    for (int looks = 0; looks < 8 && has_said(self, conn); looks++) {
        if (!self->pq->consumeInput(conn))
            return false;
    }
    return self->pq->status(conn) == CONNECTION_OK;
}

int bal_pg_ask(PGresult **out, const bal_pg *self, PGconn *conn,
               const char *sql, const char *const *args, size_t count,
               bal_error *err)
{
    const bal_pq *pq = self->pq;
    PGresult *last = NULL;
    PGresult *next = NULL;

    if (!pq->sendQueryParams(conn, sql, (int)count, NULL, args, NULL, NULL, 0))
        return bal_pg_lost(self, conn, err);
    while ((next = pq->getResult(conn)) != NULL) {
        pq->clear(last);
        last = next;
    }
    ExecStatusType status = last ? pq->resultStatus(last) : PGRES_FATAL_ERROR;
    bool fine = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    int rc = 0;
    if (!fine)
        rc = last && pq->status(conn) == CONNECTION_OK
                 ? bal_pg_fail(self, last, err)
                 : bal_pg_lost(self, conn, err);
    if (fine && out)
        *out = BAL_TAKE(last);
    pq->clear(last);
    return rc;
}

/* ---- connecting --------------------------------------------------------- */

static void pass_over(void *arg, const char *text)
{
    (void)arg;
    (void)text;
}

#define KEYWORDS 64

/* Keywords in the order of importance: a later one that is given wins. */
typedef struct parameters {
    const char *keys[KEYWORDS];
    const char *values[KEYWORDS];
    size_t count;
} parameters;

static void set(parameters *self, const char *key, const char *value)
{
    if (self->count + 1 == KEYWORDS)
        return;
    self->keys[self->count] = key;
    self->values[self->count++] = value;
}

static const char *given(const PQconninfoOption *all, const char *key)
{
    for (; all->keyword; all++) {
        if (!strcmp(all->keyword, key))
            return all->val;
    }
    return NULL;
}

/* lock_timeout: nobody waits longer than `wait` for the one writer.
 * idle_in_transaction_session_timeout: a machine that vanishes inside of its
 * transaction does not hold up the others for hours. */
static int session_of(bal_buf *to, const bal_pg *self, const char *own,
                      bal_error *err)
{
    long lock = (long)(self->wait * 1000);

    return bal_buf_format(
        to, err,
        "%s -c search_path=%s -c lock_timeout=%ld -c statement_timeout=0 "
        "-c idle_in_transaction_session_timeout=600000 "
        "-c idle_session_timeout=0 -c client_min_messages=warning "
        "-c bytea_output=hex -c default_transaction_read_only=off "
        "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 "
        "-c tcp_keepalives_count=3",
        own ? own : "", self->address.schema, lock < 1 ? 1 : lock);
}

static PGconn *connect_once(const bal_pg *self, const PQconninfoOption *asked,
                            const char *session)
{
    parameters all = { .count = 0 };
    char patience[16];

    snprintf(patience, sizeof(patience), "%d",
             self->wait < 2 ? 2 : (int)self->wait);
    set(&all, "connect_timeout", patience);
    set(&all, "fallback_application_name", "ballast");
    set(&all, "keepalives_idle", "30");
    set(&all, "keepalives_interval", "10");
    set(&all, "keepalives_count", "3");
    set(&all, "tcp_user_timeout", "60000");
    for (; asked->keyword; asked++) {
        if (asked->val && strcmp(asked->keyword, "options") != 0)
            set(&all, asked->keyword, asked->val);
    }
    set(&all, "options", session);
    set(&all, "client_encoding", "UTF8");
    return self->pq->connectdbParams(all.keys, all.values, 0);
}

/* What a server says that is about to be one. */
static bool is_passing(const char *text)
{
    static const char *const words[] = {
        "starting up",   "too many clients", "connection slots",
        "shutting down", "recovery mode",    "too many connections",
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strstr(text, words[i]))
            return true;
    }
    return false;
}

static int connect_for(PGconn **out, const bal_pg *self, unsigned flags,
                       const PQconninfoOption *asked, bal_error *err)
{
    const bal_pq *pq = self->pq;
    double until = bal_clock_ticks() + self->wait;
    BAL_LOCAL(bal_buf) session = { 0 };
    int rc = session_of(&session, self, given(asked, "options"), err);
    if (rc)
        return rc;

    for (double nap = 0.01;; nap = nap < 0.3 ? nap * 2 : nap) {
        PGconn *conn = connect_once(self, asked, bal_buf_string(&session));
        if (!conn)
            return bal_fail_memory(err, "opening a database");
        if (pq->status(conn) == CONNECTION_OK) {
            pq->setNoticeProcessor(conn, pass_over, NULL);
            *out = conn;
            return 0;
        }
        bool passing = is_passing(pq->errorMessage(conn));
        rc = bal_pg_lost(self, conn, err);
        pq->finish(conn);
        if (!passing && !(flags & BAL_PG_RETRY))
            return rc;
        if (bal_clock_ticks() + nap > until)
            return passing ? BAL_EBUSY : rc;
        bal_clock_sleep(nap);
    }
}

int bal_pg_connect(PGconn **out, const bal_pg *self, unsigned flags,
                   bal_error *err)
{
    char *text = NULL;
    PQconninfoOption *asked = self->pq->conninfoParse(self->address.url, &text);

    if (text)
        self->pq->freemem(text);
    if (!asked)
        return bal_fail(err, BAL_EINVAL,
                        "the database's address is not one that libpq reads");
    int rc = connect_for(out, self, flags, asked, err);
    self->pq->conninfoFree(asked);
    return rc;
}

/* ---- the main connection ------------------------------------------------ */

/* The database must hold every text as it is, and writing must mean writing. */
static const char look[] =
    "SELECT (SELECT CAST(CAST(n.oid AS BIGINT) AS TEXT) FROM pg_namespace n"
    "  WHERE n.nspname = $1 AND to_regclass($2) IS NOT NULL), "
    "CASE WHEN has_function_privilege("
    "  'pg_logical_emit_message(boolean,text,text)', 'EXECUTE')"
    "  THEN 't' ELSE 'f' END, "
    "current_setting('server_encoding'), "
    "set_config('synchronous_commit',"
    "  CASE current_setting('synchronous_commit')"
    "  WHEN 'off' THEN 'on'"
    "  ELSE current_setting('synchronous_commit') END, false)";

/* Reads what `look` gives; *there false: no schema, or nothing in it. */
static int look_at(bal_pg *self, PGconn *conn, bool *there, bal_error *err)
{
    const bal_pq *pq = self->pq;
    char table[80];
    const char *const args[] = { self->address.schema, table };
    PGresult *found = NULL;

    snprintf(table, sizeof(table), "%s.changes", self->address.schema);
    int rc = bal_pg_ask(&found, self, conn, look, args, 2, err);
    if (rc)
        return rc;
    *there = !pq->getisnull(found, 0, 0);
    self->grouped = pq->getvalue(found, 0, 1)[0] == 't';
    bool texts = !strcmp(pq->getvalue(found, 0, 2), "UTF8");
    uint64_t number = 0;
    if (*there)
        rc = bal_parse_u64(&number, pq->getvalue(found, 0, 0), err);
    self->schema = (int32_t)number;
    pq->clear(found);
    if (!rc && !texts)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "database '%s' is not of the encoding UTF8",
                        self->address.plain);
    return rc;
}

/* A schema that is there already is not made, for that takes a right that its
 * owner need not have. */
static const char *const making[] = {
    "CREATE TABLE IF NOT EXISTS changes (\n"
    "  one BIGINT PRIMARY KEY CHECK (one = 1),\n"
    "  number BIGINT NOT NULL\n"
    ") WITH (fillfactor = 50)",
    "INSERT INTO changes (one, number) VALUES (1, 1) ON CONFLICT DO NOTHING",
    "COMMIT",
};

static int make_schema(const bal_pg *self, PGconn *conn, bal_error *err)
{
    char sql[128];
    const char *const args[] = { self->address.schema };
    PGresult *found = NULL;
    int rc = bal_pg_ask(&found, self, conn,
                        "SELECT 1 FROM pg_namespace WHERE nspname = $1", args,
                        1, err);
    if (rc)
        return rc;
    bool there = self->pq->ntuples(found) > 0;
    self->pq->clear(found);
    if (there)
        return 0;
    snprintf(sql, sizeof(sql), "CREATE SCHEMA \"%s\"", self->address.schema);
    return bal_pg_ask(NULL, self, conn, sql, NULL, 0, err);
}

/* One at a time, whoever wants the same one. A connection that fails here is
 * closed, which ends the transaction. */
static int make(const bal_pg *self, PGconn *conn, bal_error *err)
{
    char key[16];
    const char *const args[] = { key, self->address.schema };

    snprintf(key, sizeof(key), "%d", MAKING);
    int rc = bal_pg_ask(NULL, self, conn, "BEGIN", NULL, 0, err);
    if (!rc)
        rc = bal_pg_ask(NULL, self, conn,
                        "SELECT pg_advisory_xact_lock(CAST($1 AS INTEGER), "
                        "hashtext($2))",
                        args, 2, err);
    if (!rc)
        rc = make_schema(self, conn, err);
    for (size_t i = 0; i < sizeof(making) / sizeof(making[0]) && !rc; i++)
        rc = bal_pg_ask(NULL, self, conn, making[i], NULL, 0, err);
    return rc;
}

static int settle_in(bal_pg *self, PGconn *conn, unsigned flags, bal_error *err)
{
    bool there = false;
    int rc = look_at(self, conn, &there, err);

    if (!rc && !there && (flags & BAL_DB_CREATE)) {
        rc = make(self, conn, err);
        if (!rc)
            rc = look_at(self, conn, &there, err);
    }
    if (rc)
        return rc;
    if (!there)
        return bal_fail(err, BAL_ENOTFOUND, "no database '%s', schema '%s'",
                        self->address.plain, self->address.schema);
    if (!self->pq->enterPipelineMode(conn))
        return bal_pg_lost(self, conn, err);
    return 0;
}

static int open_with(bal_pg *self, unsigned flags, unsigned how, bal_error *err)
{
    PGconn *conn = NULL;
    int rc = bal_pg_connect(&conn, self, how, err);

    if (!rc)
        rc = settle_in(self, conn, flags, err);
    if (!rc)
        self->conn = BAL_TAKE(conn);
    self->pq->finish(conn);
    return rc;
}

int bal_pg_open_main(bal_pg *self, unsigned flags, bal_error *err)
{
    return open_with(self, flags, 0, err);
}

void bal_pg_close_main(bal_pg *self)
{
    if (self->conn)
        self->pq->finish(self->conn);
    self->conn = NULL;
    bal_pg_forget_sent(self);
    for (size_t i = 0; i < self->cached; i++)
        self->cache[i].sent = false;
}

int bal_pg_revive(bal_pg *self, bal_error *err)
{
    if (bal_pg_alive(self, self->conn))
        return 0;
    bal_pg_close_main(self);
    bal_warn("database", "reconnecting=%s", self->address.plain);
    return open_with(self, 0, BAL_PG_RETRY, err);
}
