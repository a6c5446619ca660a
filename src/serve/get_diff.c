/* GET of what changed between two commits. */
#include "report/report.h"
#include "serve/handlers.h"

int bal_get_diff(bal_reply *reply, bal_request *request, bal_error *err)
{
    bal_found a, b;
    int rc = bal_found_spec(&a, request, request->args[BAL_ARG_SPEC], err);
    if (!rc)
        rc = bal_found_spec(&b, request, request->args[BAL_ARG_OTHER], err);
    if (!rc)
        rc = bal_report_diff(&reply->body, request->tenant, &a.id, &b.id,
                             request->work, err);
    if (rc)
        return rc;
    /* Answers to probes may be recorded any time. */
    bal_reply_no_cache(reply);
    reply->status = 200;
    return 0;
}
