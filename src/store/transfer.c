/* Push and pull. Commits come over one by one, each whole, so that what is cut
 * short goes on where it was; refs move when all is there, all at once. */
#include "store/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"

/* ---- what is asked for -------------------------------------------------- */

/* Two roots may have one database, and two names lead to one root. */
static int check_stores(const bal_store *from, const bal_store *to,
                        bal_error *err)
{
    BAL_LOCAL(bal_buf) one = { 0 };
    BAL_LOCAL(bal_buf) other = { 0 };
    int rc = bal_graph_place(from->graph, &one, err);

    if (!rc)
        rc = bal_graph_place(to->graph, &other, err);
    if (rc || strcmp(bal_buf_string(&one), bal_buf_string(&other)) != 0)
        return rc;
    return bal_fail(err, BAL_EINVAL, "'%s' and '%s' are one store", from->root,
                    to->root);
}

static int check(const bal_transfer_run *run, bal_error *err)
{
    if (strcmp(run->from->name, run->to->name) != 0)
        return bal_fail(err, BAL_EINVAL,
                        "commits of tenant '%s' are no commits of tenant '%s'",
                        run->from->name, run->to->name);
    if (!run->what->count)
        return bal_fail(err, BAL_EINVAL, "no commit is named");
    return check_stores(run->from->store, run->to->store, err);
}

static int find_tip(bal_transfer_run *run, const char *spec, bal_error *err)
{
    bal_tenant *from = run->from;
    bal_tip *tip = &run->tips[run->tip_count];
    bool is_ref = false;
    int rc = bal_resolve(&tip->id, from, spec, err);

    if (!rc && bal_name_valid(spec) && !bal_hex_valid(spec, BAL_ID_HEX))
        rc = bal_graph_ref(from->store->graph, from->number, spec, &tip->id,
                           &is_ref, err);
    if (rc)
        return rc;
    tip->ref = is_ref ? spec : NULL;
    run->tip_count++;
    return 0;
}

static int find_tips(bal_transfer_run *run, bal_error *err)
{
    int rc = 0;

    run->tips = calloc(run->what->count + 1, sizeof(*run->tips));
    if (!run->tips)
        return bal_fail_memory(err, "refs");
    for (size_t i = 0; i < run->what->count && !rc; i++)
        rc = find_tip(run, run->what->specs[i], err);
    return rc;
}

/* It may have been made since it was opened. */
static int find_tenant(bal_tenant *to, bal_error *err)
{
    bal_error why = { 0 };
    int rc = to->number ? 0
                        : bal_graph_tenant(to->store->graph, &to->number,
                                           to->name, 0, &why);

    return rc && rc != BAL_ENOTFOUND ? bal_fail(err, rc, "%s", why.text) : 0;
}

/* ---- refs --------------------------------------------------------------- */

typedef struct seeking {
    const bal_id *id;
    bool found;
} seeking;

static int see(void *ctx, const bal_commit_row *row, bal_error *err)
{
    seeking *self = ctx;

    (void)err;
    self->found = bal_id_equal(&row->id, self->id);
    return self->found ? BAL_ROW_STOP : 0;
}

static int refuse(const bal_transfer_run *run, const bal_tip *tip,
                  const bal_id *head, bal_error *err)
{
    char hexes[2][BAL_ID_HEX + 1];

    bal_id_hex(hexes[0], head);
    bal_id_hex(hexes[1], &tip->id);
    return bal_hint(err,
                    bal_fail(err, BAL_ECONFLICT,
                             "ref '%s' of '%s' is at '%.12s', which '%.12s' "
                             "does not lead on from",
                             tip->ref, run->to->store->root, hexes[0],
                             hexes[1]),
                    "--force moves it all the same; its reflog keeps where it "
                    "was");
}

/* ECONFLICT unless the ref is at an ancestor; ground: the nearest of the tip
 * and its ancestors that is there, NULL: none. */
static int check_move(const bal_transfer_run *run, const bal_tip *tip,
                      const bal_id *head, const bal_id *ground, bal_error *err)
{
    const bal_tenant *to = run->to;
    seeking seek = { .id = head };
    int rc = 0;

    if (run->what->flags & BAL_PUSH_FORCE)
        return 0;
    if (ground)
        rc = bal_graph_history(to->store->graph, to->number, ground, 0, see,
                               &seek, err);
    if (rc)
        return rc;
    return seek.found ? 0 : refuse(run, tip, head, err);
}

static int find_head(const bal_transfer_run *run, const char *ref, bal_id *head,
                     bool *there, bal_error *err)
{
    const bal_tenant *to = run->to;

    *there = false;
    if (!to->number)
        return 0;
    return bal_graph_ref(to->store->graph, to->number, ref, head, there, err);
}

/* Before anything is written: would every ref lead on? */
static int check_refs(const bal_transfer_run *run, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < run->tip_count && !rc; i++) {
        const bal_tip *tip = &run->tips[i];
        bal_id head, ground;
        bool there = false;
        bool grounded = false;
        if (!tip->ref)
            continue;
        rc = find_head(run, tip->ref, &head, &there, err);
        if (rc || !there)
            continue;
        rc = bal_transfer_ground(run, &ground, &grounded, &tip->id, err);
        if (!rc)
            rc = check_move(run, tip, &head, grounded ? &ground : NULL, err);
    }
    return rc;
}

/* A ref's move, with where the reflog's text is kept. */
static int move_ref(const bal_transfer_run *run, const bal_tip *tip,
                    bal_move_row *move, bal_arena *texts, bal_error *err)
{
    const bal_tenant *to = run->to;
    bal_commit_row row = { 0 };

    *move = (bal_move_row){
        .ref = tip->ref,
        .op = run->what->op ? run->what->op : "push",
        .now = tip->id,
        .has_now = true,
        .at = bal_clock_now(),
    };
    int rc = find_head(run, tip->ref, &move->old, &move->has_old, err);
    if (rc)
        return rc;
    if (move->has_old && bal_id_equal(&move->old, &move->now)) {
        move->ref = NULL;
        return 0;
    }
    if (move->has_old)
        rc = check_move(run, tip, &move->old, &tip->id, err);
    if (!rc)
        rc = bal_transfer_row(&row, texts, to, &tip->id, err);
    move->message = row.message;
    return rc ? rc : bal_graph_move(to->store->graph, to->number, move, err);
}

static void tell(const bal_transfer_run *run, const bal_move_row *moves)
{
    bool heard = run->what->moved != NULL;

    for (size_t i = 0; i < run->tip_count; i++) {
        const bal_move_row *row = &moves[i];
        const bal_move move = {
            .ref = row->ref,
            .op = row->op,
            .old = row->has_old ? &row->old : NULL,
            .now = &row->now,
            .at = row->at,
            .message = row->message,
        };
        if (!row->ref)
            continue;
        run->report->refs++;
        heard = heard && !run->what->moved(run->what->ctx, &move);
    }
}

static int move_in(const bal_transfer_run *run, bal_move_row *moves,
                   bal_arena *texts, bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, run->to->store->graph, BAL_TX_WRITE, err);

    for (size_t i = 0; i < run->tip_count && !rc; i++) {
        if (run->tips[i].ref)
            rc = move_ref(run, &run->tips[i], &moves[i], texts, err);
    }
    return rc ? rc : bal_tx_commit(&tx, err);
}

static bool any_ref(const bal_transfer_run *run)
{
    for (size_t i = 0; i < run->tip_count; i++) {
        if (run->tips[i].ref)
            return true;
    }
    return false;
}

static int move_refs(const bal_transfer_run *run, bal_error *err)
{
    BAL_LOCAL(bal_arena) texts = { 0 };

    if (!any_ref(run))
        return 0;
    bal_move_row *moves = calloc(run->tip_count, sizeof(*moves));
    if (!moves)
        return bal_fail_memory(err, "refs");
    int rc = move_in(run, moves, &texts, err);
    if (!rc)
        tell(run, moves);
    free(moves);
    return rc;
}

/* ---- all of it ---------------------------------------------------------- */

static int transfer_locked(bal_transfer_run *run, bal_error *err)
{
    int rc = find_tenant(run->to, err);

    if (!rc)
        rc = bal_transfer_plan(run, err);
    if (!rc)
        rc = check_refs(run, err);
    for (size_t i = 0; i < bal_ids_count(&run->order) && !rc; i++) {
        rc = bal_work_poll(run->to->store->work, err);
        if (!rc)
            rc = bal_transfer_commit(run, bal_ids_at(&run->order, i), err);
    }
    return rc ? rc : move_refs(run, err);
}

static int transfer(bal_transfer_run *run, bal_error *err)
{
    bal_store *to = run->to->store;
    int rc = check(run, err);
    if (!rc)
        rc = find_tips(run, err);
    if (!rc)
        rc = bal_store_recover(to, err);
    if (rc)
        return rc;

    BAL_OWN(bal_db_lock) lock = NULL;
    rc = bal_store_lock(&lock, to, BAL_LOCK_SHARED, err);
    return rc ? rc : transfer_locked(run, err);
}

int bal_push(bal_tenant *from, bal_tenant *to, const bal_push_options *what,
             bal_push_report *report, bal_error *err)
{
    bal_push_report none;
    bal_transfer_run run = { from, to, what, report ? report : &none };

    memset(run.report, 0, sizeof(*run.report));
    int rc = transfer(&run, err);
    free(run.tips);
    bal_buf_done(&run.order);
    return rc;
}
