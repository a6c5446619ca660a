/* Two handles on one root, at once: what one of them has acknowledged holds,
 * whatever the other did meanwhile, and what was forgotten is gone from every
 * handle, every open model and every file.
 *
 *   BALLAST_ROUNDS=N   rounds of each row in threads (20), a tenth of them in
 *                      processes */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "torture/races.h"

/* ---- setting up --------------------------------------------------------- */

static bal_id commit_now(race *self, uint64_t seed, const char *ref)
{
    BAL_OWN(bal_model) model = race_model(seed);
    bal_id id;

    CHECK_OK(race_commit(&self->judge, model, seed, ref, &id, &check_err));
    return id;
}

/* What is to go is there, and open in two handles. */
static void commit_old(race *self)
{
    self->task.ids[0] = commit_now(self, self->task.old, "main");
    race_hold(self, "acme", &self->task.ids[0]);
}

/* A view of beta over a commit of acme, granted; both held. */
static void share_old(race *self)
{
    bal_id view;

    self->task.ids[0] = commit_now(self, self->task.old, "main");
    BAL_OWN(bal_tenant) acme = NULL;
    CHECK_OK(bal_tenant_open(&acme, self->judge.store, "acme", &check_err));
    CHECK_OK(
        bal_grant(acme, &self->task.ids[0], "beta", NULL, NULL, &check_err));
    CHECK_OK(race_view(&self->judge, self->judge.beta, &self->task.ids[0],
                       "view", &view, &check_err));
    self->task.ids[1] = view;
    race_hold(self, "beta", &view);
}

/* The committed again, every other round: then its blocks are what is shared
 * between what goes and what comes. */
static void commit_old_or_new(race *self)
{
    commit_old(self);
    if (self->task.round % 2)
        self->task.fresh = self->task.old;
}

/* ---- acting ------------------------------------------------------------- */

static void commit_fresh(race_side *self, const race_task *task)
{
    bal_error err = { 0 };
    int rc = race_commit(self, self->fresh, task->fresh, "other",
                         &self->result.id, &err);

    race_tell(self, rc, &err);
}

static void commit_to_main(race_side *self, const race_task *task)
{
    bal_error err = { 0 };
    int rc = race_commit(self, self->fresh, task->fresh, "main",
                         &self->result.id, &err);

    race_tell(self, rc, &err);
}

static void forget_acme(race_side *self, const race_task *task)
{
    (void)task;
    race_forget(self, NULL);
}

static void forget_old(race_side *self, const race_task *task)
{
    race_forget(self, &task->ids[0]);
}

static void forget_second(race_side *self, const race_task *task)
{
    race_forget(self, &task->ids[1]);
}

static void collect(race_side *self, const race_task *task)
{
    bal_gc_report report;
    bal_error err = { 0 };

    (void)task;
    race_tell(self, bal_gc(self->store, NULL, 0, &report, &err), &err);
}

static void read_view(race_side *self, const race_task *task)
{
    bal_error err = { 0 };

    race_tell(self,
              race_read(self, self->beta, &task->ids[1], task->old,
                        &self->result.whole, &err),
              &err);
}

static int write_out(race_side *self, const race_task *task, bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;
    int rc = bal_model_from_commit(&model, self->beta, &task->ids[1], err);

    if (rc)
        return rc;
    return bal_model_write(model, task->out, NULL, NULL, self->work, err);
}

static void check_out(race_side *self, const race_task *task)
{
    bal_error err = { 0 };

    race_tell(self, write_out(self, task, &err), &err);
}

static void revoke_old(race_side *self, const race_task *task)
{
    uint64_t revoked = 0;
    bal_error err = { 0 };

    race_tell(self,
              bal_revoke(self->acme, &task->ids[0], "beta", &revoked, NULL,
                         NULL, &err),
              &err);
}

static void grant_old(race_side *self, const race_task *task)
{
    race_result *result = &self->result;
    bal_error err = { 0 };

    race_tell(self,
              bal_grant(self->acme, &task->ids[0], "beta", NULL, NULL, &err),
              &err);
    result->second_rc =
        race_view(self, self->beta, &task->ids[0], "view", &result->id, &err);
}

static void reset_main(race_side *self, const race_task *task)
{
    bal_error err = { 0 };

    race_tell(
        self,
        bal_ref_reset(self->acme, "main", &task->ids[0], NULL, NULL, &err),
        &err);
}

/* ---- judging ------------------------------------------------------------ */

/* Right forgot what was held. */
static void judge_forgotten(race *self)
{
    RACE_OK(self->right);
    race_proved(self, self->right.result.attestation);
    race_denied(self);
    race_absent(self, self->task.old, "cache");
}

static bool in_statement(race *self, const bal_id *id)
{
    BAL_OWN(bal_proof) proof = NULL;
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    CHECK_OK(bal_proof_open(&proof, self->judge.store,
                            self->right.result.attestation, &check_err));
    return strstr(bal_proof_info_of(proof)->statement, hex) != NULL;
}

/* The commit came before or after. Before, it went with the tenant. */
static void judge_commit_forget_tenant(race *self)
{
    const race_result *made = &self->left.result;

    judge_forgotten(self);
    RACE_OK(self->left);
    if (in_statement(self, &made->id)) {
        race_gone(self, self->task.old);
        race_gone(self, self->task.fresh);
        return;
    }
    race_there(self, &made->id, self->task.fresh);
    if (self->task.fresh != self->task.old)
        race_gone(self, self->task.old);
}

static void judge_commit_forget(race *self)
{
    judge_forgotten(self);
    RACE_OK(self->left);
    CHECK(!in_statement(self, &self->left.result.id));
    race_there(self, &self->left.result.id, self->task.fresh);
    if (self->task.fresh != self->task.old)
        race_gone(self, self->task.old);
}

static void meddle(const race *self, const char *sql)
{
    char path[160];
    sqlite3 *db = NULL;

    snprintf(path, sizeof(path), "%s/graph.db", self->task.root);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

/* Blocks that no manifest uses, of the bytes that are about to be committed;
 * every other round nobody even knows of them. */
static void leave_garbage(race *self)
{
    (void)commit_now(self, self->task.fresh, "gone");
    meddle(self, "PRAGMA foreign_keys = ON;"
                 "CREATE TEMP TABLE t AS SELECT c.number n, c.manifest m "
                 "FROM commits c JOIN refs r ON r.commit_number = c.number "
                 "WHERE r.name = 'gone';"
                 "DELETE FROM refs WHERE name = 'gone';"
                 "DELETE FROM moves WHERE ref = 'gone';"
                 "DELETE FROM commits WHERE number IN (SELECT n FROM t);"
                 "DELETE FROM manifests WHERE number IN (SELECT m FROM t) AND "
                 "NOT EXISTS (SELECT 1 FROM commits WHERE manifest = "
                 "manifests.number);");
    if (self->task.round % 2)
        meddle(self, "DELETE FROM blocks WHERE number NOT IN "
                     "(SELECT block FROM uses)");
}

static void judge_commit_gc(race *self)
{
    bal_gc_report report;

    RACE_OK(self->left);
    RACE_OK(self->right);
    race_there(self, &self->left.result.id, self->task.fresh);
    CHECK_OK(bal_gc(self->judge.store, NULL, 0, &report, &check_err));
    CHECK(!report.blocks);
    race_there(self, &self->left.result.id, self->task.fresh);
}

/* A folder is written by the time that the revocation answers, or never. */
static void judge_checkout_revoke(race *self)
{
    const race_result *left = &self->left.result;
    bool there = bal_path_type_of(self->task.out) != BAL_PATH_ABSENT;

    RACE_OK(self->right);
    race_rc(&self->left, BAL_EBROKEN, "left");
    CHECK(there == !left->rc);
    CHECK(left->rc || !left->late);
    race_denied(self);
    race_absent(self, self->task.old, "cache");
    race_there(self, &self->task.ids[0], self->task.old);
}

static void judge_fill_forget(race *self)
{
    const race_result *left = &self->left.result;

    judge_forgotten(self);
    race_rc(&self->left, BAL_EBROKEN, "left");
    CHECK(left->rc || (left->whole && !left->late));
    race_gone(self, self->task.old);
}

static int count_live(void *ctx, const bal_grant_info *grant)
{
    *(size_t *)ctx += !grant->revoked_at;
    return 0;
}

static void judge_grant_forget(race *self)
{
    const race_result *left = &self->left.result;
    size_t live = 0;

    judge_forgotten(self);
    race_rc(&self->left, BAL_ENOTFOUND, "left");
    CHECK(!left->rc || left->second_rc);
    /* EBROKEN: gone between naming it and recording the view. */
    CHECK(!left->second_rc || left->second_rc == BAL_ENOTFOUND ||
          left->second_rc == BAL_EBROKEN);
    CHECK(!left->late || left->rc);
    CHECK_OK(bal_grant_each(self->judge.acme, count_live, &live, &check_err));
    CHECK(!live);
    race_gone(self, self->task.old);
}

/* One of them does it, the other finds nothing. */
static void judge_forget_twice(race *self)
{
    const race_side *sides[] = { &self->left, &self->right };
    size_t done = 0;

    for (size_t i = 0; i < 2; i++) {
        race_rc(sides[i], BAL_ENOTFOUND, "a deletion");
        if (sides[i]->result.rc)
            continue;
        race_proved(self, sides[i]->result.attestation);
        done++;
    }
    CHECK(done == 1);
    race_denied(self);
    race_gone(self, self->task.old);
}

/* Two commits, a block shared. */
static void commit_two(race *self)
{
    commit_old(self);
    self->task.ids[1] = commit_now(self, self->task.fresh, "main");
    race_hold(self, "acme", &self->task.ids[1]);
}

static void judge_forget_both(race *self)
{
    RACE_OK(self->left);
    RACE_OK(self->right);
    race_proved(self, self->left.result.attestation);
    race_proved(self, self->right.result.attestation);
    race_denied(self);
    race_gone(self, self->task.old);
    race_gone(self, self->task.fresh);
}

typedef struct chain {
    bal_id last;
    size_t moves;
    bool whole;
} chain;

/* Newest first: each came from where the next one went. */
static int follow(void *ctx, const bal_move *move)
{
    chain *self = ctx;

    if (!move->now || (self->moves &&
                       memcmp(&self->last, move->now, sizeof(self->last)) != 0))
        self->whole = false;
    self->moves++;
    if (!move->old)
        return 1;
    self->last = *move->old;
    return 0;
}

static void judge_reset_commit(race *self)
{
    const bal_id *made = &self->right.result.id;
    chain moves = { .whole = true };
    bal_id head;

    RACE_OK(self->left);
    RACE_OK(self->right);
    race_there(self, made, self->task.fresh);
    CHECK_OK(bal_resolve(&head, self->judge.acme, "main", &check_err));
    CHECK(!memcmp(&head, made, sizeof(head)) ||
          !memcmp(&head, &self->task.ids[0], sizeof(head)));
    CHECK_OK(bal_reflog(self->judge.acme, "main", follow, &moves, &check_err));
    CHECK(moves.whole && moves.moves == 4 * (size_t)(self->task.round % 8 + 1));
}

static void commit_below(race *self)
{
    self->task.ids[0] = commit_now(self, self->task.old, "main");
    self->task.ids[1] = commit_now(self, self->task.old + 1, "main");
}

/* ---- the table ---------------------------------------------------------- */

static const race_row rows[] = {
    {
        .name = "a commit and forgetting its tenant",
        .setup = commit_old_or_new,
        .left = commit_fresh,
        .right = forget_acme,
        .judge = judge_commit_forget_tenant,
    },
    {
        .name = "a commit and forgetting another, maybe of the same",
        .setup = commit_old_or_new,
        .left = commit_fresh,
        .right = forget_old,
        .judge = judge_commit_forget,
    },
    {
        .name = "a commit and collecting what it is about to use",
        .setup = leave_garbage,
        .left = commit_fresh,
        .right = collect,
        .judge = judge_commit_gc,
    },
    {
        .name = "writing out a view and revoking what it stands on",
        .setup = share_old,
        .left = check_out,
        .right = revoke_old,
        .judge = judge_checkout_revoke,
    },
    {
        .name = "filling the view cache and forgetting an input",
        .setup = share_old,
        .left = read_view,
        .right = forget_old,
        .judge = judge_fill_forget,
    },
    {
        .name = "granting and forgetting it",
        .setup = commit_old,
        .left = grant_old,
        .right = forget_old,
        .judge = judge_grant_forget,
    },
    {
        .name = "forgetting one commit twice",
        .setup = commit_old,
        .left = forget_old,
        .right = forget_old,
        .judge = judge_forget_twice,
    },
    {
        .name = "forgetting two commits that share a block",
        .setup = commit_two,
        .left = forget_second,
        .right = forget_old,
        .judge = judge_forget_both,
    },
    {
        .name = "moving a ref and committing to it",
        .setup = commit_below,
        .left = reset_main,
        .right = commit_to_main,
        .judge = judge_reset_commit,
    },
};

static unsigned rounds(void)
{
    const char *text = getenv("BALLAST_ROUNDS");
    long wanted = text ? strtol(text, NULL, 10) : 0;

    return wanted > 0 ? (unsigned)wanted : 20;
}

/* ---- as tests ----------------------------------------------------------- */

enum { RACES = sizeof(rows) / sizeof(rows[0]), SHARE = 10, LEAST = 4 };

static void in_threads(void **state)
{
    race_run(rows, (size_t)((const race_row *)*state - rows), rounds(), false);
}

/* Fewer: what differs is whose locks they are. */
static void in_processes(void **state)
{
    unsigned count = rounds() / SHARE;

    race_run(rows, (size_t)((const race_row *)*state - rows),
             count > LEAST ? count : LEAST, true);
}

int main(int argc, char **argv)
{
    static char names[RACES][96];
    struct CMUnitTest tests[2 * RACES] = { 0 };

    if (argc == 2 && !strcmp(argv[1], "--left"))
        return race_child(rows);
    for (size_t i = 0; i < RACES; i++) {
        void *row = (void *)(uintptr_t)&rows[i];
        snprintf(names[i], sizeof(names[i]), "%s, in two processes",
                 rows[i].name);
        tests[2 * i] =
            (struct CMUnitTest){ rows[i].name, in_threads, NULL, NULL, row };
        tests[2 * i + 1] =
            (struct CMUnitTest){ names[i], in_processes, NULL, NULL, row };
    }
    int failed = _cmocka_run_group_tests("races", tests, 2 * RACES, NULL, NULL);
    race_done();
    return failed ? 1 : 0;
}
