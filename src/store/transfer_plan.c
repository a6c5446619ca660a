/* What is to be transferred: from what is named back along parents, and into
 * the inputs of views, as far as it is not there. A stack in place of
 * recursion, for a history is as deep as whoever wrote it made it. */
#include <assert.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/map.h"
#include "graph/inputs.h"
#include "graph/proofs.h"
#include "store/transfer.h"
#include "store/verified.h"

/* ---- rows --------------------------------------------------------------- */

static int pass_over(void *ctx, const bal_commit_row *row, bal_error *err)
{
    (void)ctx;
    (void)row;
    (void)err;
    return 0;
}

static int has_commit(bal_graph *graph, int64_t tenant, const bal_id *id,
                      bool *there, bal_error *err)
{
    bal_error why = { 0 };
    int rc = tenant ? bal_graph_commit(graph, tenant, id, pass_over, NULL, &why)
                    : BAL_ENOTFOUND;

    *there = !rc;
    return rc && rc != BAL_ENOTFOUND ? bal_fail(err, rc, "%s", why.text) : 0;
}

int bal_transfer_has(const bal_tenant *tenant, const bal_id *id, bool *there,
                     bal_error *err)
{
    return has_commit(tenant->store->graph, tenant->number, id, there, err);
}

typedef struct row_job {
    bal_commit_row *out;
    bal_arena *texts;
    const bal_tenant *tenant;
} row_job;

static int keep_row(void *ctx, const bal_commit_row *row, bal_error *err)
{
    const row_job *job = ctx;
    bal_commit_row *out = job->out;
    int rc = bal_commit_verify(job->tenant, row, err);
    if (rc)
        return rc;

    *out = *row;
    const char **const texts[] = { &out->kind, &out->message, &out->author,
                                   &out->base_model, &out->metadata };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (!*texts[i])
            continue;
        *texts[i] = bal_arena_copy(job->texts, *texts[i], strlen(*texts[i]));
        if (!*texts[i])
            return bal_fail_memory(err, "a commit");
    }
    return 0;
}

int bal_transfer_row(bal_commit_row *out, bal_arena *texts,
                     const bal_tenant *tenant, const bal_id *id, bal_error *err)
{
    row_job job = { out, texts, tenant };

    return bal_graph_commit(tenant->store->graph, tenant->number, id, keep_row,
                            &job, err);
}

/* ---- where a history goes on -------------------------------------------- */

/* One step back from a commit that run->to has not: to what it was made on if
 * that is there, though it may be forgotten where the commit comes from. */
static int step_back(const bal_transfer_run *run, bal_id *out, bool *more,
                     const bal_commit_row *row, bal_error *err)
{
    bool there = false;
    int rc = row->has_made_on
                 ? bal_transfer_has(run->to, &row->made_on, &there, err)
                 : 0;

    *out = there ? row->made_on : row->parent;
    *more = there || row->has_parent;
    return rc;
}

int bal_transfer_ground(const bal_transfer_run *run, bal_id *out, bool *there,
                        const bal_id *id, bal_error *err)
{
    bal_id at = *id;
    bool more = true;

    *there = false;
    while (more) {
        BAL_LOCAL(bal_arena) texts = { 0 };
        bal_commit_row row = { 0 };
        int rc = bal_transfer_has(run->to, &at, there, err);
        if (!rc && *there)
            *out = at;
        if (rc || *there)
            return rc;
        rc = bal_transfer_row(&row, &texts, run->from, &at, err);
        if (!rc)
            rc = step_back(run, &at, &more, &row, err);
        if (rc)
            return rc;
    }
    return 0;
}

int bal_transfer_parent(const bal_transfer_run *run, bal_id *out, bool *there,
                        const bal_commit_row *row, bal_error *err)
{
    bal_id at;
    int rc = step_back(run, &at, there, row, err);

    return rc || !*there ? rc : bal_transfer_ground(run, out, there, &at, err);
}

/* ---- the walk ----------------------------------------------------------- */

typedef enum node_state {
    UNSEEN,
    OPEN, /* what it stands on is being looked at */
    DONE,
} node_state;

typedef struct node {
    bal_id id;
    node_state state;
    bool passed; /* forgotten where it would go: it does not come back */
} node;

typedef struct node_place {
    node *at; /* in the arena, so that it stays where it is */
} node_place;

typedef struct step {
    node *at;
    bool closing; /* all that it stands on is done */
} step;

typedef struct planning {
    bal_transfer_run *run;
    bal_arena nodes;
    bal_map ids;   /* to the place in all */
    bal_buf all;   /* of node_place */
    bal_buf stack; /* of step */
} planning;

static void planning_done(planning *self)
{
    bal_arena_done(&self->nodes);
    bal_map_done(&self->ids);
    bal_buf_done(&self->all);
    bal_buf_done(&self->stack);
}

static int find_node(planning *self, node **out, const bal_id *id,
                     bal_error *err)
{
    size_t at = bal_map_find(&self->ids, id, sizeof(*id));
    bool there = false;

    if (at != BAL_NONE) {
        assert(self->all.data);
        *out = ((node_place *)(void *)self->all.data)[at].at;
        return 0;
    }
    const node_place made = { bal_arena_alloc(&self->nodes, sizeof(node)) };
    if (!made.at)
        return bal_fail_memory(err, "a history");
    *made.at = (node){ .id = *id };
    at = self->all.len / sizeof(made);
    int rc = bal_buf_append(&self->all, &made, sizeof(made), err);
    if (!rc)
        rc = bal_map_add(&self->ids, &made.at->id, sizeof(*id), &at, &there,
                         err);
    *out = made.at;
    return rc;
}

static int push(planning *self, const bal_id *id, bal_error *err)
{
    step next = { NULL, false };
    int rc = find_node(self, &next.at, id, err);

    if (rc)
        return rc;
    assert(next.at);
    if (next.at->state == DONE)
        return 0;
    return bal_buf_append(&self->stack, &next, sizeof(next), err);
}

static int was_forgotten(const bal_tenant *tenant, const char *name,
                         const bal_id *id, bool *forgotten, bal_error *err)
{
    return bal_graph_forgotten(tenant->store->graph, name, BAL_TOMB_COMMIT, id,
                               forgotten, err);
}

/* What a commit names that run->from has no more: it was forgotten, here or
 * there, or the store is damaged. */
static int check_gap(const planning *self, const bal_id *commit,
                     const bal_id *missing, const char *as, bal_error *err)
{
    const bal_transfer_run *run = self->run;
    bool forgotten = false;
    char hexes[2][BAL_ID_HEX + 1];
    int rc =
        was_forgotten(run->from, run->from->name, missing, &forgotten, err);

    if (!rc && !forgotten)
        rc = was_forgotten(run->to, run->to->name, missing, &forgotten, err);
    if (rc || forgotten)
        return rc;
    bal_id_hex(hexes[0], commit);
    bal_id_hex(hexes[1], missing);
    return bal_fail(err, BAL_ECORRUPT,
                    "commit '%.12s': its %s '%.12s' is missed, and was not "
                    "forgotten",
                    hexes[0], as, hexes[1]);
}

/* A parent is what its id covers, or stands in for that. */
static int first_with_parent(const bal_id *id, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    return bal_fail(err, BAL_ECORRUPT,
                    "commit '%.12s': it was made on nothing and has a parent",
                    hex);
}

static int add_parent(planning *self, const bal_commit_row *row, bal_error *err)
{
    bool there = false;
    int rc = row->has_made_on
                 ? bal_transfer_has(self->run->to, &row->made_on, &there, err)
                 : 0;
    if (rc || there)
        return rc;

    bool gap = row->has_made_on &&
               (!row->has_parent || !bal_id_equal(&row->made_on, &row->parent));
    if (row->has_parent && !row->has_made_on)
        return first_with_parent(&row->id, err);
    if (gap)
        rc = check_gap(self, &row->id, &row->made_on, "parent", err);
    return rc || !row->has_parent ? rc : push(self, &row->parent, err);
}

/* ---- inputs of views ---------------------------------------------------- */

static int add_own_input(planning *self, const bal_id *view,
                         const bal_id *input, bal_error *err)
{
    const bal_transfer_run *run = self->run;
    bool there = false;
    int rc = bal_transfer_has(run->to, input, &there, err);
    if (rc || there)
        return rc;

    rc = bal_transfer_has(run->from, input, &there, err);
    if (rc)
        return rc;
    return there ? push(self, input, err)
                 : check_gap(self, view, input, "input", err);
}

/* What other tenants have is theirs to transfer. */
static int check_input(const planning *self, const bal_id *view,
                       const bal_input_row *input, bal_error *err)
{
    const bal_tenant *to = self->run->to;
    char hexes[2][BAL_ID_HEX + 1];
    bal_error why = { 0 };
    int64_t owner = 0;
    bool there = false;
    int rc = bal_graph_tenant(to->store->graph, &owner, input->tenant, 0, &why);
    if (rc && rc != BAL_ENOTFOUND)
        return bal_fail(err, rc, "%s", why.text);

    rc = has_commit(to->store->graph, rc ? 0 : owner, &input->commit, &there,
                    err);
    if (!rc && !there)
        rc = was_forgotten(to, input->tenant, &input->commit, &there, err);
    if (rc || there)
        return rc;
    bal_id_hex(hexes[0], view);
    bal_id_hex(hexes[1], &input->commit);
    rc = bal_fail(err, BAL_ENOTFOUND,
                  "commit '%.12s' is a view of '%s:%.12s', which is not in "
                  "'%s'",
                  hexes[0], input->tenant, hexes[1], to->store->root);
    return bal_hint(err, rc,
                    "transfer it there as tenant '%s' first, then grant it "
                    "there to '%s'",
                    input->tenant, to->name);
}

static int add_inputs(planning *self, const bal_commit_row *row, bal_error *err)
{
    const bal_transfer_run *run = self->run;
    BAL_LOCAL(bal_buf) body = { 0 };
    BAL_LOCAL(bal_inputs) inputs = { 0 };
    int rc = bal_manifest_get(NULL, &body, run->from, &row->manifest, err);
    if (!rc)
        rc = bal_inputs_read(&inputs, (bal_bytes){ body.data, body.len }, err);

    for (size_t i = 0; i < inputs.count && !rc; i++) {
        const bal_input_row *input = &inputs.rows[i];
        rc = !strcmp(input->tenant, run->from->name)
                 ? add_own_input(self, &row->id, &input->commit, err)
                 : check_input(self, &row->id, input, err);
    }
    return rc;
}

/* ---- one commit --------------------------------------------------------- */

static int refuse_forgotten(const planning *self, const bal_id *id,
                            bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    return bal_hint(err,
                    bal_fail(err, BAL_ECONFLICT,
                             "commit '%.12s' was forgotten in '%s'", hex,
                             self->run->to->store->root),
                    "a proof there says so; what it holds can be committed "
                    "there anew");
}

static bool is_named(const planning *self, const bal_id *id)
{
    for (size_t i = 0; i < self->run->tip_count; i++) {
        if (bal_id_equal(&self->run->tips[i].id, id))
            return true;
    }
    return false;
}

static int open_node(planning *self, node *at, bal_error *err)
{
    const bal_transfer_run *run = self->run;
    BAL_LOCAL(bal_arena) texts = { 0 };
    bal_commit_row row = { 0 };
    const step closing = { at, true };
    bool there = false;
    int rc = bal_transfer_has(run->to, &at->id, &there, err);

    at->state = there ? DONE : OPEN;
    if (rc || there)
        return rc;
    rc = bal_transfer_row(&row, &texts, run->from, &at->id, err);
    if (!rc)
        rc = was_forgotten(run->to, run->to->name, &at->id, &at->passed, err);
    if (!rc && at->passed && is_named(self, &at->id))
        rc = refuse_forgotten(self, &at->id, err);
    if (!rc)
        rc = bal_buf_append(&self->stack, &closing, sizeof(closing), err);
    if (!rc && !at->passed && !strcmp(row.kind, bal_kind_name(BAL_KIND_VIEW)))
        rc = add_inputs(self, &row, err);
    return rc ? rc : add_parent(self, &row, err);
}

static int close_node(planning *self, node *at, bal_error *err)
{
    at->state = DONE;
    if (at->passed)
        return 0;
    return bal_buf_append(&self->run->order, &at->id, sizeof(at->id), err);
}

/* Of what is still open one can only come to itself. */
static int goes_round(const node *at, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, &at->id);
    return bal_fail(err, BAL_ECORRUPT, "commit '%.12s' stands on itself", hex);
}

static int walk(planning *self, bal_error *err)
{
    int rc = 0;

    while (!rc && self->stack.len) {
        step next;
        self->stack.len -= sizeof(next);
        memcpy(&next, self->stack.data + self->stack.len, sizeof(next));
        if (next.closing)
            rc = close_node(self, next.at, err);
        else if (next.at->state == OPEN)
            rc = goes_round(next.at, err);
        else if (next.at->state == UNSEEN)
            rc = open_node(self, next.at, err);
        if (!rc)
            rc = bal_work_poll(self->run->to->store->work, err);
    }
    return rc;
}

int bal_transfer_plan(bal_transfer_run *run, bal_error *err)
{
    BAL_LOCAL(planning) self = { .run = run };
    int rc = 0;

    for (size_t i = 0; i < run->tip_count && !rc; i++) {
        rc = push(&self, &run->tips[i].id, err);
        if (!rc)
            rc = walk(&self, err);
    }
    return rc;
}
