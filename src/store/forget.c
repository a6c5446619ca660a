/* Forgetting, in the order of forget.h's steps, and going on with what a killed
 * process left. */
#include "store/forget.h"

#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"
#include "graph/fingerprints.h"
#include "graph/loads.h"
#include "graph/proofs.h"
#include "store/forget_finish.h"
#include "store/proof.h"
#include "store/recode.h"
#include "store/subject.h"
#include "store/trust.h"

#define REASON_MAX ((size_t)64 << 10)

/* ---- may it be done? ---------------------------------------------------- */

static int check_reason(const char *reason, bal_error *err)
{
    if (!reason || !reason[0])
        return bal_fail(err, BAL_EINVAL, "a deletion needs a reason");
    if (strlen(reason) > REASON_MAX)
        return bal_fail(err, BAL_EINVAL, "the reason is longer than 64 KiB");
    if (!bal_utf8_valid(reason, strlen(reason)))
        return bal_fail(err, BAL_EINVAL, "the reason is not UTF-8");
    return 0;
}

/* A store that trusts a key has no deletion that another one answers for. */
static int check_key(bal_store *self, const bal_key *key, bal_error *err)
{
    static const char how[] = "--key FILE, or BALLAST_SIGNING_KEY";
    bool any = false;
    bool trusted = false;
    int rc = bal_trust_any(self, &any, err);
    if (rc)
        return rc;

    if (key && !bal_key_signs(key))
        return bal_hint(
            err,
            bal_fail(err, BAL_EINVAL, "a public key cannot sign the proof"),
            "give the file of the pair");
    if (!any)
        return 0;
    if (!key)
        return bal_hint(err,
                        bal_fail(err, BAL_EINVAL,
                                 "the store's proofs are signed: a deletion "
                                 "needs the key"),
                        "%s", how);
    rc = bal_trusts(self, key, &trusted, err);
    if (rc || trusted)
        return rc;
    return bal_hint(err,
                    bal_fail(err, BAL_ECONFLICT,
                             "the store does not trust the key '%.20s…'",
                             bal_key_id(key)),
                    "'ballast key trust FILE' makes it one that is trusted");
}

static bool empty(const json_t *plan, const char *member)
{
    return !json_array_size(json_object_get(plan, member));
}

static int check_scope(const bal_tenant *tenant, const json_t *plan,
                       bal_error *err)
{
    if (plan && (!empty(plan, "commits") || !empty(plan, "manifests") ||
                 !empty(plan, "blocks")))
        return 0;
    return bal_hint(err,
                    bal_fail(err, BAL_ENOTFOUND,
                             "tenant '%s' has nothing to forget", tenant->name),
                    "'ballast tenants' lists those that have");
}

/* ---- step 0 ------------------------------------------------------------- */

/* Before their bytes go: what is coded by them and stays. */
static int free_others(bal_tenant *tenant, const bal_forget_options *options,
                       bal_buf *anew, bal_error *err)
{
    bal_graph *graph = tenant->store->graph;
    BAL_OWN(json_t) plan = NULL;
    uint64_t stored = 0;
    bool any = false;
    int rc = bal_graph_bases_any(graph, tenant->number, &any, err);
    if (rc || !any)
        return rc;

    {
        BAL_LOCAL(bal_tx) tx = { 0 };
        rc = bal_graph_begin(&tx, graph, 0, err);
        if (!rc)
            rc = bal_forget_plan(&plan, tenant, options, anew, err);
    }
    if (rc || !anew->len)
        return rc;
    return bal_recode(tenant, bal_ids_of(anew), bal_ids_count(anew), &stored,
                      err);
}

/* ---- step 1 ------------------------------------------------------------- */

static int move_ref(bal_tenant *tenant, const json_t *ref, bal_error *err)
{
    const char *to = json_string_value(json_object_get(ref, "to"));
    bal_move_row move = {
        .ref = json_string_value(json_object_get(ref, "name")),
        .op = "forget",
        .has_old = true,
        .has_now = to != NULL,
        .at = bal_clock_now(),
        .message = "its commit was forgotten",
    };
    int rc = bal_id_parse(&move.old,
                          json_string_value(json_object_get(ref, "from")), err);
    if (!rc && to)
        rc = bal_id_parse(&move.now, to, err);
    if (!rc)
        rc = bal_graph_move(tenant->store->graph, tenant->number, &move, err);
    /* Where the ref is no more, its name is to be found nowhere. */
    if (!rc && !to)
        rc = bal_graph_moves_forget(tenant->store->graph, tenant->number,
                                    move.ref, err);
    return rc;
}

static int take_commit(bal_tenant *tenant, const bal_id *commit,
                       const json_t *plan, bal_error *err)
{
    bal_graph *graph = tenant->store->graph;
    const json_t *refs = json_object_get(plan, "refs");
    const json_t *gone = json_array_get(json_object_get(plan, "manifests"), 0);
    bool too = false;
    int rc = 0;

    for (size_t i = 0; i < json_array_size(refs) && !rc; i++)
        rc = move_ref(tenant, json_array_get(refs, i), err);
    if (!rc)
        rc = bal_graph_commit_forget(graph, tenant->number, commit, &too, err);
    if (!rc && too != (gone != NULL))
        rc = bal_fail(err, BAL_ECORRUPT,
                      "the commit's manifest is not used as planned");
    if (!rc && too) {
        bal_id manifest;
        rc = bal_id_parse(&manifest, json_string_value(gone), err);
        if (!rc)
            rc = bal_graph_grants_forget(graph, tenant->name, &manifest, NULL,
                                         NULL, err);
    }
    if (!rc)
        rc = bal_graph_exports_forget(graph, tenant->number, commit, err);
    if (!rc)
        rc = bal_graph_loads_forget(graph, tenant->number, commit, err);
    if (!rc)
        rc = bal_graph_fingerprints_forget(graph, tenant->number, commit, err);
    return rc;
}

static int note(bal_store *self, const json_t *plan, const bal_key *key,
                int64_t *number, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    uint64_t epoch = 0;
    int rc = bal_graph_epoch_next(self->graph, &epoch, err);
    if (rc)
        return rc;

    if ((json_int_t)epoch != json_integer_value(json_object_get(plan, "epoch")))
        return bal_fail(err, BAL_ECORRUPT, "the epoch does not count up");
    rc = bal_pending_write(&text, plan, key, err);
    if (!rc)
        rc = bal_graph_journal_put(
            self->graph, json_string_value(json_object_get(plan, "tenant")),
            bal_buf_string(&text), number, err);
    /* While this waits, another key has no say: the first is the store's. */
    if (!rc && key)
        rc = bal_trust_add(self, key, err);
    return rc;
}

static int begin(bal_pending *out, bal_tenant *tenant,
                 const bal_forget_options *options, bal_buf *anew,
                 bal_error *err)
{
    bal_graph *graph = tenant->store->graph;
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);
    if (!rc)
        rc = check_key(tenant->store, options->key, err);
    if (!rc)
        rc = bal_forget_plan(&out->plan, tenant, options, anew, err);
    if (!rc)
        rc = check_scope(tenant, out->plan, err);
    if (!rc)
        rc = options->commit
                 ? take_commit(tenant, options->commit, out->plan, err)
                 : bal_graph_tenant_forget(graph, tenant->number, err);
    if (!rc)
        rc = note(tenant->store, out->plan, options->key, &out->number, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

/* ---- going on with what is in the journal -------------------------------- */

static const char *key_of(const bal_pending *row)
{
    return json_string_value(
        json_object_get(json_object_get(row->plan, "key"), "id"));
}

static void wait_for_key(const bal_pending *row)
{
    const char *id = key_of(row);

    bal_warn("forget",
             "a deletion waits for its signature: tenant '%s', key '%.20s…'; "
             "'ballast proofs --key FILE' signs it",
             bal_pending_tenant(row), id ? id : "");
}

/* A plan that only a secret can tell from a forged one. */
static int wait_for_secret(const bal_pending *row, bal_error *err)
{
    wait_for_key(row);
    if (row->state != BAL_JOURNAL_PLANNED)
        return 0;
    return bal_hint(err,
                    bal_fail(err, BAL_EBUSY,
                             "a deletion of tenant '%s' waits for its key",
                             bal_pending_tenant(row)),
                    "set BALLAST_SIGNING_KEY to '%.30s'", key_of(row));
}

/* Bytes and block rows are gone: nobody need wait for what is left, but who
 * deletes. Told once, for a command may try again. */
static int wait_for_reader(bal_store *self, const bal_error *why)
{
    if (!self->told_of_reader)
        bal_warn("forget", "a deletion waits for its signature: %s", why->text);
    self->told_of_reader = true;
    return 0;
}

static int sign(bal_store *self, const bal_pending *row, bool looked,
                const bal_key *offered, bal_error *err)
{
    BAL_OWN(bal_key) key = NULL;
    bool found = false;
    int rc = bal_pending_key(&key, &found, row, offered, err);

    if (!rc && !found) {
        wait_for_key(row);
        return 0;
    }
    if (!rc && !looked)
        rc = bal_pending_look(self, row, err);
    return rc ? rc : bal_pending_sign(self, row, key, NULL, err);
}

static int go_on(bal_store *self, bal_pending *row, const bal_key *offered,
                 unsigned flags, bal_error *err)
{
    bool planned = row->state == BAL_JOURNAL_PLANNED;
    bal_error why = { 0 };
    bool waits = false;
    int rc = bal_pending_believe(self, row, offered, &waits, err);
    if (!rc && waits)
        return wait_for_secret(row, err);
    if (!rc)
        rc = bal_pending_erase(self, row, err);
    if (rc)
        return rc;

    rc = bal_pending_scrub(self, row, flags, &why);
    if (rc == BAL_EBUSY && (flags & BAL_SCRUB_NOW))
        return wait_for_reader(self, &why);
    if (rc && err)
        *err = why;
    return rc ? rc : sign(self, row, planned, offered, err);
}

/* One that cannot be carried out holds up no other. */
int bal_forget_resume_with(bal_store *self, const bal_key *offered,
                           unsigned flags, bal_error *err)
{
    BAL_LOCAL(bal_pendings) pendings = { 0 };
    bal_error first = { 0 };
    int rc = bal_pendings_load(&pendings, self->graph, &first);

    for (size_t i = 0; i < pendings.count && rc != BAL_ENOMEM; i++) {
        bal_error why = { 0 };
        int one = go_on(self, &pendings.rows[i], offered, flags, &why);
        if (!one || (rc && one != BAL_ENOMEM))
            continue;
        rc = one;
        first = why;
    }
    if (rc && err)
        *err = first;
    return bal_within(err, rc, "finishing a deletion");
}

int bal_forget_resume_locked(bal_store *self, bal_error *err)
{
    return bal_forget_resume_with(self, NULL, BAL_SCRUB_NOW, err);
}

int bal_forget_resume(bal_store *self, bal_error *err)
{
    BAL_OWN(bal_db_lock) lock = NULL;
    bool any = false;
    int rc = bal_graph_journal_any(self->graph, &any, err);
    if (rc || !any)
        return rc;

    rc = bal_store_lock_now(&lock, self, err);
    if (rc)
        return rc;
    return bal_forget_resume_locked(self, err);
}

int bal_forget_unfinished(bal_store *self, bool *unfinished, bal_error *err)
{
    BAL_LOCAL(bal_pendings) pendings = { 0 };
    int rc = bal_pendings_load(&pendings, self->graph, err);

    *unfinished = false;
    for (size_t i = 0; i < pendings.count; i++) {
        const bal_pending *row = &pendings.rows[i];
        if (!row->plan || row->state == BAL_JOURNAL_PLANNED)
            *unfinished = true;
    }
    return rc;
}

/* Tell of those that wait. */
static int tell(bal_store *store, bal_pending_fn *fn, void *ctx, bal_error *err)
{
    BAL_LOCAL(bal_pendings) pendings = { 0 };
    int rc = bal_pendings_load(&pendings, store->graph, err);

    for (size_t i = 0; i < pendings.count && !rc; i++) {
        const bal_pending *row = &pendings.rows[i];
        const json_t *reason = json_object_get(row->plan, "reason");
        /* Of a row that is no plan, whoever tried to finish it has told. */
        if (row->plan && fn(ctx, bal_pending_tenant(row),
                            json_string_value(reason), key_of(row)))
            break;
    }
    return rc;
}

int bal_forget_finish(bal_store *store, const bal_key *key, bal_pending_fn *fn,
                      void *ctx, bal_error *err)
{
    BAL_OWN(bal_db_lock) lock = NULL;
    bool any = false;
    int rc = bal_graph_journal_any(store->graph, &any, err);
    if (rc || !any)
        return rc;

    if (key) {
        rc = bal_store_lock(&lock, store, BAL_LOCK_EXCLUSIVE, err);
        if (!rc)
            rc = bal_forget_resume_with(store, key, BAL_SCRUB_NOW, err);
    }
    return rc || !fn ? rc : tell(store, fn, ctx, err);
}

/* ---- the whole ---------------------------------------------------------- */

static int dry_run(bal_proof **out, bal_tenant *tenant,
                   const bal_forget_options *options, bal_error *err)
{
    BAL_OWN(json_t) plan = NULL;
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, tenant->store->graph, 0, err);
    if (!rc)
        rc = check_key(tenant->store, options->key, err);
    if (!rc)
        rc = bal_forget_plan(&plan, tenant, options, NULL, err);
    if (!rc)
        rc = check_scope(tenant, plan, err);
    return rc ? rc : bal_proof_of_plan(out, plan, err);
}

static int carry_out(bal_sha256 *attestation, bal_tenant *tenant,
                     const bal_forget_options *options, bal_error *err)
{
    bal_store *store = tenant->store;
    BAL_LOCAL(bal_pending) row = { .state = BAL_JOURNAL_PLANNED };
    BAL_LOCAL(bal_buf) anew = { 0 };
    BAL_OWN(bal_lock) asking = NULL;
    BAL_OWN(bal_db_lock) lock = NULL;
    int rc = bal_asking_lock(&asking, store, BAL_LOCK_EXCLUSIVE, err);
    if (!rc)
        rc = bal_store_lock(&lock, store, BAL_LOCK_EXCLUSIVE, err);
    if (!rc)
        rc = bal_forget_resume_with(store, options->key, 0, err);
    if (!rc)
        rc = bal_store_clear(store, err);
    if (!rc)
        rc = bal_tenant_renew(tenant, err);
    if (!rc && !tenant->number)
        rc = check_scope(tenant, NULL, err);
    if (!rc)
        rc = free_others(tenant, options, &anew, err);
    if (!rc)
        rc = begin(&row, tenant, options, &anew, err);
    if (rc)
        return rc;
    rc = bal_pending_erase(store, &row, err);
    if (!rc)
        rc = bal_pending_scrub(store, &row, 0, err);
    if (!rc)
        rc = bal_pending_sign(store, &row, options->key, attestation, err);
    if (!rc)
        return 0;
    return bal_hint(err, rc,
                    "it can be read no more; the next command removes what is "
                    "left and makes the proof");
}

int bal_forget(bal_proof **out, bal_tenant *tenant,
               const bal_forget_options *options, bal_error *err)
{
    bal_sha256 attestation;
    char hex[65];
    int rc = check_reason(options->reason, err);
    if (rc)
        return rc;

    if (!tenant->number)
        return check_scope(tenant, NULL, err);
    if (options->flags & BAL_FORGET_DRY_RUN)
        return dry_run(out, tenant, options, err);
    rc = carry_out(&attestation, tenant, options, err);
    if (rc)
        return rc;
    bal_sha256_hex(hex, &attestation);
    return bal_proof_open(out, tenant->store, hex, err);
}
