/* What db.h promises of holding a database for longer than a transaction. */
#include <stdio.h>

#include "graph/db.h"
#include "support/check.h"
#include "support/databases.h"

static const struct {
    const char *name;
    enum bal_lock_mode first, second;
    bool both;
} pairs[] = {
    { "shared and shared", BAL_LOCK_SHARED, BAL_LOCK_SHARED, true },
    { "shared and alone", BAL_LOCK_SHARED, BAL_LOCK_EXCLUSIVE, false },
    { "alone and shared", BAL_LOCK_EXCLUSIVE, BAL_LOCK_SHARED, false },
    { "alone and alone", BAL_LOCK_EXCLUSIVE, BAL_LOCK_EXCLUSIVE, false },
};

/* By one that has the database open, and by another. */
static void pair_at(bal_db *one, bal_db *two, size_t i)
{
    BAL_OWN(bal_db_lock) first = NULL;
    BAL_OWN(bal_db_lock) second = NULL;

    check_row(pairs[i].name);
    CHECK_OK(bal_db_lock_take(&first, one, pairs[i].first, 0, &check_err));
    CHECK_RC(pairs[i].both ? 0 : BAL_EBUSY,
             bal_db_lock_take(&second, two, pairs[i].second, 0, &check_err));
    bal_db_lock_free(BAL_TAKE(first));
    if (!second)
        CHECK_OK(
            bal_db_lock_take(&second, two, pairs[i].second, 0, &check_err));
}

static void pairs_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);
    BAL_OWN(bal_db) other = database_open(at, 1, 0);

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        pair_at(db, other, i);
        pair_at(db, db, i);
    }
}

static void a_database_is_shared_or_had_alone(void)
{
    database_each(__func__, pairs_at);
}

static void writes_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);
    BAL_OWN(bal_db) other = database_open(at, 1, 0);
    BAL_OWN(bal_db_lock) lock = NULL;

    CHECK_OK(bal_db_lock_take(&lock, db, BAL_LOCK_EXCLUSIVE, 0, &check_err));
    database_run(other, "CREATE TABLE t (a BIGINT)");
    database_run(db, "INSERT INTO t (a) VALUES (1)");
}

static void a_hold_keeps_nobody_from_writing(void)
{
    database_each(__func__, writes_at);
}

/* As a server's administrator, or a wall between, ends a session. */
static void a_hold_that_was_lost_lets_nothing_be_written(void)
{
    database_place at;

    if (!database_postgres(&at, __func__))
        return;
    {
        BAL_OWN(bal_db) db = database_open(&at, 1, BAL_DB_CREATE);
        BAL_OWN(bal_db_lock) lock = NULL;
        database_run(db, "CREATE TABLE t (a BIGINT)");
        CHECK_OK(bal_db_lock_take(&lock, db, BAL_LOCK_SHARED, 0, &check_err));
        CHECK_OK(bal_db_locks_held(db, &check_err));
        database_run(db, "SELECT pg_terminate_backend(l.pid, 5000) "
                         "FROM pg_locks l WHERE l.locktype = 'advisory' "
                         "AND CAST(CAST(l.objid AS TEXT) AS BIGINT) = "
                         "(SELECT CAST(oid AS BIGINT) FROM pg_namespace "
                         "WHERE nspname = current_schema())");
        CHECK_RC(BAL_EIO, bal_db_run(db, "INSERT INTO t (a) VALUES (1)", NULL,
                                     0, NULL, &check_err));
        CHECK_RC(BAL_EIO, bal_db_locks_held(db, &check_err));
        bal_db_lock_free(BAL_TAKE(lock));
        CHECK_OK(bal_db_locks_held(db, &check_err));
        database_run(db, "INSERT INTO t (a) VALUES (1)");
    }
    database_drop(&at);
}

/* Between transactions the connection is made again; inside of one it is the
 * end of it. */
static void a_connection_that_was_lost_is_made_again(void)
{
    database_place at;

    if (!database_postgres(&at, __func__))
        return;
    {
        BAL_OWN(bal_db) db = database_open(&at, 5, BAL_DB_CREATE);
        BAL_OWN(bal_db) other = database_open(&at, 5, 0);
        BAL_LOCAL(bal_tx) tx = { 0 };
        uint64_t changed = 0;
        static const char mark[] =
            "SELECT COUNT(*) AS a_mark_of_this_test FROM t";
        static const char end[] =
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND application_name = 'ballast' "
            "AND query LIKE '%a_mark_of_this_test%'";
        database_run(db, "CREATE TABLE t (a BIGINT)");
        database_run(db, mark);
        database_run(other, end);
        database_run(db, "INSERT INTO t (a) VALUES (1)");
        CHECK_OK(bal_tx_begin(&tx, db, BAL_TX_WRITE, &check_err));
        database_run(db, "INSERT INTO t (a) VALUES (2)");
        CHECK_OK(bal_db_run(db, mark, NULL, 0, &changed, &check_err));
        database_run(other, end);
        CHECK_RC(BAL_EIO, bal_tx_commit(&tx, &check_err));
        bal_tx_done(&tx);
        CHECK_OK(bal_db_run(db, "UPDATE t SET a = a + 1", NULL, 0, &changed,
                            &check_err));
        CHECK(changed == 1);
    }
    database_drop(&at);
}

static const check_test tests[] = {
    { TEST(a_database_is_shared_or_had_alone) },
    { TEST(a_hold_keeps_nobody_from_writing) },
    { TEST(a_hold_that_was_lost_lets_nothing_be_written) },
    { TEST(a_connection_that_was_lost_is_made_again) },
};

CHECK_MAIN(tests)
