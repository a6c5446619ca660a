/* Statements on a PostgreSQL connection: prepared once, sent in a pipeline,
 * their rows handed on as they come.
 *
 * What only writes is not waited for: its answer comes with that of the next
 * question that is. A commit of a hundred rows is a handful of round trips, and
 * the one writer's turn is as long as those. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "graph/postgres.h"

bool bal_pg_writes(const char *sql)
{
    static const char *const reads[] = { "SELECT", "WITH", "VALUES" };

    for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
        if (!strncmp(sql, reads[i], strlen(reads[i])))
            return false;
    }
    return true;
}

int bal_pg_going(const bal_pg *self, bal_error *err)
{
    if (!self->doomed)
        return 0;
    return bal_fail(err, self->doomed, "%s", self->why.text);
}

/* ---- arguments ---------------------------------------------------------- */

typedef struct arguments {
    Oid types[BAL_PG_ARGS];
    const char *values[BAL_PG_ARGS];
    int lengths[BAL_PG_ARGS];
    int formats[BAL_PG_ARGS];
    char numbers[BAL_PG_ARGS][8];
    char letters[BAL_PG_ARGS + 1];
    int count;
} arguments;

/* A null is of the type that the statement asks for in its place. */
static const struct {
    Oid oid;
    char letter;
} kinds[] = {
    [BAL_VALUE_NULL] = { 0, 'n' },
    [BAL_VALUE_INT] = { 20, 'i' },
    [BAL_VALUE_TEXT] = { 25, 't' },
    [BAL_VALUE_BLOB] = { 17, 'b' },
};

static void bind_number(char out[8], int64_t number)
{
    for (int i = 0; i < 8; i++)
        out[i] = (char)((uint64_t)number >> (56 - 8 * i));
}

static int bind_one(arguments *self, size_t i, const bal_value *value,
                    bal_error *err)
{
    const bal_bytes *bytes = &value->bytes;

    self->types[i] = kinds[value->type].oid;
    self->letters[i] = kinds[value->type].letter;
    self->formats[i] = 1;
    if (value->type == BAL_VALUE_NULL)
        return 0;
    if (value->type == BAL_VALUE_INT) {
        bind_number(self->numbers[i], value->number);
        self->values[i] = self->numbers[i];
        self->lengths[i] = sizeof(self->numbers[i]);
        return 0;
    }
    if (bytes->len > INT_MAX)
        return bal_fail(err, BAL_EINVAL, "a value is too large");
    if (value->type == BAL_VALUE_TEXT && bytes->len &&
        memchr(bytes->data, 0, bytes->len))
        return bal_fail(err, BAL_EINVAL,
                        "PostgreSQL keeps no text with a NUL in it");
    self->values[i] = bytes->len ? bytes->data : "";
    self->lengths[i] = (int)bytes->len;
    return 0;
}

static int bind_all(arguments *self, const bal_query *query, bal_error *err)
{
    assert(query->count <= BAL_PG_ARGS);
    *self = (arguments){ .count = (int)query->count };
    for (size_t i = 0; i < query->count; i++) {
        int rc = bind_one(self, i, &query->args[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- statements --------------------------------------------------------- */

static uint64_t hash_of(const char *sql, const char *types)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (const char *at = sql; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
    for (const char *at = types; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
    return hash;
}

/* NULL: the cache is full, or there is no memory; then it is not prepared. */
static bal_pg_statement *statement_of(bal_pg *self, const char *sql,
                                      const char *types)
{
    uint64_t hash = hash_of(sql, types);

    for (size_t i = 0; i < self->cached; i++) {
        bal_pg_statement *at = &self->cache[i];
        if (at->hash == hash && !strcmp(at->sql, sql) &&
            !strcmp(at->types, types))
            return at;
    }
    if (self->cached == BAL_PG_CACHED)
        return NULL;
    bal_pg_statement *to = &self->cache[self->cached];
    to->sql = bal_str_copy(sql);
    if (!to->sql)
        return NULL;
    to->hash = hash;
    memcpy(to->types, types, strlen(types) + 1);
    self->cached++;
    return to;
}

static void push(bal_pg *self, bal_pg_statement *prepares, bool commits)
{
    self->sent[self->sent_count++] =
        (bal_pg_sent){ prepares, commits, self->begun };
    self->unsynced++;
}

/* Tables are made and dropped once: such a statement is not worth a name. */
static bool is_prepared(const char *sql)
{
    static const char *const words[] = { "SELECT", "WITH", "INSERT", "UPDATE",
                                         "DELETE" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!strncmp(sql, words[i], strlen(words[i])))
            return true;
    }
    return false;
}

static bool send_it(bal_pg *self, const char *sql, const arguments *args)
{
    const bal_pq *pq = self->pq;
    char name[16];
    bal_pg_statement *to =
        is_prepared(sql) ? statement_of(self, sql, args->letters) : NULL;

    if (!to) {
        if (!pq->sendQueryParams(self->conn, sql, args->count, args->types,
                                 args->values, args->lengths, args->formats, 1))
            return false;
        push(self, NULL, !strcmp(sql, "COMMIT"));
        return true;
    }
    snprintf(name, sizeof(name), "s%zu", (size_t)(to - self->cache));
    if (!to->sent) {
        if (!pq->sendPrepare(self->conn, name, sql, args->count, args->types))
            return false;
        to->sent = true;
        push(self, to, false);
    }
    if (!pq->sendQueryPrepared(self->conn, name, args->count, args->values,
                               args->lengths, args->formats, 1))
        return false;
    push(self, NULL, false);
    return true;
}

/* Room for a statement and its being prepared. */
static int make_room(bal_pg *self, bal_error *err)
{
    if (self->sent_count + 2 <= BAL_PG_SENT)
        return 0;
    return bal_pg_settle(self, err);
}

static int send_failed(bal_pg *self, bal_error *err)
{
    int rc = bal_pg_lost(self, self->conn, err);

    if (self->depth && !self->doomed) {
        self->doomed = rc;
        bal_pg_lost(self, self->conn, &self->why);
    }
    return rc;
}

int bal_pg_send(bal_pg *self, const bal_query *query, bal_error *err)
{
    arguments args;
    int rc = make_room(self, err);

    if (!rc)
        rc = bind_all(&args, query, err);
    if (rc)
        return rc;
    return send_it(self, query->sql, &args) ? 0 : send_failed(self, err);
}

/* ---- answers ------------------------------------------------------------ */

/* What doomed a transaction stays; a query by itself has failed and is over. */
static int outcome(bal_pg *self, bal_error *err)
{
    int rc = bal_pg_going(self, err);

    if (!self->depth)
        self->doomed = 0;
    return rc;
}

static int sync_sent(bal_pg *self, bal_error *err)
{
    if (!self->unsynced)
        return 0;
    if (!self->pq->pipelineSync(self->conn)) {
        bal_pg_forget_sent(self);
        return send_failed(self, err);
    }
    self->unsynced = 0;
    self->marked = true;
    return 0;
}

int bal_pg_settle(bal_pg *self, bal_error *err)
{
    int rc = sync_sent(self, err);
    if (rc)
        return rc;

    while (self->sent_at < self->sent_count)
        bal_pg_answer(self);
    bal_pg_pass_mark(self);
    return outcome(self, err);
}

/* ---- queries ------------------------------------------------------------ */

static int pass_rows(bal_pg *self, const bal_query *query, bal_error *err)
{
    bal_value columns[BAL_PG_COLUMNS];
    size_t count = 0;

    for (;;) {
        int rc = bal_pg_row(self, self->rows, columns, &count, err);
        if (rc == 1)
            rc = query->fn ? query->fn(query->ctx, columns, count, err) : 0;
        else
            return rc;
        if (rc)
            return rc == BAL_ROW_STOP ? 0 : rc;
    }
}

/* A query that has rows, or of which it is to be known how many it wrote. Its
 * rows come one by one, so that a million of them need no memory; what a row
 * function has stopped short of is read and thrown away. */
static int run(bal_pg *self, const bal_query *query, bal_error *err)
{
    bal_pg_rows rows = { .kept = { .ceiling = (size_t)2 << 30 } };
    bal_pg_rows *outer = self->rows;

    int rc = sync_sent(self, err);
    if (rc)
        return rc;
    while (self->sent_at + 1 < self->sent_count)
        bal_pg_answer(self);
    uint64_t before = self->writes;
    rows.coming = self->sent_count > 0;
    if (rows.coming)
        self->pq->setSingleRowMode(self->conn);
    self->rows = &rows;
    rc = pass_rows(self, query, err);
    self->pq->clear(rows.held);
    rows.held = NULL;
    while (rows.coming)
        bal_pg_skip(self, &rows);
    bal_pg_rows_done(&rows);
    self->rows = outer;
    bal_pg_pass_mark(self);
    if (query->changed)
        *query->changed = self->writes - before;
    int failed = outcome(self, rc ? NULL : err);
    return rc ? rc : failed;
}

int bal_pg_query_locked(bal_pg *self, const bal_query *query, bal_error *err)
{
    int rc = bal_pg_keep(self, err);

    if (!rc)
        rc = bal_pg_going(self, err);
    if (!rc && !self->depth)
        rc = bal_pg_revive(self, err);
    if (rc)
        return rc;
    if (bal_pg_writes(query->sql))
        self->dirty = true;
    rc = bal_pg_send(self, query, err);
    if (rc)
        return rc;
    if (self->depth && self->write && !query->fn && !query->changed)
        return 0;
    return run(self, query, err);
}
