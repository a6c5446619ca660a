/* POST of a merge: a view is recorded, nothing is computed. */
#include "core/error.h"
#include "serve/handlers.h"
#include "serve/merge_body.h"

/* A method that there is not is a bad request, not a path that leads nowhere.
 */
static int new_recipe(bal_recipe **out, const char *method, bal_error *err)
{
    int rc = bal_recipe_new(out, method, err);

    if (rc != BAL_ENOTFOUND)
        return rc;
    return bal_fail(err, BAL_EINVAL, "no method '%s'", method);
}

/* An input that is not what its config says is the request's fault: it was so
 * when it was recorded. */
static int bad_input(bal_reply *reply, int rc)
{
    if (rc == BAL_ECORRUPT)
        reply->status = 400;
    return rc;
}

/* What may not be read and what is not there are the same. */
static int told_alike(bal_request *request, int rc, bal_error *err)
{
    if (rc == BAL_EDENIED && err)
        err->code = BAL_ENOTFOUND;
    return bal_not_found(request, rc == BAL_EDENIED ? BAL_ENOTFOUND : rc, err);
}

int bal_post_merge(bal_reply *reply, bal_request *request, bal_error *err)
{
    BAL_LOCAL(bal_merge_body) body = { 0 };
    BAL_OWN(bal_recipe) recipe = NULL;
    BAL_OWN(bal_commit) commit = NULL;
    bal_expected expected = { .head = NULL };
    int rc = bal_merge_body_read(&body, request->body, err);
    if (!rc)
        rc = bal_expected_read(&expected, reply, request, body.ref, err);
    if (!rc)
        rc = new_recipe(&recipe, body.method, err);
    if (rc)
        return rc;
    rc = bal_merge_body_fill(recipe, &body, request->tenant, err);
    if (rc)
        return told_alike(request, bad_input(reply, rc), err);
    const bal_draft draft = {
        .ref = body.ref,
        .message = body.message,
        .author = "http",
        .expect = expected.head,
    };
    rc = bal_commit_view(&commit, request->tenant, recipe, &draft, NULL, err);
    if (rc == BAL_ECONFLICT)
        return bal_not_made(reply, &expected, rc);
    if (rc)
        return told_alike(request, bad_input(reply, rc), err);
    return bal_reply_made(reply, request, commit, body.ref, err);
}
