/* Runs as the objects of a bucket: opening it, and the way back. How they come
 * to be is in s3_put.c, how they go in s3_remove.c. */
#include "blocks/s3.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/str.h"

enum {
    PARALLEL = 24,
    ROOM = 256 << 20,
    BUF_MOST = 1 << 30,
    ERROR_MOST = 64 << 10
};

static void s3_free(bal_backend *base)
{
    s3_backend *self = bal_s3_of(base);

    bal_s3_client_done(&self->client);
    pthread_mutex_destroy(&self->lock);
    bal_str_free(self->store);
    bal_str_free(self->room.folder);
    free(self);
}

static int s3_open(bal_backend **out, const char *rest, const char *root,
                   bal_error *err)
{
    s3_backend *self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "a backend");
    self->base.ops = &bal_backend_s3;
    self->base.parallel = PARALLEL;
    self->base.at_once = true;
    self->room.most = ROOM;
    pthread_mutex_init(&self->lock, NULL);
    BAL_OWN(bal_backend) base = &self->base;

    int rc = bal_s3_client_init(&self->client, rest, err);
    if (rc)
        return rc;
    self->room.folder = bal_str_copy(root);
    if (!self->room.folder)
        return bal_fail_memory(err, "a backend");
    *out = BAL_TAKE(base);
    return 0;
}

int bal_s3_wrong(const bal_s3_reply *reply, const char *doing, const char *name,
                 bal_error *err)
{
    BAL_LOCAL(bal_buf) what = { 0 };
    int rc = bal_buf_format(&what, err, "%s '%s'", doing, name);

    return rc ? rc : bal_s3_refused(reply, what.data, err);
}

/* ---- ranges ------------------------------------------------------------- */

/* "bytes 0-9/100", "bytes *" "/100" where nothing of it was asked for. */
typedef struct span {
    uint64_t first, end; /* end: one behind */
    uint64_t total;
    bool none;
} span;

/* A number at *text, which is moved behind it and the character that follows.
 */
static bool read_number(uint64_t *out, const char **text, char behind)
{
    char digits[21];
    size_t len = strspn(*text, "0123456789");

    if (!len || len >= sizeof(digits) || (*text)[len] != behind)
        return false;
    memcpy(digits, *text, len);
    digits[len] = '\0';
    *text += len + (behind ? 1 : 0);
    return !bal_parse_u64(out, digits, NULL);
}

static bool read_range(span *out, const bal_s3_reply *reply)
{
    static const char unit[] = "bytes ";
    BAL_LOCAL(bal_buf) value = { 0 };

    *out = (span){ .none = true };
    if (!bal_s3_reply_header(reply, "content-range", &value) ||
        strncmp(bal_buf_string(&value), unit, sizeof(unit) - 1) != 0)
        return false;
    const char *text = value.data + sizeof(unit) - 1;
    if (!strncmp(text, "*/", 2)) {
        text += 2;
        return read_number(&out->total, &text, '\0');
    }
    uint64_t last;
    out->none = false;
    if (!read_number(&out->first, &text, '-') ||
        !read_number(&last, &text, '/') ||
        !read_number(&out->total, &text, '\0'))
        return false;
    return out->first <= last && last < out->total &&
           bal_add(&out->end, last, 1);
}

static int strange(const s3_backend *self, const char *name, bal_error *err)
{
    return bal_fail(err, BAL_EIO, "'%s' in '%s': the answer fits no such range",
                    name, self->client.place.text);
}

static int too_few(const char *name, uint64_t size, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "'%s' has only %" PRIu64 " bytes", name,
                    size);
}

/* ---- size --------------------------------------------------------------- */

typedef struct looking {
    const char *name;
    bool there;
} looking;

static int note_version(void *ctx, const bal_s3_entry *entry, bal_error *err)
{
    looking *self = ctx;

    (void)err;
    if (!entry->marker && !strcmp(entry->name, self->name))
        self->there = true;
    return 0;
}

/* Behind a marker of its deletion there may be what was deleted: then it is not
 * sure that the run is gone. */
static int look_behind(s3_backend *self, const char *name, bal_error *err)
{
    looking all = { .name = name };
    int rc = bal_s3_each(self, name, true, note_version, &all, err);

    if (rc)
        return rc;
    if (all.there)
        return bal_fail(err, BAL_EIO,
                        "'%s' in '%s' was deleted, and the bucket keeps an "
                        "older version of it",
                        name, self->client.place.text);
    return bal_fail(err, BAL_ENOTFOUND, "no '%s' in '%s'", name,
                    self->client.place.text);
}

static int size_of(s3_backend *self, const bal_s3_reply *reply,
                   const char *name, uint64_t *size, bal_error *err)
{
    BAL_LOCAL(bal_buf) value = { 0 };
    span range;

    if (reply->longer)
        return strange(self, name, err);
    if (reply->status == 404 &&
        bal_s3_reply_header(reply, "x-amz-delete-marker", &value))
        return look_behind(self, name, err);
    if (reply->status == 200) {
        *size = reply->body.len;
        return 0;
    }
    if (reply->status != 206 && reply->status != 416)
        return bal_s3_wrong(reply, "looking at", name, err);
    bool told = read_range(&range, reply);
    if (reply->status == 206 && (!told || range.none || range.first))
        return strange(self, name, err);
    *size = told ? range.total : 0;
    return 0;
}

/* By a GET of one byte: the answer to a HEAD cannot say which of bucket and key
 * is not there. An empty run has not that byte. */
int bal_s3_size(bal_backend *base, const char *name, uint64_t *size,
                bal_error *err)
{
    s3_backend *self = bal_s3_of(base);
    bal_s3_reply reply = { 0 };
    const bal_s3_call call = {
        .method = "GET",
        .key = name,
        .headers = { { "range", "bytes=0-0" } },
    };
    int rc = bal_s3_ready(self, false, err);
    if (!rc)
        rc = bal_s3_send(&reply, &self->client, &call, err);
    if (rc)
        return rc;
    rc = size_of(self, &reply, name, size, err);
    bal_s3_reply_done(&reply);
    return rc;
}

/* ---- get ---------------------------------------------------------------- */

typedef struct getting {
    s3_backend *backend;
    const char *name;
    uint64_t offset, len; /* len 0: to the end */
    bal_buf *to;
} getting;

/* The end of a run that has been asked for beyond it: empty, or an error. */
static int beyond(const getting *self, bal_error *err)
{
    uint64_t size = 0;
    int rc = bal_s3_size(&self->backend->base, self->name, &size, err);

    if (rc || (size == self->offset && !self->len))
        return rc;
    return too_few(self->name, size, err);
}

static int take_range(const getting *self, const bal_s3_reply *reply,
                      bal_error *err)
{
    span range;
    size_t len = reply->body.len;

    if (!read_range(&range, reply) || range.none ||
        range.first != self->offset || range.end - range.first != len)
        return strange(self->backend, self->name, err);
    if ((self->len && len > self->len) ||
        (range.end < range.total && len != self->len))
        return strange(self->backend, self->name, err);
    if (self->len && len < self->len)
        return too_few(self->name, range.total, err);
    return bal_buf_append(self->to, reply->body.data, len, err);
}

/* Without a length nobody could tell that it is whole. */
static int take_all(const getting *self, const bal_s3_reply *reply,
                    bal_error *err)
{
    BAL_LOCAL(bal_buf) value = { 0 };
    uint64_t len = 0;

    if (!bal_s3_reply_header(reply, "content-length", &value) ||
        bal_parse_u64(&len, bal_buf_string(&value), NULL) ||
        len != reply->body.len)
        return bal_fail(err, BAL_EIO,
                        "'%s' in '%s': the answer is not as long as it says",
                        self->name, self->backend->client.place.text);
    return bal_buf_append(self->to, reply->body.data, reply->body.len, err);
}

static int take_answer(const getting *self, const bal_s3_reply *reply,
                       bool whole, bal_error *err)
{
    if (reply->longer && whole && reply->status == 200)
        return bal_fail(err, BAL_EINVAL, "'%s' is longer than it may be",
                        self->name);
    if (reply->longer)
        return strange(self->backend, self->name, err);
    if (reply->status == 200 && whole)
        return take_all(self, reply, err);
    if (reply->status == 206 && !whole)
        return take_range(self, reply, err);
    if (reply->status == 416 && !whole)
        return beyond(self, err);
    if (reply->status / 100 == 2)
        return strange(self->backend, self->name, err);
    return bal_s3_wrong(reply, "reading", self->name, err);
}

/* Room for what is asked for, and for an error's text. */
static size_t most_of(const getting *self)
{
    size_t ceiling = self->to->ceiling ? self->to->ceiling : BUF_MOST;
    uint64_t most = ceiling - bal_min(self->to->len, ceiling);

    if (self->len)
        most = bal_min(most, self->len);
    return (size_t)bal_max(most, ERROR_MOST);
}

static int s3_get(bal_backend *base, const char *name, uint64_t offset,
                  uint64_t len, bal_buf *to, bal_error *err)
{
    const getting all = { bal_s3_of(base), name, offset, len, to };
    bool whole = !offset && !len;
    bal_s3_reply reply = { 0 };
    char range[64];
    uint64_t end;
    int rc = bal_s3_ready(all.backend, false, err);
    if (rc)
        return rc;
    if (!bal_add(&end, offset, len))
        return beyond(&all, err);

    bal_s3_call call = { .method = "GET",
                         .key = name,
                         .answer_max = most_of(&all) };
    snprintf(range, sizeof(range), "bytes=%" PRIu64 "-", offset);
    if (len)
        snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, offset,
                 end - 1);
    if (!whole)
        call.headers[0] = (bal_sigv4_pair){ "range", range };
    rc = bal_s3_send(&reply, &all.backend->client, &call, err);
    if (rc)
        return rc;
    rc = take_answer(&all, &reply, whole, err);
    bal_s3_reply_done(&reply);
    return rc;
}

const bal_backend_ops bal_backend_s3 = {
    .scheme = "s3",
    .open = s3_open,
    .claim = bal_s3_claim,
    .get = s3_get,
    .stage = bal_s3_stage,
    .settle = bal_s3_settle,
    .discard = bal_s3_discard,
    .size = bal_s3_size,
    .remove = bal_s3_remove,
    .list = bal_s3_list,
    .sweep = bal_s3_sweep,
    .free = s3_free,
};
