/* One suite over every database: what db.h promises, whoever keeps it. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/buf.h"
#include "core/clock.h"
#include "graph/db.h"
#include "support/check.h"
#include "support/databases.h"

/* Rows kept for looking at. */
typedef struct kept {
    size_t rows;
    bal_value last[4];
    char text[4][64];
    size_t stop_after;
} kept;

static int keep(void *ctx, const bal_value *columns, size_t count,
                bal_error *err)
{
    kept *self = ctx;

    (void)err;
    self->rows++;
    for (size_t i = 0; i < count && i < 4; i++) {
        self->last[i] = columns[i];
        size_t len = columns[i].bytes.len;
        if (len && len < sizeof(self->text[i]))
            memcpy(self->text[i], columns[i].bytes.data, len);
        /* The row is gone after the call, and a kept is copied: see text. */
        self->last[i].bytes.data = NULL;
    }
    return self->rows == self->stop_after ? BAL_ROW_STOP : 0;
}

static kept query(bal_db *db, const char *sql, const bal_value *args,
                  size_t count)
{
    kept out = { 0 };

    CHECK_OK(bal_db_query(db, sql, args, count, keep, &out, &check_err));
    return out;
}

static int64_t number(bal_db *db, const char *sql)
{
    kept out = query(db, sql, NULL, 0);

    CHECK(out.rows == 1 && out.last[0].type == BAL_VALUE_INT);
    return out.last[0].number;
}

/* ---- values ------------------------------------------------------------ */

static const struct {
    const char *name;
    bal_value_type type;
    int64_t number;
    const char *data;
    size_t len;
} values[] = {
    { "null", BAL_VALUE_NULL, 0, NULL, 0 },
    { "zero", BAL_VALUE_INT, 0, NULL, 0 },
    { "least", BAL_VALUE_INT, INT64_MIN, NULL, 0 },
    { "most", BAL_VALUE_INT, INT64_MAX, NULL, 0 },
    { "over 2^53", BAL_VALUE_INT, 9007199254740993, NULL, 0 },
    { "empty text", BAL_VALUE_TEXT, 0, "", 0 },
    { "text", BAL_VALUE_TEXT, 0, "na\xc3\xafve '\"\n", 9 },
    { "empty blob", BAL_VALUE_BLOB, 0, "", 0 },
    { "blob of no bytes at all", BAL_VALUE_BLOB, 0, NULL, 0 },
    { "blob with NULs", BAL_VALUE_BLOB, 0, "\0a\0\xff", 4 },
};

static void values_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);

    database_run(db, "CREATE TABLE t (n BIGINT, s TEXT, b BYTEA)");
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        check_row(values[i].name);
        bal_value value = {
            .type = values[i].type,
            .number = values[i].number,
            .bytes = { values[i].data, values[i].len },
        };
        bal_value args[] = { bal_null(), bal_null(), bal_null() };
        size_t c = values[i].type ? values[i].type - 1 : 0;
        args[c] = value;
        database_run(db, "DELETE FROM t");
        CHECK_OK(bal_db_run(db, "INSERT INTO t (n, s, b) VALUES ($1, $2, $3)",
                            args, 3, NULL, &check_err));
        kept out = query(db, "SELECT n, s, b FROM t", NULL, 0);
        CHECK(out.rows == 1);
        CHECK(out.last[c].type == value.type);
        CHECK(out.last[c].number == value.number);
        CHECK(out.last[c].bytes.len == value.bytes.len);
        if (value.bytes.len)
            CHECK(!memcmp(out.text[c], value.bytes.data, value.bytes.len));
        for (size_t other = 0; other < 3; other++)
            CHECK(other == c || out.last[other].type == BAL_VALUE_NULL);
    }
}

static void values_come_back_as_they_went(void)
{
    database_each(__func__, values_at);
}

static int ends_in_nul(void *ctx, const bal_value *columns, size_t count,
                       bal_error *err)
{
    (void)ctx;
    (void)count;
    (void)err;
    CHECK(!strcmp(columns[0].bytes.data, "abc"));
    return 0;
}

static void text_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);
    const bal_value args[] = { bal_text("abc") };

    CHECK(bal_text(NULL).type == BAL_VALUE_NULL);
    CHECK(bal_id_value(NULL).type == BAL_VALUE_NULL);
    CHECK_OK(bal_db_query(db, "SELECT CAST($1 AS TEXT)", args, 1, ends_in_nul,
                          NULL, &check_err));
}

static void text_is_a_string(void)
{
    database_each(__func__, text_at);
}

static void order_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);
    const bal_value args[] = { bal_int(1), bal_int(20), bal_int(300) };

    database_run(db, "CREATE TABLE t (a BIGINT, b BIGINT, c BIGINT)");
    CHECK_OK(bal_db_run(db, "INSERT INTO t (c, b, a) VALUES ($3, $2, $1)", args,
                        3, NULL, &check_err));
    kept out = query(db,
                     "SELECT a, b, c FROM t WHERE c = $3 AND a = $1 "
                     "AND b = $2 AND a < $3",
                     args, 3);
    CHECK(out.rows == 1 && out.last[0].number == 1);
    CHECK(out.last[1].number == 20 && out.last[2].number == 300);
}

static void parameters_go_by_their_number(void)
{
    database_each(__func__, order_at);
}

/* ---- rows -------------------------------------------------------------- */

static int refuse(void *ctx, const bal_value *columns, size_t count,
                  bal_error *err)
{
    int *calls = ctx;

    (void)columns;
    (void)count;
    (void)err;
    ++*calls;
    return BAL_EBROKEN;
}

static void rows_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);
    uint64_t changed = 99;
    int calls = 0;

    database_run(db, "CREATE TABLE t (a BIGINT PRIMARY KEY)");
    CHECK_OK(bal_db_run(db, "INSERT INTO t (a) VALUES (1), (2), (3)", NULL, 0,
                        &changed, &check_err));
    CHECK(changed == 3);
    CHECK_OK(bal_db_run(db,
                        "INSERT INTO t (a) VALUES (3), (4) "
                        "ON CONFLICT DO NOTHING",
                        NULL, 0, &changed, &check_err));
    CHECK(changed == 1);
    CHECK_OK(bal_db_run(db, "UPDATE t SET a = 9 WHERE a = 7", NULL, 0, &changed,
                        &check_err));
    CHECK(changed == 0);

    kept out = { .stop_after = 2 };
    CHECK_OK(bal_db_query(db, "SELECT a FROM t ORDER BY a", NULL, 0, keep, &out,
                          &check_err));
    CHECK(out.rows == 2 && out.last[0].number == 2);
    CHECK_RC(BAL_EBROKEN, bal_db_query(db, "SELECT a FROM t", NULL, 0, refuse,
                                       &calls, &check_err));
    CHECK(calls == 1);
    out = query(db, "INSERT INTO t (a) VALUES (5) RETURNING a + 1", NULL, 0);
    CHECK(out.rows == 1 && out.last[0].number == 6);
}

static void rows_are_counted_and_can_be_stopped(void)
{
    database_each(__func__, rows_at);
}

typedef struct inner {
    bal_db *db;
    int64_t sum;
} inner;

static int ask_again(void *ctx, const bal_value *columns, size_t count,
                     bal_error *err)
{
    inner *self = ctx;

    (void)count;
    (void)err;
    const bal_value args[] = { columns[0] };
    kept out = query(self->db, "SELECT a FROM t WHERE a = $1", args, 1);
    CHECK(out.rows == 1);
    out = query(self->db, "SELECT a FROM t ORDER BY a", NULL, 0);
    CHECK(out.rows == 3);
    self->sum += out.last[0].number + columns[0].number;
    return 0;
}

static void inner_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);
    inner self = { .db = db };

    database_run(db, "CREATE TABLE t (a BIGINT PRIMARY KEY)");
    database_run(db, "INSERT INTO t (a) VALUES (1), (2), (3)");
    CHECK_OK(bal_db_query(db, "SELECT a FROM t ORDER BY a", NULL, 0, ask_again,
                          &self, &check_err));
    CHECK(self.sum == 3 * 3 + 6);
}

static void a_row_function_may_query(void)
{
    database_each(__func__, inner_at);
}

static void constraint_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);

    database_run(db, "CREATE TABLE p (a BIGINT PRIMARY KEY)");
    database_run(db, "CREATE TABLE c (a BIGINT REFERENCES p (a))");
    CHECK_RC(BAL_ECONFLICT, bal_db_run(db, "INSERT INTO c (a) VALUES (1)", NULL,
                                       0, NULL, &check_err));
    database_run(db, "INSERT INTO p (a) VALUES (1)");
    CHECK_RC(BAL_ECONFLICT, bal_db_run(db, "INSERT INTO p (a) VALUES (1)", NULL,
                                       0, NULL, &check_err));
}

static void constraints_hold(void)
{
    database_each(__func__, constraint_at);
}

/* ---- transactions ------------------------------------------------------ */

static void begin(bal_tx *tx, bal_db *db, unsigned flags)
{
    CHECK_OK(bal_tx_begin(tx, db, flags, &check_err));
}

static void rollback_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);

    database_run(db, "CREATE TABLE t (a BIGINT)");
    {
        BAL_LOCAL(bal_tx) tx = { 0 };
        begin(&tx, db, BAL_TX_WRITE);
        database_run(db, "INSERT INTO t (a) VALUES (1)");
        CHECK(number(db, "SELECT COUNT(*) FROM t") == 1);
    }
    CHECK(number(db, "SELECT COUNT(*) FROM t") == 0);
    {
        BAL_LOCAL(bal_tx) tx = { 0 };
        begin(&tx, db, BAL_TX_WRITE);
        database_run(db, "INSERT INTO t (a) VALUES (1)");
        CHECK_OK(bal_tx_commit(&tx, &check_err));
        CHECK(!tx.db);
    }
    CHECK(number(db, "SELECT COUNT(*) FROM t") == 1);
}

static void a_scope_without_commit_rolls_back(void)
{
    database_each(__func__, rollback_at);
}

static void nested_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);
    BAL_OWN(bal_db) other = database_open(at, 1, 0);
    BAL_LOCAL(bal_tx) outer = { 0 };

    database_run(db, "CREATE TABLE t (a BIGINT)");
    begin(&outer, db, BAL_TX_WRITE);
    {
        BAL_LOCAL(bal_tx) tx = { 0 };
        begin(&tx, db, BAL_TX_WRITE);
        database_run(db, "INSERT INTO t (a) VALUES (1)");
        CHECK_OK(bal_tx_commit(&tx, &check_err));
    }
    CHECK(number(other, "SELECT COUNT(*) FROM t") == 0);
    {
        BAL_LOCAL(bal_tx) tx = { 0 };
        begin(&tx, db, 0);
    }
    CHECK_OK(bal_tx_commit(&outer, &check_err));
    CHECK(number(other, "SELECT COUNT(*) FROM t") == 1);
}

static void an_inner_transaction_joins_the_outer(void)
{
    database_each(__func__, nested_at);
}

static void doomed_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);

    database_run(db, "CREATE TABLE t (a BIGINT)");
    {
        BAL_LOCAL(bal_tx) outer = { 0 };
        begin(&outer, db, BAL_TX_WRITE);
        database_run(db, "INSERT INTO t (a) VALUES (1)");
        {
            BAL_LOCAL(bal_tx) tx = { 0 };
            begin(&tx, db, BAL_TX_WRITE);
            database_run(db, "INSERT INTO t (a) VALUES (2)");
        }
        CHECK_RC(BAL_EIO, bal_tx_commit(&outer, &check_err));
    }
    CHECK(number(db, "SELECT COUNT(*) FROM t") == 0);
    database_run(db, "INSERT INTO t (a) VALUES (3)");
    CHECK(number(db, "SELECT COUNT(*) FROM t") == 1);
}

static void half_a_transaction_is_never_committed(void)
{
    database_each(__func__, doomed_at);
}

/* ---- two at once ------------------------------------------------------- */

static void busy_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);
    BAL_OWN(bal_db) other = database_open(at, 0.3, 0);

    database_run(db, "CREATE TABLE t (a BIGINT)");
    {
        BAL_LOCAL(bal_tx) tx = { 0 };
        BAL_LOCAL(bal_tx) second = { 0 };
        begin(&tx, db, BAL_TX_WRITE);
        database_run(db, "INSERT INTO t (a) VALUES (1)");
        CHECK(number(other, "SELECT COUNT(*) FROM t") == 0);

        double from = bal_clock_ticks();
        CHECK_RC(BAL_EBUSY,
                 bal_tx_begin(&second, other, BAL_TX_WRITE, &check_err));
        double took = bal_clock_ticks() - from;
        CHECK(took >= 0.25 && took < 5);
        CHECK(!second.db);
        CHECK_RC(BAL_EBUSY, bal_db_run(other, "INSERT INTO t (a) VALUES (2)",
                                       NULL, 0, NULL, &check_err));
    }
    database_run(other, "INSERT INTO t (a) VALUES (3)");
    CHECK(number(db, "SELECT COUNT(*) FROM t") == 1);
}

static void a_second_writer_waits_and_is_told_busy(void)
{
    database_each(__func__, busy_at);
}

static void *hold_a_while(void *ctx)
{
    bal_db *db = ctx;
    BAL_LOCAL(bal_tx) tx = { 0 };

    if (bal_tx_begin(&tx, db, BAL_TX_WRITE, NULL))
        return NULL;
    if (bal_db_run(db, "INSERT INTO t (a) VALUES (1)", NULL, 0, NULL, NULL))
        return NULL;
    bal_clock_sleep(0.2);
    if (bal_tx_commit(&tx, NULL))
        return NULL;
    return ctx;
}

static void patient_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 10, BAL_DB_CREATE);
    BAL_OWN(bal_db) other = database_open(at, 10, 0);
    pthread_t thread;
    void *done = NULL;

    database_run(db, "CREATE TABLE t (a BIGINT)");
    CHECK(!pthread_create(&thread, NULL, hold_a_while, db));
    for (int i = 0; i < 20; i++)
        database_run(other, "INSERT INTO t (a) VALUES (2)");
    /* The same connection too: the call waits for the transaction's end. */
    int64_t seen = number(db, "SELECT COUNT(*) FROM t WHERE a = 1");
    CHECK(!pthread_join(thread, &done));
    CHECK(done == db && (seen == 0 || seen == 1));
    CHECK(number(db, "SELECT COUNT(*) FROM t") == 21);
}

static void a_writer_that_waits_long_enough_gets_its_turn(void)
{
    database_each(__func__, patient_at);
}

/* ---- opening ----------------------------------------------------------- */

static void reopen_at(const database_place *at)
{
    {
        BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);
        database_run(db, "CREATE TABLE t (a BIGINT)");
        database_run(db, "INSERT INTO t (a) VALUES (7)");
    }
    BAL_OWN(bal_db) db = database_open(at, 1, 0);
    CHECK(number(db, "SELECT a FROM t") == 7);
}

static void what_was_committed_is_there_again(void)
{
    database_each(__func__, reopen_at);
}

static const check_test tests[] = {
    { TEST(values_come_back_as_they_went) },
    { TEST(text_is_a_string) },
    { TEST(parameters_go_by_their_number) },
    { TEST(rows_are_counted_and_can_be_stopped) },
    { TEST(a_row_function_may_query) },
    { TEST(constraints_hold) },
    { TEST(a_scope_without_commit_rolls_back) },
    { TEST(an_inner_transaction_joins_the_outer) },
    { TEST(half_a_transaction_is_never_committed) },
    { TEST(a_second_writer_waits_and_is_told_busy) },
    { TEST(a_writer_that_waits_long_enough_gets_its_turn) },
    { TEST(what_was_committed_is_there_again) },
};

CHECK_MAIN(tests)
