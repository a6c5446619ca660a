/* DELETE of a commit: the bytes, the proof, and what is kept ready of it. */
#include "core/error.h"
#include "core/key.h"
#include "report/report.h"
#include "serve/daemon.h"
#include "serve/handlers.h"

static void drop(bal_request *request, const char *tenant, const bal_id *commit)
{
    BAL_OWN(bal_spooled)
    kept = bal_spool_find(bal_daemon_spool(request->daemon), tenant, commit);

    if (kept)
        bal_spool_drop(bal_daemon_spool(request->daemon), kept);
}

static int drop_view(void *ctx, const char *tenant, const bal_id *commit)
{
    drop(ctx, tenant, commit);
    return 0;
}

static int report(bal_reply *reply, bal_request *request,
                  const bal_proof *proof, const bal_key *key, bal_error *err)
{
    bool verified = false;
    int rc = bal_report_proof(&reply->body, proof, request->store, key,
                              &verified, err);
    if (rc)
        return rc;
    reply->status = verified ? 200 : 500;
    if (verified)
        bal_reply_header(reply, "cache-control", "no-store");
    return 0;
}

/* What is wrong with the key is the operator's to know. */
static int find_key(bal_key **out, bal_reply *reply, bal_error *err)
{
    bal_error why = { 0 };
    int rc = bal_key_environment(out, &why);

    if (!rc)
        return 0;
    bal_warn("serve", "signing-key=\"%s\"", why.text);
    reply->status = 500;
    return bal_fail(err, BAL_EIO, "%s",
                    "the server has no key that a proof can be signed with");
}

int bal_delete_commit(bal_reply *reply, bal_request *request, bal_error *err)
{
    const char *text = request->args[BAL_ARG_SPEC];
    const char *reason = bal_request_query(request, "reason");
    const char *tenant = bal_tenant_name(request->tenant);
    BAL_OWN(bal_key) key = NULL;
    BAL_OWN(bal_proof) proof = NULL;
    bal_id commit;

    if (bal_id_parse(&commit, text, NULL))
        return bal_fail(err, BAL_EINVAL,
                        "'%s' is not the full id of a commit, 64 lower-case "
                        "hex digits",
                        text);
    if (!reason || !reason[0])
        return bal_fail(err, BAL_EINVAL, "%s", "a deletion needs a reason");
    int rc = find_key(&key, reply, err);
    if (rc)
        return rc;
    const bal_forget_options options = {
        .commit = &commit,
        .reason = reason,
        .key = key,
    };
    rc = bal_forget(&proof, request->tenant, &options, err);
    drop(request, tenant, &commit);
    if (rc)
        return bal_not_found(request, rc, err);
    rc = bal_proof_views(proof, drop_view, request, err);
    return rc ? rc : report(reply, request, proof, key, err);
}
