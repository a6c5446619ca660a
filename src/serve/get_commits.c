/* GET of history: page by page, and one commit with what it holds. */
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "serve/handlers.h"

enum { LIMIT = 100, LIMIT_MAX = 1000 };

/* ---- pages -----------------------------------------------------------------
 */

typedef struct page {
    bal_json json;
    size_t skip; /* commits that an earlier page told */
    size_t left;
    bal_id last;
    bool more; /* than this page has */
} page;

static int put_commit(void *ctx, const bal_commit *commit)
{
    page *self = ctx;

    if (self->skip) {
        self->skip--;
        return 0;
    }
    self->more = !self->left;
    if (self->more)
        return 1;
    self->left--;
    self->last = bal_commit_info_of(commit)->id;
    bal_json_raw(&self->json, bal_commit_json(commit));
    return 0;
}

static int read_limit(size_t *out, const char *text, bal_error *err)
{
    uint64_t limit = LIMIT;

    if (text &&
        (bal_parse_u64(&limit, text, NULL) || !limit || limit > LIMIT_MAX))
        return bal_fail(err, BAL_EINVAL, "limit '%s' is none of 1 to %d", text,
                        LIMIT_MAX);
    *out = (size_t)limit;
    return 0;
}

/* Where the page begins: at a ref's head, or behind a commit. */
static int read_start(bal_id *out, bool *behind, bal_request *request,
                      bal_error *err)
{
    const char *after = bal_request_query(request, "after");
    const char *ref = bal_request_query(request, "ref");
    bal_found found;

    *behind = after != NULL;
    if (after) {
        if (!bal_id_parse(out, after, NULL))
            return 0;
        return bal_fail(err, BAL_EINVAL, "after '%s' is not a full commit id",
                        after);
    }
    int rc = bal_found_spec(&found, request, ref ? ref : "main", err);
    if (!rc)
        *out = found.id;
    return rc;
}

int bal_get_commits(bal_reply *reply, bal_request *request, bal_error *err)
{
    page self = { .skip = 0 };
    bal_id start;
    bool behind;
    int rc = read_limit(&self.left, bal_request_query(request, "limit"), err);
    if (!rc)
        rc = read_start(&start, &behind, request, err);
    if (rc)
        return rc;

    self.skip = behind;
    bal_json_begin(&self.json, &reply->body, 0);
    bal_json_object(&self.json);
    bal_json_key(&self.json, "commits");
    bal_json_array(&self.json);
    rc = bal_log(request->tenant, &start, self.skip + self.left + 1, put_commit,
                 &self, err);
    if (rc)
        return bal_not_found(request, rc, err);
    bal_json_close(&self.json);
    if (self.more) {
        bal_member_id(&self.json, "next", &self.last);
    } else {
        bal_json_key(&self.json, "next");
        bal_json_null(&self.json);
    }
    bal_json_close(&self.json);
    rc = bal_json_end(&self.json, err);
    return rc ? rc : bal_reply_tagged(reply, request, err);
}

/* ---- one -------------------------------------------------------------------
 */

static void put_tensor(bal_json *json, const bal_tensor *tensor)
{
    bal_json_key(json, tensor->name);
    bal_json_object(json);
    bal_member_text(json, "dtype", bal_dtype_name(tensor->dtype));
    bal_json_key(json, "shape");
    bal_json_array(json);
    for (uint32_t d = 0; d < tensor->rank; d++)
        bal_json_u64(json, tensor->shape[d]);
    bal_json_close(json);
    bal_json_close(json);
}

/* model NULL: it cannot be had. */
static void put_tensors(bal_json *json, const bal_model *model)
{
    bal_json_key(json, "tensors");
    if (!model) {
        bal_json_null(json);
        return;
    }
    bal_json_object(json);
    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *tensor = bal_model_at(model, i);
        if (tensor->part == BAL_PART_TENSOR &&
            (tensor->form == BAL_FORM_WHOLE ||
             tensor->form == BAL_FORM_DIFFERENCE))
            put_tensor(json, tensor);
    }
    bal_json_close(json);
}

static int put_all(bal_reply *reply, const bal_commit *commit,
                   const bal_model *model, bal_error *err)
{
    bal_json json;

    bal_json_begin(&json, &reply->body, 0);
    bal_json_object(&json);
    bal_json_members(&json, bal_commit_json(commit));
    put_tensors(&json, model);
    bal_json_close(&json);
    return bal_json_end(&json, err);
}

int bal_get_commit(bal_reply *reply, bal_request *request, bal_error *err)
{
    BAL_OWN(bal_commit) commit = NULL;
    BAL_OWN(bal_model) model = NULL;
    bal_found found;
    int rc = bal_found_spec(&found, request, request->args[BAL_ARG_SPEC], err);
    if (!rc)
        rc = bal_commit_open(&commit, request->tenant, &found.id, err);
    if (rc)
        return rc;
    rc = bal_model_from_commit(&model, request->tenant, &found.id, err);
    if (rc && rc != BAL_EBROKEN && rc != BAL_EUNSUPPORTED)
        return rc;
    if (model && bal_found_same(reply, request, &found))
        return 0;
    rc = put_all(reply, commit, model, err);
    if (rc)
        return rc;
    if (model)
        bal_reply_found(reply, &found);
    else
        bal_reply_no_cache(reply); /* it may resolve again */
    reply->status = 200;
    return 0;
}
