/* Documents out of the parts that they share with the commands. */
#include "report/report.h"

#include "core/own.h"
#include "report/diff_answers.h"
#include "report/diff_weights.h"
#include "report/proof.h"

BAL_OWNABLE(bal_model)

static void diff_json(bal_json *json, const bal_diff_weights *weights,
                      const bal_diff_answers *answers, const bal_id ids[2])
{
    bool moved = bal_diff_weights_moved(weights, BAL_DIFF_THRESHOLD);

    bal_json_object(json);
    bal_json_key(json, "schema");
    bal_json_string(json, "ballast/diff/1");
    bal_json_key(json, "a");
    bal_json_id(json, &ids[0]);
    bal_json_key(json, "b");
    bal_json_id(json, &ids[1]);
    bal_diff_weights_json(json, weights);
    bal_json_key(json, "threshold");
    bal_json_f64(json, BAL_DIFF_THRESHOLD);
    bal_diff_answers_json(json, answers, moved);
    bal_diff_weights_json_groups(json, weights);
    bal_json_close(json);
}

int bal_report_diff(bal_buf *to, bal_tenant *tenant, const bal_id *a,
                    const bal_id *b, bal_work *work, bal_error *err)
{
    BAL_OWN(bal_model) before = NULL;
    BAL_OWN(bal_model) after = NULL;
    BAL_LOCAL(bal_diff_weights) weights = { .work = work };
    BAL_LOCAL(bal_diff_answers) answers = { 0 };
    const bal_id ids[] = { *a, *b };
    bal_json json;

    int rc = bal_model_from_commit(&before, tenant, a, err);
    if (!rc)
        rc = bal_model_from_commit(&after, tenant, b, err);
    if (!rc)
        rc = bal_diff_answers_fill(&answers, tenant, ids, NULL, work, err);
    if (!rc)
        rc = bal_diff_weights_fill(&weights, before, after, err);
    if (rc)
        return rc;
    bal_json_begin(&json, to, 0);
    diff_json(&json, &weights, &answers, ids);
    return bal_json_end(&json, err);
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
