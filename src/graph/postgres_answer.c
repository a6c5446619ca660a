/* What comes back from PostgreSQL. Questions are sent in a pipeline: answers
 * come in their order, and after one that failed the others are passed over up
 * to the next sync. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/str.h"
#include "graph/postgres.h"

/* ---- noting ------------------------------------------------------------- */

/* What failed first is what is told; in a transaction it is the end of it. */
static void note_failure(bal_pg *self, const PGresult *result)
{
    bal_error why = { 0 };
    bool lost = self->pq->status(self->conn) != CONNECTION_OK;
    int rc = lost ? bal_pg_lost(self, self->conn, &why)
                  : bal_pg_fail(self, result, &why);

    if (self->doomed)
        return;
    self->doomed = rc;
    self->why = why;
}

/* Rows that were read are not rows that were written. What has no count makes
 * or drops a table. */
static uint64_t written(const bal_pg *self, PGresult *result)
{
    static const char *const counted[] = { "INSERT", "UPDATE", "DELETE" };
    static const char *const none[] = { "SELECT", "BEGIN", "COMMIT", "ROLLBACK",
                                        "SET" };
    const char *tag = self->pq->cmdStatus(result);
    uint64_t rows = 0;

    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        if (!strncmp(tag, none[i], strlen(none[i])))
            return 0;
    }
    for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++) {
        if (!strncmp(tag, counted[i], strlen(counted[i])))
            return bal_parse_u64(&rows, self->pq->cmdTuples(result), NULL)
                       ? 0
                       : rows;
    }
    return 1;
}

void bal_pg_note(bal_pg *self, PGresult *result)
{
    const bal_pg_sent *at = &self->sent[self->sent_at];
    ExecStatusType status = self->pq->resultStatus(result);
    bool fine = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ||
                status == PGRES_SINGLE_TUPLE;

    if (at->prepares && !fine)
        at->prepares->sent = false;
    if (status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE)
        note_failure(self, result);
    if (!fine || at->prepares || status == PGRES_SINGLE_TUPLE)
        return;
    uint64_t rows = written(self, result);
    self->writes += rows;
    if (rows)
        self->wrote = at->begun;
    if (at->commits)
        self->committed = !strcmp(self->pq->cmdStatus(result), "COMMIT");
}

void bal_pg_answer(bal_pg *self)
{
    PGresult *result = NULL;

    while ((result = self->pq->getResult(self->conn)) != NULL) {
        bal_pg_note(self, result);
        self->pq->clear(result);
        if (self->pq->status(self->conn) != CONNECTION_OK) {
            bal_pg_forget_sent(self);
            return;
        }
    }
    self->sent_at++;
}

void bal_pg_forget_sent(bal_pg *self)
{
    self->sent_count = self->sent_at = self->unsynced = 0;
    self->marked = false;
}

void bal_pg_pass_mark(bal_pg *self)
{
    if (!self->marked)
        return;
    self->pq->clear(self->pq->getResult(self->conn));
    bal_pg_forget_sent(self);
}

/* ---- columns ------------------------------------------------------------ */

static uint64_t big_endian(const char *data, size_t len)
{
    uint64_t out = 0;

    for (size_t i = 0; i < len; i++)
        out = out << 8 | (uint8_t)data[i];
    return out;
}

/* By the numbers that PostgreSQL's types have in every database. */
typedef struct type_row {
    Oid oid;
    bal_value_type type;
    int len; /* of a number */
} type_row;

static const type_row types[] = {
    { 20, BAL_VALUE_INT, 8 },   { 23, BAL_VALUE_INT, 4 },
    { 21, BAL_VALUE_INT, 2 },   { 16, BAL_VALUE_INT, 1 },
    { 17, BAL_VALUE_BLOB, 0 },  { 25, BAL_VALUE_TEXT, 0 },
    { 19, BAL_VALUE_TEXT, 0 },  { 1043, BAL_VALUE_TEXT, 0 },
    { 705, BAL_VALUE_TEXT, 0 },
};

static const type_row *type_find(Oid oid)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].oid == oid)
            return &types[i];
    }
    return NULL;
}

static int64_t number_of(const char *data, int len)
{
    uint64_t bits = big_endian(data, (size_t)len);

    if (len == 4)
        return (int32_t)(uint32_t)bits;
    if (len == 2)
        return (int16_t)(uint16_t)bits;
    return (int64_t)bits;
}

/* libpq puts a NUL behind every value. */
static int column(const bal_pg *self, bal_value *out, const PGresult *row,
                  int line, int i, bal_error *err)
{
    const bal_pq *pq = self->pq;
    const type_row *type = type_find(pq->ftype(row, i));
    const char *data = pq->getvalue(row, line, i);
    int len = pq->getlength(row, line, i);

    *out = (bal_value){ .type = BAL_VALUE_NULL };
    if (pq->getisnull(row, line, i))
        return 0;
    if (!type || (type->len && type->len != len))
        return bal_fail(err, BAL_ECORRUPT,
                        "database '%s': column '%s' is of a type that is not "
                        "known",
                        self->address.plain, pq->fname(row, i));
    out->type = type->type;
    if (type->len)
        out->number = number_of(data, len);
    else
        out->bytes = (bal_bytes){ data, (size_t)len };
    return 0;
}

static int columns_of(const bal_pg *self, bal_value *out, size_t *count,
                      const PGresult *row, int line, bal_error *err)
{
    int n = self->pq->nfields(row);

    assert(n <= BAL_PG_COLUMNS);
    *count = (size_t)n;
    for (int i = 0; i < n; i++) {
        int rc = column(self, &out[i], row, line, i, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- keeping ------------------------------------------------------------ */

/* A row that is kept: how many columns, the values, and then what those that
 * have bytes have, a NUL behind each, filled up to eight. */
static int keep_row(bal_buf *to, const bal_value *columns, size_t count,
                    bal_error *err)
{
    static const char zeros[8] = { 0 };
    uint64_t n = count;
    int rc = bal_buf_append(to, &n, sizeof(n), err);

    if (!rc && count)
        rc = bal_buf_append(to, columns, count * sizeof(*columns), err);
    for (size_t i = 0; i < count && !rc; i++) {
        size_t len = columns[i].bytes.len;
        if (columns[i].type < BAL_VALUE_TEXT)
            continue;
        if (len)
            rc = bal_buf_append(to, columns[i].bytes.data, len, err);
        if (!rc)
            rc = bal_buf_append(to, zeros, 8 - len % 8, err);
    }
    return rc;
}

static int kept_row(bal_pg_rows *self, bal_value *columns, size_t *count)
{
    uint64_t n = 0;

    if (self->at == self->kept.len)
        return 0;
    memcpy(&n, self->kept.data + self->at, sizeof(n));
    self->at += sizeof(n);
    if (n)
        memcpy(columns, self->kept.data + self->at, n * sizeof(*columns));
    self->at += n * sizeof(*columns);
    for (size_t i = 0; i < n; i++) {
        if (columns[i].type < BAL_VALUE_TEXT)
            continue;
        columns[i].bytes.data = self->kept.data + self->at;
        self->at += columns[i].bytes.len + 8 - columns[i].bytes.len % 8;
    }
    *count = n;
    return 1;
}

static int keep_all(const bal_pg *self, bal_pg_rows *rows,
                    const PGresult *result, bal_error *err)
{
    bal_value columns[BAL_PG_COLUMNS];
    size_t count = 0;

    for (int line = 0; line < self->pq->ntuples(result); line++) {
        int rc = columns_of(self, columns, &count, result, line, err);
        if (!rc)
            rc = keep_row(&rows->kept, columns, count, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- rows --------------------------------------------------------------- */

/* The question's answer is over, and so is all that was sent: a sync is behind
 * it. */
static void answered(bal_pg *self, bal_pg_rows *rows)
{
    rows->coming = false;
    if (self->sent_count)
        self->sent_at++;
}

/* The next result that has rows; NULL: there are no more. */
static PGresult *next_result(bal_pg *self, bal_pg_rows *rows)
{
    PGresult *result = NULL;

    while ((result = self->pq->getResult(self->conn)) != NULL) {
        bal_pg_note(self, result);
        if (self->pq->ntuples(result) > 0)
            return result;
        self->pq->clear(result);
        if (self->pq->status(self->conn) != CONNECTION_OK) {
            bal_pg_forget_sent(self);
            break;
        }
    }
    answered(self, rows);
    return NULL;
}

int bal_pg_row(bal_pg *self, bal_pg_rows *rows, bal_value *columns,
               size_t *count, bal_error *err)
{
    while (rows->coming) {
        self->pq->clear(rows->held);
        rows->held = next_result(self, rows);
        if (!rows->held)
            break;
        if (self->pq->resultStatus(rows->held) == PGRES_SINGLE_TUPLE) {
            int rc = columns_of(self, columns, count, rows->held, 0, err);
            return rc ? rc : 1;
        }
        int rc = keep_all(self, rows, rows->held, err);
        if (rc)
            return rc;
    }
    return kept_row(rows, columns, count);
}

/* The row in hand stays: its function goes on with it after its own query. */
int bal_pg_keep(bal_pg *self, bal_error *err)
{
    bal_pg_rows *rows = self->rows;
    int rc = 0;

    while (rows && rows->coming) {
        PGresult *result = next_result(self, rows);
        if (!rc && result)
            rc = keep_all(self, rows, result, err);
        self->pq->clear(result);
    }
    bal_pg_pass_mark(self);
    return rc;
}

void bal_pg_skip(bal_pg *self, bal_pg_rows *rows)
{
    self->pq->clear(next_result(self, rows));
}

void bal_pg_rows_done(bal_pg_rows *self)
{
    bal_buf_done(&self->kept);
}
