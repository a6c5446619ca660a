/* What the database and the view cache have of what a proof names. What was
 * committed anew after the deletion is told as such: a proof stays true when
 * the same content comes again. */
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/str.h"
#include "graph/fingerprints.h"
#include "graph/forgets.h"
#include "store/forget_finish.h"
#include "store/named_id.h"
#include "store/statement.h"
#include "store/verify.h"
#include "store/view_cache.h"

/* What is named by id, other than blocks. */
static const struct kind_row {
    const char *member;
    const char *name;
    bal_tomb tomb;
    bal_presence_of presence;
} kinds[] = {
    { "commits", "commit", BAL_TOMB_COMMIT, BAL_PRESENCE_COMMIT },
    { "manifests", "manifest", BAL_TOMB_MANIFEST, BAL_PRESENCE_MANIFEST },
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int problem(bal_verification *self, const char *what, const bal_id *id,
                   const char *state, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    return bal_verify_tell(self, BAL_FINDING_PROBLEM, err, "%s %s %s", what,
                           hex, state);
}

typedef int each_id_fn(bal_verification *self, const struct kind_row *kind,
                       const bal_id *id, bal_error *err);

static int each_id(bal_verification *self, each_id_fn *fn, bal_error *err)
{
    BAL_LOCAL(bal_buf) ids = { 0 };
    int rc = 0;

    for (size_t i = 0; i < KINDS && !rc; i++) {
        bal_buf_clear(&ids);
        rc = bal_statement_ids(
            &ids, json_object_get(self->predicate, kinds[i].member), err);
        if (rc == BAL_ECORRUPT) {
            rc = bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                                 "the statement names a %s that is no id",
                                 kinds[i].name);
            continue;
        }
        for (size_t at = 0; at < ids.len && !rc; at += sizeof(bal_id)) {
            bal_id id;
            memcpy(&id, ids.data + at, sizeof(id));
            rc = fn(self, &kinds[i], &id, err);
        }
    }
    return rc;
}

/* ---- tombstones --------------------------------------------------------- */

static int has_tombstone(bal_verification *self, const struct kind_row *kind,
                         const bal_id *id, bal_error *err)
{
    const bal_tombstone stone = {
        .tenant = self->tenant,
        .kind = kind->tomb,
        .id = *id,
        .attestation = self->proof->attestation,
    };
    bool there = false;
    int rc = bal_graph_tombstone(self->store->graph, &stone, &there, err);

    if (rc || there)
        return rc;
    return problem(self, kind->name, id, "has no tombstone of this proof", err);
}

int bal_verify_tombstones(bal_verification *self, bal_error *err)
{
    return each_id(self, has_tombstone, err);
}

/* ---- the journal -------------------------------------------------------- */

static bool lists(const json_t *plan, const char *member, const char *hex)
{
    const json_t *ids = json_object_get(plan, member);

    for (size_t i = 0; i < json_array_size(ids); i++) {
        const char *other = json_string_value(json_array_get(ids, i));
        if (other && !strcmp(other, hex))
            return true;
    }
    return false;
}

/* Is a commit or manifest of the proof in a plan whose bytes may be there? */
static bool overlaps(const bal_verification *self, const bal_pending *row)
{
    const char *tenant =
        json_string_value(json_object_get(row->plan, "tenant"));

    if (row->state != BAL_JOURNAL_PLANNED || !tenant ||
        strcmp(tenant, self->tenant) != 0)
        return false;
    for (size_t i = 0; i < KINDS; i++) {
        const json_t *ids = json_object_get(self->predicate, kinds[i].member);
        for (size_t n = 0; n < json_array_size(ids); n++) {
            const char *hex = json_string_value(json_array_get(ids, n));
            if (hex && lists(row->plan, kinds[i].member, hex))
                return true;
        }
    }
    return false;
}

int bal_verify_journal(bal_verification *self, bal_error *err)
{
    BAL_LOCAL(bal_pendings) pendings = { 0 };
    int rc = bal_pendings_load(&pendings, self->store->graph, err);

    for (size_t i = 0; i < pendings.count && !rc; i++) {
        if (overlaps(self, &pendings.rows[i]))
            rc = bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                                 "a deletion of what it names has begun again "
                                 "and has not ended");
    }
    return rc;
}

/* ---- commits and manifests ---------------------------------------------- */

/* *again: it is there, and was made after the deletion. */
static int presence_of(bal_verification *self, const struct kind_row *kind,
                       const bal_id *id, bal_presence *found, bool *again,
                       bal_error *err)
{
    *found = (bal_presence){ .row = false };
    int rc = bal_graph_presence(self->store->graph, self->tenant,
                                kind->presence, id, found, err);

    *again = found->there && found->oldest >= self->epoch;
    return rc;
}

static int is_gone(bal_verification *self, const struct kind_row *kind,
                   const bal_id *id, bal_error *err)
{
    bal_presence found;
    bool again;
    char hex[BAL_ID_HEX + 1], at[40];
    int rc = presence_of(self, kind, id, &found, &again, err);

    if (rc || !found.row)
        return rc;
    if (!again)
        return problem(self, kind->name, id, "is still in the database", err);
    bal_id_hex(hex, id);
    bal_clock_rfc3339(at, found.since);
    return bal_verify_tell(self, BAL_FINDING_NOTE, err,
                           "%s %s is present again since %s", kind->name, hex,
                           at);
}

int bal_verify_facts(bal_verification *self, bal_error *err)
{
    return each_id(self, is_gone, err);
}

/* ---- the cache ---------------------------------------------------------- */

static int own_cache(bal_verification *self, const struct kind_row *kind,
                     const bal_id *id, bal_error *err)
{
    bal_presence found;
    bool again;
    bool there = false;

    if (kind->presence != BAL_PRESENCE_MANIFEST)
        return 0;
    int rc = presence_of(self, kind, id, &found, &again, err);
    if (rc || again)
        return rc;
    rc = bal_view_cache_has(self->store, self->tenant, id, &there, err);
    if (rc || !there)
        return rc;
    return problem(self, "the view cache has manifest", id, "still", err);
}

/* Is anything that the proof names there again? Then the views that stood on it
 * may resolve again. */
static int any_again(bal_verification *self, bool *any, bal_error *err)
{
    BAL_LOCAL(bal_buf) ids = { 0 };
    bal_presence found;
    int rc = bal_statement_ids(
        &ids, json_object_get(self->predicate, kinds[0].member), err);

    *any = false;
    for (size_t at = 0; at < ids.len && !rc && !*any; at += sizeof(bal_id)) {
        bal_id id;
        memcpy(&id, ids.data + at, sizeof(id));
        rc = presence_of(self, &kinds[0], &id, &found, any, err);
    }
    return rc == BAL_ECORRUPT ? 0 : rc;
}

/* A view that stood on it, "tenant:manifest". */
static int broken_cache(bal_verification *self, const char *text,
                        bal_error *err)
{
    bal_presence found = { .row = false };
    bal_named_id view;
    bool there = false;

    if (bal_named_id_parse(&view, text, NULL))
        return bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                               "the statement names a view that is none");
    int rc =
        bal_view_cache_has(self->store, view.tenant, &view.id, &there, err);
    if (rc || !there)
        return rc;
    /* The same view, recorded again since, may have been resolved again. */
    rc = bal_graph_presence(self->store->graph, view.tenant,
                            BAL_PRESENCE_MANIFEST, &view.id, &found, err);
    if (rc || (found.there && found.oldest >= self->epoch))
        return rc;
    return problem(self, "the view cache has manifest", &view.id, "still", err);
}

int bal_verify_cache(bal_verification *self, bal_error *err)
{
    const json_t *views = json_object_get(self->predicate, "cache");
    bool again = false;
    int rc = each_id(self, own_cache, err);

    if (!rc)
        rc = any_again(self, &again, err);
    for (size_t i = 0; i < json_array_size(views) && !rc && !again; i++)
        rc = broken_cache(self, json_string_value(json_array_get(views, i)),
                          err);
    return rc;
}

/* ---- grants ------------------------------------------------------------- */

static const char *grant_text(const json_t *grant, const char *key)
{
    const char *text = json_string_value(json_object_get(grant, key));

    return text ? text : "";
}

static int check_grant(bal_verification *self, const json_t *grant,
                       bal_error *err)
{
    const char *owner = grant_text(grant, "owner");
    const char *grantee = grant_text(grant, "grantee");
    bal_presence found;
    bool again, live = false;
    bal_id manifest;
    int rc = bal_id_parse(&manifest, grant_text(grant, "manifest"), NULL);

    if (rc)
        return bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                               "the statement names a grant of no manifest");
    rc = bal_graph_granted(self->store->graph, owner, &manifest, grantee, &live,
                           err);
    if (rc || !live)
        return rc;
    /* What came again may have been granted again. */
    rc = presence_of(self, &kinds[1], &manifest, &found, &again, err);
    if (rc || again)
        return rc;
    return problem(self, "the grant of manifest", &manifest, "is still live",
                   err);
}

int bal_verify_grants(bal_verification *self, bal_error *err)
{
    const json_t *grants = json_object_get(self->predicate, "grants_revoked");
    int rc = 0;

    for (size_t i = 0; i < json_array_size(grants) && !rc; i++)
        rc = check_grant(self, json_array_get(grants, i), err);
    return rc;
}

/* ---- refs --------------------------------------------------------------- */

static int check_ref(void *ctx, const char *name, const bal_id *commit,
                     bal_error *err)
{
    return bal_verify_tell(ctx, BAL_FINDING_PROBLEM, err,
                           "ref '%.64s' is still at it: %02x%02x%02x%02x…",
                           name, commit->bytes[0], commit->bytes[1],
                           commit->bytes[2], commit->bytes[3]);
}

static int no_ref_at(bal_verification *self, const struct kind_row *kind,
                     const bal_id *id, bal_error *err)
{
    bal_graph *graph = self->store->graph;
    bal_presence found;
    bal_error why;
    int64_t tenant = 0;
    bool again;

    if (kind->presence != BAL_PRESENCE_COMMIT)
        return 0;
    int rc = presence_of(self, kind, id, &found, &again, err);
    if (rc || again || !found.row)
        return rc;
    rc = bal_graph_tenant(graph, &tenant, self->tenant, 0, &why);
    if (rc == BAL_ENOTFOUND)
        return 0;
    if (rc)
        return bal_fail(err, rc, "%s", why.text);
    return bal_graph_refs_at(graph, tenant, id, check_ref, self, err);
}

int bal_verify_refs(bal_verification *self, bal_error *err)
{
    return each_id(self, no_ref_at, err);
}

/* ---- answers ------------------------------------------------------------ */

static int check_fingerprint(void *ctx, const bal_fingerprint_row *row,
                             bal_error *err)
{
    return problem(ctx, "what was answered by commit", &row->commit,
                   "is still in the database", err);
}

/* Rows go by commit, and no commit comes back with its id by being made again.
 */
static int no_answers_of(bal_verification *self, const struct kind_row *kind,
                         const bal_id *id, bal_error *err)
{
    bal_graph *graph = self->store->graph;
    int64_t tenant = 0;
    bal_error why;

    if (kind->presence != BAL_PRESENCE_COMMIT)
        return 0;
    int rc = bal_graph_tenant(graph, &tenant, self->tenant, 0, &why);
    if (rc == BAL_ENOTFOUND)
        return 0;
    if (rc)
        return bal_fail(err, rc, "%s", why.text);
    return bal_graph_fingerprints(graph, tenant, id, NULL, check_fingerprint,
                                  self, err);
}

int bal_verify_answers(bal_verification *self, bal_error *err)
{
    return each_id(self, no_answers_of, err);
}
