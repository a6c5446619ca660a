/* Runs that are too long for one request: begun, put part by part, completed;
 * seen under their name from then on. What a killed writer began is swept when
 * it is a day old: nobody takes that long. */
#include <inttypes.h>
#include <string.h>

#include "blocks/s3.h"
#include "core/arith.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/str.h"
#include "core/xml.h"

enum { PART = 32 << 20, PART_NUMBER = 12 };

static const int64_t day = INT64_C(86400) * 1000000000;

/* A run on its way. */
typedef struct upload {
    s3_backend *backend;
    const char *name;
    bal_buf id;
    bal_buf tags; /* <Part>…</Part> of those that are there */
    bool done;    /* its answer says that it is complete */
} upload;

static void upload_done(upload *self)
{
    bal_buf_done(&self->id);
    bal_buf_done(&self->tags);
}

/* ---- writing ------------------------------------------------------------ */

static int take_id(void *ctx, bal_xml_end end, const char *path,
                   const char *text, bal_error *err)
{
    upload *self = ctx;

    if (end != BAL_XML_CLOSES ||
        strcmp(path, "InitiateMultipartUploadResult/UploadId") != 0)
        return 0;
    bal_buf_clear(&self->id);
    return bal_buf_text(&self->id, text, err);
}

static int begin(upload *self, bal_error *err)
{
    bal_s3_reply reply = { 0 };
    const bal_s3_call call = {
        .method = "POST",
        .key = self->name,
        .query = { { "uploads", "" } },
        .body = { "", 0 },
    };
    int rc = bal_s3_send(&reply, &self->backend->client, &call, err);
    if (rc)
        return rc;
    rc = reply.status == 200
             ? bal_xml_walk(reply.body.data, reply.body.len, "an upload",
                            take_id, self, err)
             : bal_s3_wrong(&reply, "beginning", self->name, err);
    bal_s3_reply_done(&reply);
    if (!rc && !self->id.len)
        rc =
            bal_fail(err, BAL_EIO, "'%s': an upload without an id", self->name);
    return rc;
}

/* A part's tag comes back as it was given; quotes are not special in XML's
 * text, and what is would have to be written otherwise. */
static int note_part(upload *self, const bal_s3_reply *reply,
                     const char *number, bal_error *err)
{
    BAL_LOCAL(bal_buf) tag = { 0 };

    if (!bal_s3_reply_header(reply, "etag", &tag) || !tag.len ||
        strpbrk(tag.data, "<>&"))
        return bal_fail(err, BAL_EIO, "'%s': a part without a tag", self->name);
    return bal_buf_format(&self->tags, err,
                          "<Part><PartNumber>%s</PartNumber><ETag>%s</ETag>"
                          "</Part>",
                          number, tag.data);
}

static int put_part(upload *self, size_t number, bal_bytes bytes,
                    bal_error *err)
{
    char text[PART_NUMBER];
    bal_s3_reply reply = { 0 };

    snprintf(text, sizeof(text), "%u", (unsigned)number);
    const bal_s3_call call = {
        .method = "PUT",
        .key = self->name,
        .query = { { "partNumber", text },
                   { "uploadId", bal_buf_string(&self->id) } },
        .body = bytes,
    };
    int rc = bal_s3_send(&reply, &self->backend->client, &call, err);
    if (rc)
        return rc;
    rc = reply.status == 200 ? note_part(self, &reply, text, err)
                             : bal_s3_wrong(&reply, "writing", self->name, err);
    bal_s3_reply_done(&reply);
    return rc;
}

static int take_complete(void *ctx, bal_xml_end end, const char *path,
                         const char *text, bal_error *err)
{
    upload *self = ctx;

    (void)text;
    (void)err;
    if (end == BAL_XML_CLOSES && !strcmp(path, "CompleteMultipartUploadResult"))
        self->done = true;
    return 0;
}

/* A status of 200 may have an error behind it: it was said before the work was
 * done. Where the upload is not known any more, the answer to an earlier try
 * may have been lost: then the run is there, and as long as it should be. */
static int is_complete(upload *self, const bal_s3_reply *reply, uint64_t size,
                       bal_error *err)
{
    char code[BAL_S3_CODE];
    uint64_t there = 0;

    if (reply->status == 200) {
        int rc = bal_xml_walk(reply->body.data, reply->body.len, "an upload",
                              take_complete, self, err);
        if (rc || self->done)
            return rc;
    }
    bal_s3_reply_code(reply, code);
    if (!strcmp(code, "NoSuchUpload") &&
        !bal_s3_size(&self->backend->base, self->name, &there, NULL) &&
        there == size)
        return 0;
    return bal_s3_wrong(reply, "completing", self->name, err);
}

static int complete(upload *self, uint64_t size, bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    bal_s3_reply reply = { 0 };
    int rc = bal_buf_format(&body, err,
                            "<CompleteMultipartUpload>%s"
                            "</CompleteMultipartUpload>",
                            bal_buf_string(&self->tags));
    if (rc)
        return rc;
    const bal_s3_call call = {
        .method = "POST",
        .key = self->name,
        .query = { { "uploadId", bal_buf_string(&self->id) } },
        .body = { body.data, body.len },
    };
    rc = bal_s3_send(&reply, &self->backend->client, &call, err);
    if (rc)
        return rc;
    rc = is_complete(self, &reply, size, err);
    bal_s3_reply_done(&reply);
    return rc;
}

static int abort_upload(upload *self, bal_error *err)
{
    bal_s3_reply reply = { 0 };
    const bal_s3_call call = {
        .method = "DELETE",
        .key = self->name,
        .query = { { "uploadId", bal_buf_string(&self->id) } },
    };
    int rc = bal_s3_send(&reply, &self->backend->client, &call, err);
    if (rc)
        return rc;
    if (reply.status / 100 != 2 && reply.status != 404)
        rc = bal_s3_wrong(&reply, "giving up", self->name, err);
    bal_s3_reply_done(&reply);
    return rc;
}

int bal_s3_put_parts(s3_backend *self, const char *name, bal_bytes bytes,
                     bal_error *err)
{
    BAL_LOCAL(upload) all = { .backend = self, .name = name };
    int rc = begin(&all, err);
    if (rc)
        return rc;

    for (size_t at = 0, number = 1; at < bytes.len && !rc; number++) {
        size_t len = (size_t)bal_min(PART, bytes.len - at);
        const bal_bytes part = { (const char *)bytes.data + at, len };
        rc = put_part(&all, number, part, err);
        at += len;
    }
    if (!rc)
        rc = complete(&all, bytes.len, err);
    if (rc)
        (void)!abort_upload(&all, NULL);
    return rc;
}

/* ---- sweeping ----------------------------------------------------------- */

/* An upload of a list; several of them behind each other in a buffer. */
typedef struct sweeping {
    s3_backend *backend;
    int64_t before; /* uploads that are older go */
    bal_buf key, id;
    int64_t begun;
    bal_buf old; /* "name\0id\0" of each */
    uint64_t bytes;
} sweeping;

static void sweeping_done(sweeping *self)
{
    bal_buf_done(&self->key);
    bal_buf_done(&self->id);
    bal_buf_done(&self->old);
}

static int note_old(sweeping *self, bal_error *err)
{
    const char *prefix = self->backend->client.place.prefix;
    const char *key = bal_buf_string(&self->key);
    size_t len = strlen(prefix);

    if (strncmp(key, prefix, len) != 0 || !key[len] || !self->id.len ||
        self->begun >= self->before)
        return 0;
    int rc = bal_buf_append(&self->old, key + len, strlen(key + len) + 1, err);
    return rc ? rc
              : bal_buf_append(&self->old, self->id.data, self->id.len + 1,
                               err);
}

static int take_upload(void *ctx, bal_xml_end end, const char *path,
                       const char *text, bal_error *err)
{
    sweeping *self = ctx;
    bal_buf *to = NULL;

    if (!strcmp(path, "ListMultipartUploadsResult/Upload")) {
        if (end == BAL_XML_CLOSES)
            return note_old(self, err);
        bal_buf_clear(&self->key);
        bal_buf_clear(&self->id);
        self->begun = self->before;
        return 0;
    }
    if (end == BAL_XML_OPENS)
        return 0;
    if (!strcmp(path, "ListMultipartUploadsResult/Upload/Key"))
        to = &self->key;
    if (!strcmp(path, "ListMultipartUploadsResult/Upload/UploadId"))
        to = &self->id;
    /* One whose time is not understood is not old. */
    if (!strcmp(path, "ListMultipartUploadsResult/Upload/Initiated") &&
        !bal_clock_read(&self->begun, text))
        self->begun = self->before;
    return to ? bal_buf_text(to, text, err) : 0;
}

static int take_part(void *ctx, bal_xml_end end, const char *path,
                     const char *text, bal_error *err)
{
    sweeping *self = ctx;
    uint64_t size = 0;

    if (end != BAL_XML_CLOSES || strcmp(path, "ListPartsResult/Part/Size") != 0)
        return 0;
    int rc = bal_parse_u64(&size, text, err);
    self->bytes += rc ? 0 : size;
    return rc;
}

/* What its parts take; where that cannot be told, nothing. */
static void add_bytes(sweeping *self, const upload *old)
{
    bal_s3_reply reply = { 0 };
    const bal_s3_call call = {
        .method = "GET",
        .key = old->name,
        .query = { { "uploadId", bal_buf_string(&old->id) } },
    };

    if (bal_s3_send(&reply, &self->backend->client, &call, NULL))
        return;
    if (reply.status == 200)
        (void)!bal_xml_walk(reply.body.data, reply.body.len, "parts", take_part,
                            self, NULL);
    bal_s3_reply_done(&reply);
}

/* A server that does not know the question has none. */
static int list_old(sweeping *self, bal_error *err)
{
    bal_s3_reply reply = { 0 };
    const bal_s3_call call = {
        .method = "GET",
        .query = { { "uploads", "" },
                   { "prefix", self->backend->client.place.prefix } },
    };
    int rc = bal_s3_send(&reply, &self->backend->client, &call, err);
    if (rc)
        return rc;
    if (reply.status == 200)
        rc = bal_xml_walk(reply.body.data, reply.body.len, "uploads",
                          take_upload, self, err);
    else if (reply.status != 501)
        rc = bal_s3_refused(&reply, "listing uploads", err);
    bal_s3_reply_done(&reply);
    return rc;
}

/* The first page alone: what is left of more than a thousand goes next time. */
int bal_s3_sweep(bal_backend *base, uint64_t *bytes, unsigned flags,
                 bal_error *err)
{
    BAL_LOCAL(sweeping)
    all = { .backend = bal_s3_of(base), .before = bal_clock_now() - day };
    int rc = bal_s3_ready(all.backend, false, err);

    *bytes = 0;
    if (!rc)
        rc = list_old(&all, err);
    for (size_t at = 0; at < all.old.len && !rc;) {
        BAL_LOCAL(upload) old = { all.backend, all.old.data + at };
        at += strlen(old.name) + 1;
        rc = bal_buf_text(&old.id, all.old.data + at, err);
        at += strlen(all.old.data + at) + 1;
        if (rc)
            return rc;
        add_bytes(&all, &old);
        if (!(flags & BAL_SWEEP_DRY))
            rc = abort_upload(&old, err);
    }
    *bytes = all.bytes;
    return rc;
}
