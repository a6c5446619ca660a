/* How runs go from a bucket: some hundred a request, and each of them confirmed
 * by the answer. In a bucket that keeps versions, every version of a name goes
 * and every marker of its deletion; a version that a lock holds makes it fail.
 *
 * What the list says is used for sizes and versions alone: a name goes also
 * where a list that is behind the times does not have it. */
#include <openssl/evp.h>
#include <string.h>

#include "blocks/s3.h"
#include "core/base64.h"
#include "core/crypto.h"
#include "core/error.h"
#include "core/map.h"
#include "core/str.h"
#include "core/xml.h"

enum { BATCH = 250, FEW = 24 };

/* One version of one name, in an arena. */
typedef struct victim {
    const char *name;
    const char *version; /* "": the only one */
    uint64_t size;
} victim;

typedef struct removing {
    s3_backend *backend;
    const char *const *names;
    size_t count;
    bal_map wanted;   /* names to their index */
    const char *only; /* the one that is looked up, NULL: all at once */
    bal_buf seen;     /* a byte each: it is among the victims */
    bal_buf victims;
    bal_arena arena;
    size_t confirmed;       /* of a batch */
    char code[BAL_S3_CODE]; /* why one did not go, "" */
    char key[256];
    uint64_t freed;
} removing;

static void removing_done(removing *self)
{
    bal_map_done(&self->wanted);
    bal_buf_done(&self->seen);
    bal_buf_done(&self->victims);
    bal_arena_done(&self->arena);
}

/* ---- what there is ------------------------------------------------------ */

static int index_names(removing *self, bal_error *err)
{
    int rc = bal_buf_reserve(&self->seen, self->count, err);
    if (rc)
        return rc;
    memset(self->seen.data, 0, self->count);
    self->seen.len = self->count;
    for (size_t i = 0; i < self->count && !rc; i++) {
        size_t value = i;
        bool there = false;
        rc = bal_map_add(&self->wanted, self->names[i], strlen(self->names[i]),
                         &value, &there, err);
        if (there)
            self->seen.data[i] = 1;
    }
    return rc;
}

static int add_victim(removing *self, const bal_s3_entry *entry, bal_error *err)
{
    size_t len = strlen(entry->version);
    victim added = { .size = entry->size };
    size_t i = bal_map_find(&self->wanted, entry->name, strlen(entry->name));

    added.name = self->names[i];
    added.version = bal_arena_copy(&self->arena, entry->version, len);
    if (!added.version)
        return bal_fail_memory(err, "names to remove");
    self->seen.data[i] = 1;
    return bal_buf_append(&self->victims, &added, sizeof(added), err);
}

static int note(void *ctx, const bal_s3_entry *entry, bal_error *err)
{
    removing *self = ctx;

    if (self->only && strcmp(self->only, entry->name) != 0)
        return 0;
    if (bal_map_find(&self->wanted, entry->name, strlen(entry->name)) ==
        BAL_NONE)
        return 0;
    return add_victim(self, entry, err);
}

/* What all names begin with, up to a slash. */
static int common(bal_buf *to, const removing *self, bal_error *err)
{
    size_t len = strlen(self->names[0]);

    for (size_t i = 1; i < self->count; i++) {
        size_t same = 0;
        while (same < len && self->names[0][same] == self->names[i][same])
            same++;
        len = same;
    }
    while (len && self->names[0][len - 1] != '/')
        len--;
    return bal_buf_append(to, self->names[0], len, err);
}

/* Few names are looked up one by one, many by one list. */
static int survey(removing *self, bool versions, bal_error *err)
{
    BAL_LOCAL(bal_buf) begin = { 0 };
    int rc = 0;

    if (self->count > FEW) {
        rc = common(&begin, self, err);
        return rc ? rc
                  : bal_s3_each(self->backend, bal_buf_string(&begin), versions,
                                note, self, err);
    }
    for (size_t i = 0; i < self->count && !rc; i++) {
        self->only = self->names[i];
        if (!self->seen.data[i])
            rc = bal_s3_each(self->backend, self->names[i], versions, note,
                             self, err);
    }
    return rc;
}

/* Where there are no versions, also what was not listed. */
static int add_unseen(removing *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->count && !rc; i++) {
        const bal_s3_entry entry = { .name = self->names[i], .version = "" };
        if (!self->seen.data[i])
            rc = add_victim(self, &entry, err);
    }
    return rc;
}

/* ---- a request ---------------------------------------------------------- */

/* Letters that mean something else in XML. */
static int add_text(bal_buf *to, const char *text, bal_error *err)
{
    int rc = 0;

    for (; *text && !rc; text++) {
        if (strchr("<>&", *text) || (unsigned char)*text < ' ')
            rc = bal_buf_format(to, err, "&#%u;", (unsigned)(uint8_t)*text);
        else
            rc = bal_buf_append(to, text, 1, err);
    }
    return rc;
}

static int add_object(const removing *self, bal_buf *to, const victim *one,
                      bal_error *err)
{
    int rc = bal_buf_text(to, "<Object><Key>", err);

    if (!rc)
        rc = add_text(to, self->backend->client.place.prefix, err);
    if (!rc)
        rc = add_text(to, one->name, err);
    if (!rc)
        rc = bal_buf_text(to, "</Key>", err);
    if (!rc && one->version[0]) {
        rc = bal_buf_text(to, "<VersionId>", err);
        if (!rc)
            rc = add_text(to, one->version, err);
        if (!rc)
            rc = bal_buf_text(to, "</VersionId>", err);
    }
    return rc ? rc : bal_buf_text(to, "</Object>", err);
}

static int write_request(const removing *self, bal_buf *body, bal_buf *sum,
                         const victim *victims, size_t count, bal_error *err)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    int rc = bal_buf_text(body, "<Delete>", err);

    for (size_t i = 0; i < count && !rc; i++)
        rc = add_object(self, body, &victims[i], err);
    if (!rc)
        rc = bal_buf_text(body, "</Delete>", err);
    if (rc)
        return rc;
    if (!EVP_Digest(body->data, body->len, digest, &len, EVP_md5(), NULL))
        return bal_fail_crypto(err, "the sum of a request, by MD5");
    return bal_base64_encode(sum, digest, len, err);
}

static int take(void *ctx, bal_xml_end end, const char *path, const char *text,
                bal_error *err)
{
    removing *self = ctx;

    (void)err;
    if (end == BAL_XML_OPENS)
        return 0;
    if (!strcmp(path, "DeleteResult/Deleted"))
        self->confirmed++;
    if (!strcmp(path, "DeleteResult/Error/Code"))
        snprintf(self->code, sizeof(self->code), "%s", text);
    if (!strcmp(path, "DeleteResult/Error/Key"))
        snprintf(self->key, sizeof(self->key), "%s", text);
    return 0;
}

/* ---- what did not go ---------------------------------------------------- */

static int take_lock(void *ctx, bal_xml_end end, const char *path,
                     const char *text, bal_error *err)
{
    (void)err;
    if (end == BAL_XML_CLOSES &&
        !strcmp(path, "ObjectLockConfiguration/ObjectLockEnabled") &&
        !strcmp(text, "Enabled"))
        *(bool *)ctx = true;
    return 0;
}

static bool is_locked(s3_backend *self)
{
    bool locked = false;
    bal_s3_reply reply = { 0 };
    const bal_s3_call call = { .method = "GET",
                               .query = { { "object-lock", "" } } };

    if (bal_s3_send(&reply, &self->client, &call, NULL))
        return false;
    if (reply.status == 200 && bal_xml_walk(reply.body.data, reply.body.len,
                                            "a lock", take_lock, &locked, NULL))
        locked = false;
    bal_s3_reply_done(&reply);
    return locked;
}

static int not_gone(removing *self, bal_error *err)
{
    const char *where = self->backend->client.place.text;
    BAL_LOCAL(bal_buf) said = { 0 };
    int rc = bal_printable(&said, self->key, strlen(self->key), false, err);

    if (!rc)
        rc = bal_buf_text(&said, "': ", err);
    if (!rc)
        rc = bal_printable(&said, self->code, strlen(self->code), false, err);
    if (rc)
        return rc;
    if (!self->code[0])
        return bal_fail(err, BAL_EIO,
                        "removing from '%s': not all of it was confirmed",
                        where);
    rc = bal_fail(err, BAL_EIO, "removing from '%s': '%s", where, said.data);
    if (is_locked(self->backend))
        return bal_hint(err, rc,
                        "the bucket has an object lock: what is in it stays "
                        "until its time is over");
    return bal_hint(err, rc,
                    "removing needs the rights s3:DeleteObject and "
                    "s3:DeleteObjectVersion");
}

static int remove_batch(removing *self, const victim *victims, size_t count,
                        bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    BAL_LOCAL(bal_buf) sum = { 0 };
    bal_s3_reply reply = { 0 };
    int rc = write_request(self, &body, &sum, victims, count, err);
    if (rc)
        return rc;
    const bal_s3_call call = {
        .method = "POST",
        .query = { { "delete", "" } },
        .headers = { { "content-md5", bal_buf_string(&sum) } },
        .body = { body.data, body.len },
    };
    rc = bal_s3_send(&reply, &self->backend->client, &call, err);
    if (rc)
        return rc;
    self->confirmed = 0;
    self->code[0] = self->key[0] = '\0';
    rc = reply.status == 200 ? bal_xml_walk(reply.body.data, reply.body.len,
                                            "removing", take, self, err)
                             : bal_s3_refused(&reply, "removing", err);
    bal_s3_reply_done(&reply);
    if (!rc && (self->code[0] || self->confirmed != count))
        rc = not_gone(self, err);
    for (size_t i = 0; i < count && !rc; i++)
        self->freed += victims[i].size;
    return rc;
}

int bal_s3_remove(bal_backend *base, const char *const *names, size_t count,
                  uint64_t *freed, bal_error *err)
{
    BAL_LOCAL(removing)
    all = { .backend = bal_s3_of(base), .names = names, .count = count };
    bool versions = false;
    int rc = bal_s3_ready(all.backend, false, err);

    if (!rc)
        rc = bal_s3_versioned(all.backend, &versions, err);
    if (!rc)
        rc = index_names(&all, err);
    if (!rc)
        rc = survey(&all, versions, err);
    if (!rc && !versions)
        rc = add_unseen(&all, err);
    const victim *victims = (const victim *)(const void *)all.victims.data;
    size_t left = all.victims.len / sizeof(victim);
    for (size_t at = 0; left && !rc;) {
        size_t some = left < BATCH ? left : BATCH;
        rc = bal_backend_may(base, err);
        if (!rc)
            rc = remove_batch(&all, victims + at, some, err);
        at += some;
        left -= some;
    }
    *freed = all.freed;
    return rc;
}
