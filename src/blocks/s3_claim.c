/* Whose the prefix is, and what server and bucket can do: each asked once, by
 * whoever needs to know first. */
#include <string.h>

#include "blocks/s3.h"
#include "core/error.h"
#include "core/json.h"
#include "core/str.h"
#include "core/xml.h"

#define SCHEMA "ballast/backend/1"

/* Its own name begins with a dot, which no run's does. */
static const char mark[] = ".ballast";

static int write_mark(bal_buf *to, const char *store, bal_error *err)
{
    bal_json json;

    bal_json_begin(&json, to, 0);
    bal_json_object(&json);
    bal_json_key(&json, "schema");
    bal_json_string(&json, SCHEMA);
    bal_json_key(&json, "store");
    bal_json_string(&json, store);
    bal_json_close(&json);
    return bal_json_end(&json, err);
}

static int not_ours(const s3_backend *self, bal_error *err)
{
    return bal_hint(err,
                    bal_fail(err, BAL_ECONFLICT, "'%s' is another store's",
                             self->client.place.text),
                    "another bucket, or another prefix in it");
}

/* The store's id in an answer, compared with ours. */
static int compare(const s3_backend *self, const bal_s3_reply *reply,
                   bal_error *err)
{
    BAL_OWN(json_t) json = NULL;
    const char *where = self->client.place.text;
    int rc =
        bal_json_parse(&json, reply->body.data, reply->body.len, mark, err);
    if (rc)
        return bal_within(err, rc, "'%s'", where);

    const char *schema = json_string_value(json_object_get(json, "schema"));
    const char *store = json_string_value(json_object_get(json, "store"));
    if (!schema || strcmp(schema, SCHEMA) != 0 || !store)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "'%s' is not of '" SCHEMA "', which this program reads",
                        where);
    return strcmp(store, self->store) ? not_ours(self, err) : 0;
}

/* *there: somebody has marked it, and it is us. */
static int read_mark(s3_backend *self, bool *there, bal_error *err)
{
    bal_s3_reply reply = { 0 };
    const bal_s3_call call = { .method = "GET", .key = mark };
    int rc = bal_s3_send(&reply, &self->client, &call, err);
    if (rc)
        return rc;

    char code[BAL_S3_CODE];
    bal_s3_reply_code(&reply, code);
    *there = reply.status == 200;
    if (*there)
        rc = compare(self, &reply, err);
    else if (reply.status != 404 || strcmp(code, "NoSuchKey") != 0)
        rc = bal_s3_wrong(&reply, "reading", mark, err);
    bal_s3_reply_done(&reply);
    return rc;
}

/* Put it, unless it is there where the server can do that; *status tells. */
static int put_mark(s3_backend *self, bool keeps, int *status, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_s3_reply reply = { 0 };
    int rc = write_mark(&text, self->store, err);
    if (rc)
        return rc;
    bal_s3_call call = { .method = "PUT",
                         .key = mark,
                         .body = { text.data, text.len } };
    if (keeps)
        call.headers[0] = (bal_sigv4_pair){ "if-none-match", "*" };
    rc = bal_s3_send(&reply, &self->client, &call, err);
    if (rc)
        return rc;
    *status = reply.status;
    if (reply.status != 200 && reply.status != 412 && reply.status != 409 &&
        !(keeps && reply.status == 501))
        rc = bal_s3_wrong(&reply, "writing", mark, err);
    bal_s3_reply_done(&reply);
    return rc;
}

/* Whoever else puts it at the same time, one of us reads it back. */
static int make_mark(s3_backend *self, bal_error *err)
{
    bool there = false;
    int status = 0;
    int rc = put_mark(self, true, &status, err);

    if (!rc && status == 501)
        rc = put_mark(self, false, &status, err);
    if (!rc)
        rc = read_mark(self, &there, err);
    if (!rc && !there)
        rc = bal_fail(err, BAL_EIO, "'%s': what was just written is not there",
                      self->client.place.text);
    return rc;
}

static int ready_locked(s3_backend *self, bool write, bal_error *err)
{
    bool there = false;

    if (self->ours || !self->store)
        return 0;
    int rc = read_mark(self, &there, err);
    if (!rc && !there && write)
        rc = make_mark(self, err);
    self->ours = !rc && (there || write);
    return rc;
}

int bal_s3_ready(s3_backend *self, bool write, bal_error *err)
{
    pthread_mutex_lock(&self->lock);
    int rc = ready_locked(self, write, err);
    pthread_mutex_unlock(&self->lock);
    return rc;
}

int bal_s3_claim(bal_backend *base, const char *store, unsigned flags,
                 bal_error *err)
{
    s3_backend *self = bal_s3_of(base);
    char *copy = bal_str_copy(store);
    if (!copy)
        return bal_fail_memory(err, "a backend");

    pthread_mutex_lock(&self->lock);
    bal_str_free(self->store);
    self->store = copy;
    self->ours = false;
    pthread_mutex_unlock(&self->lock);
    return flags & BAL_CLAIM_NOW ? bal_s3_ready(self, true, err) : 0;
}

/* ---- what it can do ----------------------------------------------------- */

/* The mark, which is there, put again as it is: a server that ignores what it
 * is asked replaces it by the same. Without a mark every put will tell. */
static int conditional_locked(s3_backend *self, bal_error *err)
{
    int status = 412;
    int rc = 0;

    if (self->conditional != BAL_S3_UNKNOWN)
        return 0;
    if (self->ours)
        rc = put_mark(self, true, &status, err);
    if (!rc)
        self->conditional =
            status == 412 || status == 409 ? BAL_S3_CAN : BAL_S3_CANNOT;
    return rc;
}

int bal_s3_conditional(s3_backend *self, bool *can, bal_error *err)
{
    pthread_mutex_lock(&self->lock);
    int rc = conditional_locked(self, err);
    *can = self->conditional == BAL_S3_CAN;
    pthread_mutex_unlock(&self->lock);
    return rc;
}

void bal_s3_not_conditional(s3_backend *self)
{
    pthread_mutex_lock(&self->lock);
    self->conditional = BAL_S3_CANNOT;
    pthread_mutex_unlock(&self->lock);
}

static int take_status(void *ctx, bal_xml_end end, const char *path,
                       const char *text, bal_error *err)
{
    (void)err;
    if (end == BAL_XML_CLOSES &&
        !strcmp(path, "VersioningConfiguration/Status") && text[0])
        *(bool *)ctx = true;
    return 0;
}

/* A server that does not know the question keeps none. "Suspended" may have
 * kept some before. */
static int read_versioning(s3_backend *self, bool *is, bal_error *err)
{
    bal_s3_reply reply = { 0 };
    const bal_s3_call call = { .method = "GET",
                               .query = { { "versioning", "" } } };
    int rc = bal_s3_send(&reply, &self->client, &call, err);
    if (rc)
        return rc;

    *is = false;
    if (reply.status == 200)
        rc = bal_xml_walk(reply.body.data, reply.body.len, "versioning",
                          take_status, is, err);
    else if (reply.status != 501)
        rc = bal_s3_refused(&reply, "asking whether versions are kept", err);
    bal_s3_reply_done(&reply);
    return rc;
}

int bal_s3_versioned(s3_backend *self, bool *is, bal_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&self->lock);
    if (self->versioned == BAL_S3_UNKNOWN)
        rc = read_versioning(self, is, err);
    if (!rc && self->versioned == BAL_S3_UNKNOWN)
        self->versioned = *is ? BAL_S3_CAN : BAL_S3_CANNOT;
    *is = self->versioned == BAL_S3_CAN;
    pthread_mutex_unlock(&self->lock);
    return rc;
}
