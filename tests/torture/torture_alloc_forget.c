/* Deletions, grants and proofs with allocations that fail: ENOMEM or success,
 * nothing lost of memory, and the store is before or after. */
#include <string.h>

#include "core/file.h"
#include "torture/alloc_walk.h"

/* Of the allocations of a deletion, of which VACUUM alone has thousands: these
 * many, at equal distances. */
enum { MOST = 150 };

static char attestation[65];
static uint64_t deletions; /* how many there should be proofs of */

static const char *path_of(const char *name)
{
    static char path[160];

    snprintf(path, sizeof(path), "%s/%s", here.dir, name);
    return path;
}

/* ---- scenarios ---------------------------------------------------------- */

static int make_key(session *self)
{
    bal_key *key = NULL;
    int rc = bal_key_generate(&key, &self->err);

    if (!rc)
        rc = bal_key_write(key, path_of("key.pem"), &self->err);
    bal_key_free(key);
    return rc;
}

static int commit_ref(session *self, const char *path, const char *ref)
{
    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = bal_model_from_path(&self->a, path, &self->err);
    return rc ? rc : commit_model(self, self->a, ref);
}

static int commit_kept(session *self)
{
    return commit_ref(self, here.base, "main");
}

static int commit_doomed(session *self)
{
    return commit_ref(self, here.tuned, "doomed");
}

static int forget_doomed(session *self)
{
    bal_id id;
    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = bal_key_load(&self->key, path_of("key.pem"), &self->err);
    if (!rc)
        rc = bal_resolve(&id, self->tenant, "doomed", &self->err);
    if (rc)
        return rc;
    const bal_forget_options options = {
        .commit = &id,
        .reason = "r",
        .key = self->key,
        .key_path = path_of("key.pem"),
    };
    return bal_forget(&self->proof, self->tenant, &options, &self->err);
}

static int tell_finding(void *ctx, bal_finding finding, const char *text)
{
    (void)ctx;
    if (finding == BAL_FINDING_PROBLEM)
        print_error("verify: %s\n", text);
    return 0;
}

static int verify_it(session *self)
{
    bal_verdict verdict = { 0 };
    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = bal_proof_open(&self->proof, self->store, attestation, &self->err);
    if (!rc)
        rc = bal_proof_verify(self->proof, self->store, NULL, tell_finding,
                              NULL, &verdict, &self->err);
    CHECK(rc || (!verdict.problems && verdict.signed_by_trusted));
    return rc;
}

static int bundle_it(session *self)
{
    char *text = NULL;
    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = bal_proof_open(&self->proof, self->store, attestation, &self->err);
    if (!rc)
        rc = bal_proof_bundle(&text, self->store, self->proof, &self->err);
    if (!rc)
        rc = bal_file_replace(path_of("bundle.json"), text, strlen(text),
                              &self->err);
    bal_text_free(text);
    return rc;
}

static int load_it(session *self)
{
    int rc = bal_proof_load(&self->proof, path_of("bundle.json"), &self->err);

    CHECK(rc ||
          !strcmp(bal_proof_info_of(self->proof)->attestation, attestation));
    return rc;
}

static int grant_main(session *self)
{
    bal_id id;
    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = bal_resolve(&id, self->tenant, "main", &self->err);
    return rc ? rc
              : bal_grant(self->tenant, &id, "beta", NULL, NULL, &self->err);
}

static int revoke_main(session *self)
{
    uint64_t revoked = 0;
    bal_id id;
    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = bal_resolve(&id, self->tenant, "main", &self->err);
    return rc ? rc
              : bal_revoke(self->tenant, &id, "beta", &revoked, NULL, NULL,
                           &self->err);
}

/* ---- judging ------------------------------------------------------------ */

static int count_proof(void *ctx, const bal_proof *proof)
{
    ++*(uint64_t *)ctx;
    snprintf(attestation, sizeof(attestation), "%s",
             bal_proof_info_of(proof)->attestation);
    return 0;
}

/* Is the commit there, then there is no proof of it, and the other way round.
 */
static bool still_there;

static int look(session *self)
{
    uint64_t proofs = 0;
    bal_id id;
    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = bal_resolve(&id, self->tenant, "doomed", &self->err);
    CHECK(!rc || rc == BAL_ENOTFOUND);
    still_there = !rc;
    rc = bal_proof_each(self->store, NULL, count_proof, &proofs, &self->err);
    CHECK(rc || proofs == deletions + !still_there);
    deletions = proofs;
    return rc;
}

static void walk_forgets(bool all)
{
    bool failed = true;

    run_well(commit_doomed);
    run_well(forget_doomed);
    long stride = alloc_turns() / MOST + 1;
    run_well(look);
    for (long n = 1; failed; n += stride) {
        if (!still_there)
            run_well(commit_doomed);
        int rc = run_once(forget_doomed, n, all, &failed);
        CHECK(rc == 0 || rc == BAL_ENOMEM);
        CHECK(rc == 0 || failed);
        run_well(look);
        CHECK(rc || !still_there);
        if (n % 50 < stride)
            run_well(walk_fsck);
    }
}

static bool granted;

static int count_live(void *ctx, const bal_grant_info *grant)
{
    *(bool *)ctx |= !grant->revoked_at;
    return 0;
}

static int look_at_grants(session *self)
{
    int rc = session_begin(self);

    granted = false;
    return rc ? rc
              : bal_grant_each(self->tenant, count_live, &granted, &self->err);
}

/* There and back. */
static void walk_grants(scenario_fn *fn, scenario_fn *back, bool all)
{
    bool failed = true;
    bool before = fn == revoke_main;

    for (long n = 1; failed; n++) {
        run_well(look_at_grants);
        if (granted != before)
            run_well(back);
        int rc = run_once(fn, n, all, &failed);
        CHECK(rc == 0 || rc == BAL_ENOMEM);
        CHECK(rc == 0 || failed);
        run_well(look_at_grants);
        CHECK(rc || granted != before);
        if (n % 50 == 0)
            run_well(walk_fsck);
    }
}

/* ---- tests -------------------------------------------------------------- */

static void forgetting(void)
{
    run_well(make_key);
    run_well(commit_kept);
    walk_forgets(false);
    walk_forgets(true);
    run_well(walk_fsck);
}

static void verifying(void)
{
    walk(verify_it, false);
}

static void loading_a_proof(void)
{
    run_well(bundle_it);
    walk(load_it, false);
}

static void granting(void)
{
    walk_grants(grant_main, revoke_main, false);
    walk_grants(grant_main, revoke_main, true);
}

static void revoking(void)
{
    walk_grants(revoke_main, grant_main, false);
    walk_grants(revoke_main, grant_main, true);
}

static const check_test tests[] = {
    { TEST(forgetting) }, { TEST(verifying) }, { TEST(loading_a_proof) },
    { TEST(granting) },   { TEST(revoking) },
};

int main(void)
{
    return walk_main(tests, sizeof(tests) / sizeof(tests[0]));
}
