/* Plans as the journal has them, and whether to believe one. A database is a
 * file that anybody may have written to, and a plan is carried out by whoever
 * opens the store next: with their rights, and perhaps with their key. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/room.h"
#include "core/str.h"
#include "graph/proofs.h"
#include "store/forget_finish.h"
#include "store/named_id.h"
#include "store/statement.h"
#include "store/trust.h"

void bal_pending_done(bal_pending *self)
{
    json_decref(self->plan);
    bal_dsse_done(&self->dsse);
    *self = (bal_pending){ 0 };
}

void bal_pendings_done(bal_pendings *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_pending_done(&self->rows[i]);
    free(self->rows);
    *self = (bal_pendings){ 0 };
}

static const char *text_of(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

/* ---- writing ------------------------------------------------------------ */

int bal_pending_write(bal_buf *to, const json_t *plan, const bal_key *key,
                      bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_buf) envelope = { 0 };
    BAL_OWN(json_t) kept = NULL;
    int rc = bal_json_canonical(&text, plan, err);
    if (!rc)
        rc = bal_dsse_write(&envelope, BAL_PLAN_PAYLOAD,
                            (bal_bytes){ text.data, text.len }, key, err);
    if (!rc)
        rc = bal_json_parse(&kept, envelope.data, envelope.len, "a plan", err);
    if (rc)
        return rc;

    if (json_object_set(kept, "commits", json_object_get(plan, "commits")) ||
        json_object_set(kept, "manifests", json_object_get(plan, "manifests")))
        return bal_fail_memory(err, "the journal");
    return bal_json_canonical(to, kept, err);
}

/* ---- reading ------------------------------------------------------------ */

static bool is_tenant(const json_t *value)
{
    const char *name = json_string_value(value);

    return name && !bal_tenant_check(name, NULL);
}

static bool is_scope(const json_t *value)
{
    const char *scope = json_string_value(value);

    return scope && (!strcmp(scope, "commit") || !strcmp(scope, "tenant"));
}

static bool is_epoch(const json_t *value)
{
    return json_integer_value(value) > 0;
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool is_id(const json_t *value)
{
    const char *hex = json_string_value(value);

    return hex && bal_hex_valid(hex, BAL_ID_HEX);
}

static bool are_ids(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!is_id(json_array_get(value, i)))
            return false;
    }
    return json_is_array(value);
}

/* "tenant:id", each. */
static bool are_views(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *text = json_string_value(json_array_get(value, i));
        bal_named_id view;
        if (bal_named_id_parse(&view, text, NULL))
            return false;
    }
    return json_is_array(value);
}

static bool is_key(const json_t *value)
{
    return json_is_null(value) || text_of(value, "id");
}

static const struct plan_member {
    const char *name;
    bool (*good)(const json_t *value);
} plan_members[] = {
    { "tenant", is_tenant },       { "scope", is_scope },
    { "epoch", is_epoch },         { "reason", is_text },
    { "commits", are_ids },        { "manifests", are_ids },
    { "blocks", are_ids },         { "cache", are_views },
    { "broken_views", are_views }, { "key", is_key },
};

/* What paths, ids and the statement are made of. kept: what the row has beside
 * it for the graph, which nobody has signed. */
static int check_plan(const json_t *plan, const json_t *kept,
                      const char *tenant, bal_error *err)
{
    static const char *const twice[] = { "commits", "manifests" };

    for (size_t i = 0; i < sizeof(plan_members) / sizeof(plan_members[0]);
         i++) {
        const struct plan_member *row = &plan_members[i];
        if (!row->good(json_object_get(plan, row->name)))
            return bal_fail(err, BAL_ECORRUPT, "its plan has no '%s'",
                            row->name);
    }
    if (strcmp(text_of(plan, "tenant"), tenant) != 0)
        return bal_fail(err, BAL_ECORRUPT, "its plan is another tenant's");
    for (size_t i = 0; i < sizeof(twice) / sizeof(twice[0]); i++) {
        if (!json_equal(json_object_get(plan, twice[i]),
                        json_object_get(kept, twice[i])))
            return bal_fail(err, BAL_ECORRUPT, "its plan names other %s",
                            twice[i]);
    }
    return 0;
}

static int read_plan(bal_pending *out, const bal_journal_row *row,
                     bal_error *err)
{
    const bal_bytes text = { row->plan, strlen(row->plan) };
    BAL_OWN(json_t) kept = NULL;
    BAL_OWN(json_t) plan = NULL;

    if (!row->sealed)
        return bal_fail(err, BAL_ECORRUPT,
                        "it was changed by something else than ballast");
    int rc = bal_dsse_read(&out->dsse, text, err);
    if (!rc && strcmp(out->dsse.type, BAL_PLAN_PAYLOAD) != 0)
        rc = bal_fail(err, BAL_ECORRUPT, "it is not a plan");
    if (!rc)
        rc = bal_statement_read(&plan, out->dsse.payload, err);
    if (!rc)
        rc = bal_json_parse(&kept, text.data, text.len, "the journal", err);
    if (!rc)
        rc = check_plan(plan, kept, row->tenant, err);
    if (!rc)
        out->plan = BAL_TAKE(plan);
    return rc;
}

static int take_row(void *ctx, const bal_journal_row *row, bal_error *err)
{
    bal_pendings *self = ctx;
    bal_pending *rows =
        bal_room_for_one(self->rows, self->count, &self->room, sizeof(*rows));
    if (!rows)
        return bal_fail_memory(err, "the journal");

    self->rows = rows;
    bal_pending *next = &self->rows[self->count++];
    *next = (bal_pending){ .number = row->number, .state = row->state };
    int rc = read_plan(next, row, &next->why);
    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "the journal");
    return 0;
}

int bal_pendings_load(bal_pendings *out, bal_graph *graph, bal_error *err)
{
    bool any = false;
    int rc = bal_graph_journal_any(graph, &any, err);

    if (rc || !any)
        return rc;
    return bal_graph_journal(graph, take_row, out, err);
}

/* ---- believing ---------------------------------------------------------- */

static int disbelieve(const bal_pending *row, const char *why, bal_error *err)
{
    long long number = row->number;

    return bal_hint(
        err,
        bal_fail(err, BAL_ECORRUPT,
                 "row %lld of the journal is not carried out: %s", number, why),
        "restore the database; or, if no deletion is missed, take the row out "
        "by hand (DELETE FROM journal WHERE number = %lld), then 'ballast gc'",
        number);
}

/* The key that a plan names, among those that count. */
typedef struct signer {
    const bal_dsse *dsse;
    const char *id;
    bool found;
    bool good;
} signer;

static int try_key(void *ctx, const bal_key *key, bal_error *err)
{
    signer *self = ctx;

    if (strcmp(bal_key_id(key), self->id) != 0)
        return 0;
    self->found = true;
    int rc = bal_dsse_verify(self->dsse, key, &self->good, err);
    return rc ? rc : BAL_ROW_STOP;
}

static int try_offered(signer *self, bal_store *store, const bal_key *offered,
                       bal_error *err)
{
    bool trusted = false;
    int rc = bal_trusts(store, offered, &trusted, err);
    if (rc || !trusted)
        return rc;
    rc = try_key(self, offered, err);
    return rc == BAL_ROW_STOP ? 0 : rc;
}

/* By a key that the store trusts since it was planned, so that nobody can have
 * another one sign what they have written. */
static int check_signature(bal_store *self, const bal_pending *row,
                           const bal_key *offered, bool *waits, bal_error *err)
{
    signer who = {
        .dsse = &row->dsse,
        .id = text_of(json_object_get(row->plan, "key"), "id"),
    };
    bool any = false;
    int rc = bal_trust_any(self, &any, err);
    if (rc)
        return rc;
    if (!who.id)
        return any ? disbelieve(row,
                                "nobody has signed its plan, and the store "
                                "trusts a key",
                                err)
                   : 0;

    rc = bal_trust_each(self, try_key, &who, err);
    if (!rc && !who.found && offered)
        rc = try_offered(&who, self, offered, err);
    if (!rc && !who.found)
        rc = bal_trusts_secret(self, who.id, waits, err);
    if (rc || *waits || who.good)
        return rc;
    return disbelieve(row,
                      who.found ? "the key that it names has not signed its "
                                  "plan"
                                : "the store does not trust the key that it "
                                  "names",
                      err);
}

/* Is the plan in a statement, member for member? */
static bool says(const json_t *predicate, json_t *plan)
{
    const char *name;
    json_t *value;

    json_object_foreach(plan, name, value)
    {
        if (strcmp(name, "private") != 0 &&
            !json_equal(value, json_object_get(predicate, name)))
            return false;
    }
    return true;
}

typedef struct replay {
    json_t *plan;
    uint64_t epoch;
    bool found;
} replay;

/* One that cannot be read may be that of the plan. */
static int see_proof(void *ctx, const bal_proof_row *row, bal_error *err)
{
    replay *self = ctx;
    BAL_OWN(json_t) statement = NULL;
    BAL_LOCAL(bal_dsse) dsse = { 0 };
    bal_error why;

    if (row->epoch != self->epoch)
        return 0;
    int rc = bal_dsse_read(&dsse, row->envelope, &why);
    if (!rc)
        rc = bal_statement_read(&statement, dsse.payload, &why);
    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "a proof");
    self->found |=
        rc || says(json_object_get(statement, "predicate"), self->plan);
    return 0;
}

/* A row that was kept, and put back after its deletion has ended. */
static int check_replay(bal_store *self, const bal_pending *row, bal_error *err)
{
    replay again = { .plan = row->plan, .epoch = bal_pending_epoch(row) };
    int rc = bal_graph_proofs(self->graph, bal_pending_tenant(row), see_proof,
                              &again, err);

    if (rc || !again.found)
        return rc;
    return disbelieve(row, "there is a proof of it", err);
}

static int check_store(bal_store *self, const bal_pending *row, bal_error *err)
{
    const char *store = text_of(json_object_get(row->plan, "private"), "store");
    BAL_LOCAL(bal_buf) identity = { 0 };
    int rc = bal_store_identity(&identity, self, err);

    if (rc || (store && !strcmp(store, bal_buf_string(&identity))))
        return rc;
    return disbelieve(row, "its plan is another store's", err);
}

int bal_pending_believe(bal_store *self, const bal_pending *row,
                        const bal_key *offered, bool *waits, bal_error *err)
{
    *waits = false;
    if (!row->plan)
        return disbelieve(row, row->why.text, err);
    int rc = check_store(self, row, err);
    if (!rc)
        rc = check_signature(self, row, offered, waits, err);
    return rc ? rc : check_replay(self, row, err);
}

const char *bal_pending_tenant(const bal_pending *row)
{
    const char *name = text_of(row->plan, "tenant");

    return name ? name : "";
}

uint64_t bal_pending_epoch(const bal_pending *row)
{
    return (uint64_t)json_integer_value(json_object_get(row->plan, "epoch"));
}
