/* Fingerprints of commits and their sets of probes: rows out of what probe/
 * knows in memory, and back. */
#include "probe/fingerprint.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"
#include "graph/fingerprints.h"
#include "graph/forgets.h"
#include "store/store.h"
#include "store/subject.h"

/* ---- putting ------------------------------------------------------------ */

static int refuse_gaps(const bal_fingerprint *self, bal_error *err)
{
    const bal_probes *probes = bal_fingerprint_probes(self);

    for (size_t i = 0; i < bal_probes_count(probes); i++) {
        if (!bal_fingerprint_at(self, i))
            return bal_fail(err, BAL_EINVAL, "no answer to probe '%.200s'",
                            bal_probes_at(probes, i)->id);
    }
    return 0;
}

static int put_rows(bal_tenant *tenant, const bal_probes_row *set,
                    const bal_fingerprint_row *row, bal_error *err)
{
    BAL_OWN(bal_db_lock) lock = NULL;
    int rc = bal_store_recover(tenant->store, err);

    if (!rc)
        rc = bal_store_lock(&lock, tenant->store, BAL_LOCK_SHARED, err);
    return rc ? rc
              : bal_graph_fingerprint_put(tenant->store->graph, tenant->number,
                                          set, row, err);
}

int bal_fingerprint_put(bal_fingerprint *self, bal_tenant *tenant,
                        const bal_id *commit, unsigned flags, bal_error *err)
{
    const bal_probes *probes = bal_fingerprint_probes(self);
    BAL_LOCAL(bal_buf) body = { 0 };
    int rc = flags & BAL_FINGERPRINT_PARTIAL ? 0 : refuse_gaps(self, err);

    if (!rc && !bal_fingerprint_count(self))
        rc = bal_fail(err, BAL_EINVAL, "a fingerprint without an answer");
    if (!rc)
        rc = bal_fingerprint_write(&body, self, err);
    if (rc)
        return rc;
    int64_t now = bal_clock_now();
    const char *json = bal_probes_json(probes);
    const bal_probes_row set = {
        .id = *bal_probes_id(probes),
        .probes = bal_probes_count(probes),
        .body = { json, strlen(json) },
        .created_at = now,
    };
    const bal_fingerprint_row row = {
        .commit = *commit,
        .probes = set.id,
        .terms = bal_fingerprint_terms(self),
        .answers = bal_fingerprint_count(self),
        .body = { body.data, body.len },
        .created_at = now,
    };
    return put_rows(tenant, &set, &row, err);
}

/* ---- listing ------------------------------------------------------------ */

/* Kept until the query is over: fn may take its time. */
typedef struct kept {
    bal_buf rows;
    bal_arena texts;
} kept;

static void kept_done(kept *self)
{
    bal_buf_done(&self->rows);
    bal_arena_done(&self->texts);
}

static int keep_row(void *ctx, const bal_fingerprint_row *row, bal_error *err)
{
    kept *all = ctx;
    bal_fingerprint_info info = {
        .commit = row->commit,
        .probes = row->probes,
        .terms = bal_arena_copy(&all->texts, row->terms, strlen(row->terms)),
        .answers = row->answers,
        .created_at = row->created_at,
    };

    return info.terms ? bal_buf_append(&all->rows, &info, sizeof(info), err)
                      : bal_fail_memory(err, "fingerprints");
}

int bal_fingerprint_each(bal_tenant *tenant, const bal_id *commit,
                         bal_fingerprint_fn *fn, void *ctx, bal_error *err)
{
    BAL_LOCAL(kept) all = { { 0 } };
    bal_fingerprint_info info;
    int rc = bal_graph_fingerprints(tenant->store->graph, tenant->number,
                                    commit, NULL, keep_row, &all, err);

    for (size_t at = 0; at < all.rows.len && !rc; at += sizeof(info)) {
        memcpy(&info, all.rows.data + at, sizeof(info));
        if (fn(ctx, &info))
            break;
    }
    return rc;
}

static int keep_set(void *ctx, const bal_probes_row *row, bal_error *err)
{
    const bal_probes_info info = {
        .id = row->id,
        .probes = row->probes,
        .fingerprints = row->fingerprints,
        .created_at = row->created_at,
    };

    return bal_buf_append(ctx, &info, sizeof(info), err);
}

int bal_probes_each(bal_tenant *tenant, bal_probes_fn *fn, void *ctx,
                    bal_error *err)
{
    BAL_LOCAL(bal_buf) rows = { 0 };
    bal_probes_info info;
    int rc = bal_graph_probe_sets(tenant->store->graph, tenant->number,
                                  keep_set, &rows, err);

    for (size_t at = 0; at < rows.len && !rc; at += sizeof(info)) {
        memcpy(&info, rows.data + at, sizeof(info));
        if (fn(ctx, &info))
            break;
    }
    return rc;
}

/* ---- opening ------------------------------------------------------------ */

static int read_set(void *ctx, const bal_probes_row *row, bal_error *err)
{
    bal_probes **out = ctx;
    BAL_OWN(bal_probes) probes = NULL;
    int rc = bal_probes_read(&probes, row->body.data, row->body.len, err);

    if (!rc && !bal_id_equal(bal_probes_id(probes), &row->id))
        rc = bal_fail(err, BAL_ECORRUPT, "probes that give another id");
    if (!rc)
        *out = BAL_TAKE(probes);
    return rc;
}

static int load(bal_probes **out, bal_tenant *tenant, const bal_id *id,
                bal_error *err)
{
    char hex[BAL_ID_HEX + 1];
    int rc = bal_graph_probe_set(tenant->store->graph, tenant->number, id,
                                 read_set, out, err);

    bal_id_hex(hex, id);
    return rc == BAL_ECORRUPT ? bal_within(err, rc, "probe set %.12s", hex)
                              : rc;
}

typedef struct parsing {
    bal_fingerprint *out;
    bal_probes *probes;
} parsing;

static int parse_row(void *ctx, const bal_fingerprint_row *row, bal_error *err)
{
    parsing *self = ctx;

    return bal_fingerprint_parse(&self->out, self->probes, row->body,
                                 row->terms, err);
}

int bal_fingerprint_open(bal_fingerprint **out, bal_tenant *tenant,
                         const bal_id *commit, const bal_id *probes,
                         const char *terms, bal_error *err)
{
    const bal_fingerprint_key key = { commit, probes, terms };
    BAL_OWN(bal_probes) set = NULL;
    parsing self = { NULL, NULL };
    char hex[BAL_ID_HEX + 1];
    int rc = load(&set, tenant, probes, err);
    if (rc)
        return rc;

    self.probes = set;
    rc = bal_graph_fingerprint(tenant->store->graph, tenant->number, &key,
                               parse_row, &self, err);
    bal_id_hex(hex, commit);
    if (rc == BAL_ECORRUPT)
        return bal_within(err, rc, "the fingerprint of %.12s", hex);
    if (!rc)
        *out = self.out;
    return rc;
}

/* ---- sets by prefix ----------------------------------------------------- */

static int keep_id(void *ctx, const bal_id *id, bal_error *err)
{
    return bal_buf_append(ctx, id, sizeof(*id), err);
}

static int find_set(bal_id *out, bal_tenant *tenant, const char *prefix,
                    bal_error *err)
{
    BAL_LOCAL(bal_buf) ids = { 0 };
    size_t len = strlen(prefix);

    if (len < 4 || len > BAL_ID_HEX || !bal_hex_valid(prefix, 0))
        return bal_hint(
            err,
            bal_fail(err, BAL_EINVAL,
                     "'%.80s' is not 4 to 64 hex digits of a probe set's id",
                     prefix),
            "'ballast probes' lists them");
    int rc = bal_graph_probe_prefix(tenant->store->graph, tenant->number,
                                    prefix, 2, keep_id, &ids, err);
    if (rc)
        return rc;
    if (!bal_ids_count(&ids))
        return bal_fail(err, BAL_ENOTFOUND, "no probe set '%s'", prefix);
    if (bal_ids_count(&ids) > 1)
        return bal_fail(err, BAL_EINVAL,
                        "more than one probe set begins with '%s'", prefix);
    *out = *bal_ids_at(&ids, 0);
    return 0;
}

int bal_probes_resolve(bal_id *out, bal_tenant *tenant, const char *prefix,
                       bal_error *err)
{
    return find_set(out, tenant, prefix, err);
}

int bal_probes_load(bal_probes **out, bal_tenant *tenant, const char *prefix,
                    bal_error *err)
{
    bal_id id;
    int rc = find_set(&id, tenant, prefix, err);

    return rc ? rc : load(out, tenant, &id, err);
}

/* The database is scrubbed, so that no word of them is left in its file; if
 * that cannot be, whoever writes next does it (bal_store_recover). */
static int scrub(bal_store *store, unsigned flags, bal_error *err)
{
    int rc = bal_graph_scrub(store->graph, flags, err);

    return rc ? rc : bal_graph_scrub_done(store->graph, err);
}

int bal_probes_scrub(bal_store *store, bal_error *err)
{
    bool due = false;
    bal_error why = { 0 };
    int rc = bal_graph_scrub_due(store->graph, &due, err);

    if (rc || !due)
        return rc;
    rc = scrub(store, BAL_SCRUB_NOW, &why);
    if (rc == BAL_EBUSY)
        return 0; /* a reader is there: later */
    return rc ? bal_fail(err, rc, "%s", why.text) : 0;
}

int bal_probes_forget(bal_tenant *tenant, const bal_id *id,
                      uint64_t *fingerprints, bal_error *err)
{
    bal_store *store = tenant->store;
    BAL_OWN(bal_lock) asking = NULL;
    BAL_OWN(bal_db_lock) lock = NULL;
    int rc = bal_store_recover(store, err);

    if (!rc)
        rc = bal_asking_lock(&asking, store, BAL_LOCK_EXCLUSIVE, err);
    if (!rc)
        rc = bal_store_lock(&lock, store, BAL_LOCK_EXCLUSIVE, err);
    if (!rc)
        rc = bal_graph_probes_forget(store->graph, tenant->number, id,
                                     fingerprints, err);
    if (rc)
        return rc;
    rc = scrub(store, 0, err);
    return rc ? bal_hint(err, rc,
                         "it can be read no more; the next command that writes "
                         "removes what is left of it")
              : 0;
}

/* ---- what two commits have in common ------------------------------------- */

typedef struct candidate {
    bal_id probes;
    const char *terms;
} candidate;

typedef struct candidates {
    const bal_id *probes; /* NULL: any */
    bal_buf rows;
    bal_arena texts;
} candidates;

static void candidates_done(candidates *self)
{
    bal_buf_done(&self->rows);
    bal_arena_done(&self->texts);
}

static int keep_candidate(void *ctx, const bal_fingerprint_row *row,
                          bal_error *err)
{
    candidates *all = ctx;
    candidate one = {
        .probes = row->probes,
        .terms = bal_arena_copy(&all->texts, row->terms, strlen(row->terms)),
    };

    if (!one.terms)
        return bal_fail_memory(err, "fingerprints");
    return bal_buf_append(&all->rows, &one, sizeof(one), err);
}

static size_t candidate_count(const candidates *self)
{
    return self->rows.len / sizeof(candidate);
}

static const candidate *candidate_at(const candidates *self, size_t i)
{
    return (const candidate *)(const void *)self->rows.data + i;
}

static bool same(const candidate *a, const candidate *b)
{
    return bal_id_equal(&a->probes, &b->probes) && !strcmp(a->terms, b->terms);
}

/* The latest of b that a has, too; NULL: none. */
static const candidate *common(const candidates *a, const candidates *b)
{
    for (size_t i = 0; i < candidate_count(b); i++) {
        for (size_t k = 0; k < candidate_count(a); k++) {
            if (same(candidate_at(a, k), candidate_at(b, i)))
                return candidate_at(b, i);
        }
    }
    return NULL;
}

static int list(candidates *out, bal_tenant *tenant, const bal_id *commit,
                bal_error *err)
{
    return bal_graph_fingerprints(tenant->store->graph, tenant->number, commit,
                                  out->probes, keep_candidate, out, err);
}

int bal_behaviour_find(bal_fingerprint **a, bal_fingerprint **b,
                       bal_tenant *tenant, const bal_id *commits,
                       const char *prefix, bal_error *err)
{
    BAL_LOCAL(candidates) of_a = { 0 };
    BAL_LOCAL(candidates) of_b = { 0 };
    BAL_OWN(bal_fingerprint) before = NULL;
    BAL_OWN(bal_fingerprint) after = NULL;
    bal_id set;
    int rc = prefix ? find_set(&set, tenant, prefix, err) : 0;

    of_a.probes = of_b.probes = prefix ? &set : NULL;
    if (!rc)
        rc = list(&of_a, tenant, &commits[0], err);
    if (!rc)
        rc = list(&of_b, tenant, &commits[1], err);
    if (rc)
        return rc;
    const candidate *found = common(&of_a, &of_b);
    if (!found && prefix)
        return bal_fail(err, BAL_ENOTFOUND,
                        "no fingerprints of probe set '%s' on the same terms "
                        "on both commits",
                        prefix);
    if (found)
        rc = bal_fingerprint_open(&before, tenant, &commits[0], &found->probes,
                                  found->terms, err);
    if (found && !rc)
        rc = bal_fingerprint_open(&after, tenant, &commits[1], &found->probes,
                                  found->terms, err);
    if (rc == BAL_ENOTFOUND && found)
        return bal_fail(err, BAL_ECORRUPT,
                        "the probes of a fingerprint are not there");
    if (rc)
        return rc;
    *a = BAL_TAKE(before);
    *b = BAL_TAKE(after);
    return 0;
}
