/* POST of an adapter: one safetensors file, and what the query says of it. */
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "serve/handlers.h"

static const char weights[] = "adapter_model.safetensors";

/* Messages name files below the folder, not where the server keeps it. */
static void hide(bal_error *err, const char *folder)
{
    size_t len = strlen(folder);

    if (!err || !len)
        return;
    for (char *at = strstr(err->text, folder); at; at = strstr(at, folder)) {
        size_t gone = len + (at[len] == '/');
        memmove(at, at + gone, strlen(at + gone) + 1);
    }
}

static int put_config(const char *folder, const char *text, bal_error *err)
{
    BAL_OWN(json_t) config = NULL;
    BAL_LOCAL(bal_buf) path = { 0 };
    bal_error why = { 0 };
    int rc = bal_json_parse(&config, text, strlen(text), "config", &why);

    if (rc)
        return bal_fail(err, BAL_EINVAL, "%s", why.text);
    if (!json_is_object(config))
        return bal_fail(err, BAL_EINVAL, "%s", "config is not a JSON object");
    rc = bal_buf_format(&path, err, "%s/adapter_config.json", folder);
    if (rc)
        return rc;
    return bal_file_replace(path.data, text, strlen(text), err);
}

/* An adapter's folder where there is a config, else the file as what it is. */
static int open_upload(bal_model **out, bal_request *request, bal_error *err)
{
    const char *config = bal_request_query(request, "config");
    const char *folder = request->upload;
    BAL_LOCAL(bal_buf) path = { 0 };

    if (!folder)
        return bal_fail(err, BAL_EINVAL, "%s", "there is no body");
    int rc = config ? put_config(folder, config, err) : 0;
    if (!rc)
        rc = bal_buf_text(&path, folder, err);
    if (!rc && !config)
        rc = bal_buf_format(&path, err, "/%s", weights);
    return rc ? rc : bal_model_from_path(out, path.data, err);
}

/* What is wrong with a body is the client's, whatever its code. */
static int bad_body(bal_reply *reply, bal_request *request, int rc,
                    bal_error *err)
{
    if (rc == BAL_ECORRUPT || rc == BAL_EUNSUPPORTED || rc == BAL_ENOTFOUND)
        reply->status = 400;
    if (request->upload)
        hide(err, request->upload);
    return rc;
}

int bal_post_commit(bal_reply *reply, bal_request *request, bal_error *err)
{
    const char *ref = bal_request_query(request, "ref");
    BAL_OWN(bal_model) model = NULL;
    BAL_OWN(bal_commit) commit = NULL;
    bal_expected expected = { .head = NULL };
    bal_draft draft = {
        .ref = ref ? ref : "main",
        .message = bal_request_query(request, "message"),
        .author = "http",
        .base_model = bal_request_query(request, "base_model"),
        .metadata = bal_request_query(request, "metadata"),
    };

    if (!draft.message || !draft.message[0])
        return bal_fail(err, BAL_EINVAL, "%s", "a commit needs a message");
    int rc = bal_expected_read(&expected, reply, request, draft.ref, err);
    if (rc)
        return rc;
    rc = open_upload(&model, request, err);
    if (rc)
        return bad_body(reply, request, rc, err);
    draft.expect = expected.head;
    rc = bal_commit_model(&commit, request->tenant, model, &draft, NULL, err);
    if (rc)
        hide(err, request->upload);
    if (rc)
        return bal_not_made(reply, &expected, rc);
    return bal_reply_made(reply, request, commit, draft.ref, err);
}
