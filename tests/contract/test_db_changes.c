/* What db.h promises of telling that something was committed, by this
 * connection, another one, or another process. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph/db.h"
#include "support/check.h"
#include "support/databases.h"

static uint64_t changes(bal_db *db)
{
    uint64_t at = 0;

    CHECK_OK(bal_db_changes(db, &at, &check_err));
    return at;
}

static void write_one(bal_db *db, bool commit)
{
    BAL_LOCAL(bal_tx) tx = { 0 };

    CHECK_OK(bal_tx_begin(&tx, db, BAL_TX_WRITE, &check_err));
    database_run(db, "INSERT INTO t (a) VALUES (1)");
    if (commit)
        CHECK_OK(bal_tx_commit(&tx, &check_err));
}

static void changes_at(const database_place *at)
{
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);
    BAL_OWN(bal_db) other = database_open(at, 1, 0);

    database_run(db, "CREATE TABLE t (a BIGINT)");
    uint64_t mine = changes(db);
    uint64_t theirs = changes(other);
    CHECK(changes(db) == mine && changes(other) == theirs);
    database_run(db, "SELECT COUNT(*) FROM t");
    CHECK(changes(db) == mine);
    for (int i = 0; i < 20; i++) {
        uint64_t before = changes(db), beside = changes(other);
        write_one(i % 2 ? db : other, true);
        CHECK(changes(db) != before && changes(other) != beside);
    }
    uint64_t beside = changes(other);
    write_one(db, false);
    CHECK(changes(other) == beside);
    beside = changes(other);
    database_run(db, "DELETE FROM t");
    CHECK(changes(other) != beside);
}

static void what_any_connection_commits_is_a_change(void)
{
    database_each(__func__, changes_at);
}

/* Waits for a byte, writes a row, and ends. Never returns. */
static void write_when_told(const database_place *at, int told)
{
    char byte;
    bal_db *db = NULL;
    bal_error err;
    bool fine =
        read(told, &byte, 1) == 1 &&
        !bal_db_open(&db, at->url, check_dir(), 1, 0, &err) &&
        !bal_db_run(db, "INSERT INTO t (a) VALUES (1)", NULL, 0, NULL, &err);

    bal_db_free(db);
    _exit(fine ? 0 : 1);
}

/* It comes before this one opens the database: no connection crosses a fork. */
static void elsewhere_at(const database_place *at)
{
    int tell[2], status = 1;

    check_dir();
    CHECK(!pipe(tell));
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        write_when_told(at, tell[0]);
    BAL_OWN(bal_db) db = database_open(at, 1, BAL_DB_CREATE);
    database_run(db, "CREATE TABLE t (a BIGINT)");
    uint64_t before = changes(db);
    CHECK(write(tell[1], "!", 1) == 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(changes(db) != before);
    before = changes(db);
    CHECK(changes(db) == before);
    close(tell[0]);
    close(tell[1]);
}

static void what_another_process_commits_is_a_change(void)
{
    database_each(__func__, elsewhere_at);
}

static const check_test tests[] = {
    { TEST(what_any_connection_commits_is_a_change) },
    { TEST(what_another_process_commits_is_a_change) },
};

CHECK_MAIN(tests)
