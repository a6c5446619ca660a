/* Documents out of the parts that they share with the commands. */
#include "report/report.h"

#include "core/own.h"
#include "report/diff.h"
#include "report/proof.h"

BAL_OWNABLE(bal_model)

int bal_report_diff(bal_buf *to, bal_tenant *tenant, const bal_id *a,
                    const bal_id *b, bal_work *work, bal_error *err)
{
    BAL_OWN(bal_model) before = NULL;
    BAL_OWN(bal_model) after = NULL;
    BAL_LOCAL(bal_diff_whole) whole = { 0 };
    const bal_diff_options options = {
        .commits = { a, b },
        .tenant = tenant,
        .work = work,
    };

    int rc = bal_model_from_commit(&before, tenant, a, err);
    if (!rc)
        rc = bal_model_from_commit(&after, tenant, b, err);
    if (!rc)
        rc = bal_diff_whole_fill(&whole, before, after, &options, err);
    return rc ? rc : bal_diff_whole_write(to, &whole, &options, err);
}

int bal_report_proof(bal_buf *to, const bal_proof *proof, bal_store *store,
                     const bal_key *key, bool *verified, bal_error *err)
{
    BAL_LOCAL(bal_findings) found = { 0 };
    bal_json json;

    int rc = bal_findings_fill(&found, proof, store, key, err);
    if (rc)
        return rc;
    bal_json_begin(&json, to, 0);
    bal_json_object(&json);
    bal_json_key(&json, "schema");
    bal_json_string(&json, "ballast/forget/1");
    rc = bal_proof_json(&json, proof, &found, false, err);
    bal_json_close(&json);
    int ended = bal_json_end(&json, rc ? NULL : err);
    *verified = !found.verdict.problems;
    return rc ? rc : ended;
}
