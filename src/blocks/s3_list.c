/* Lists, page after page: of keys (ListObjectsV2) or of all their versions
 * (ListObjectVersions). A page that is cut, that lacks what it must have, or
 * that leads to itself ends the list with an error: one that is shorter than
 * the truth would make whoever reads it think that blocks are gone. */
#include <string.h>

#include "blocks/s3.h"
#include "core/error.h"
#include "core/str.h"
#include "core/xml.h"

typedef struct page page;

/* An element of an answer and where its text goes. */
typedef struct element {
    const char *path;
    int (*take)(page *self, const char *text, bal_error *err);
} element;

typedef struct listing_kind {
    const element *elements;
    size_t count;
    const char *entries[2]; /* elements that are entries; the second: markers */
    const char *root;
} listing_kind;

struct page {
    const s3_backend *backend;
    const listing_kind *kind;
    const char *begin; /* behind the backend's prefix */
    bal_s3_entry_fn *fn;
    void *ctx;
    /* of the entry that is being read */
    bal_buf key, version;
    uint64_t size;
    bool sized, keyed;
    /* of the page */
    bool truncated, told, rooted;
    bal_buf next[2], before[2]; /* where it goes on */
};

static void page_done(page *self)
{
    bal_buf_done(&self->key);
    bal_buf_done(&self->version);
    for (size_t i = 0; i < 2; i++) {
        bal_buf_done(&self->next[i]);
        bal_buf_done(&self->before[i]);
    }
}

static int bad(const page *self, const char *why, bal_error *err)
{
    return bal_fail(err, BAL_EIO, "the list of '%s': %s",
                    self->backend->client.place.text, why);
}

/* ---- elements ----------------------------------------------------------- */

static int set(bal_buf *to, const char *text, bal_error *err)
{
    bal_buf_clear(to);
    return bal_buf_text(to, text, err);
}

static int hex_of(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) % 16 : -1;
}

/* Keys are asked for in the encoding of URLs: XML cannot hold all of them. */
static int take_encoded(bal_buf *to, const char *text, bal_error *err)
{
    int rc = set(to, "", err);

    for (; *text && !rc; text++) {
        uint8_t byte = *text == '+' ? ' ' : (uint8_t)*text;
        if (*text == '%') {
            int high = hex_of(text[1]);
            int low = high < 0 ? -1 : hex_of(text[2]);
            if (low < 0 || !(high | low))
                return bal_fail(err, BAL_ECORRUPT, "a key that is none");
            byte = (uint8_t)((unsigned)high << 4 | (unsigned)low);
            text += 2;
        }
        rc = bal_buf_append(to, &byte, 1, err);
    }
    return rc;
}

static int take_key(page *self, const char *text, bal_error *err)
{
    self->keyed = true;
    return take_encoded(&self->key, text, err);
}

static int take_size(page *self, const char *text, bal_error *err)
{
    self->sized = true;
    return bal_parse_u64(&self->size, text, err);
}

static int take_version(page *self, const char *text, bal_error *err)
{
    return set(&self->version, text, err);
}

static int take_truncated(page *self, const char *text, bal_error *err)
{
    self->told = true;
    self->truncated = !strcmp(text, "true");
    return self->truncated || !strcmp(text, "false")
               ? 0
               : bad(self, "neither its end nor more", err);
}

static int take_next(page *self, const char *text, bal_error *err)
{
    return set(&self->next[0], text, err);
}

static int take_next_key(page *self, const char *text, bal_error *err)
{
    return take_encoded(&self->next[0], text, err);
}

static int take_next_version(page *self, const char *text, bal_error *err)
{
    return set(&self->next[1], text, err);
}

static const element key_elements[] = {
    { "ListBucketResult/Contents/Key", take_key },
    { "ListBucketResult/Contents/Size", take_size },
    { "ListBucketResult/IsTruncated", take_truncated },
    { "ListBucketResult/NextContinuationToken", take_next },
};

static const element version_elements[] = {
    { "ListVersionsResult/Version/Key", take_key },
    { "ListVersionsResult/Version/Size", take_size },
    { "ListVersionsResult/Version/VersionId", take_version },
    { "ListVersionsResult/DeleteMarker/Key", take_key },
    { "ListVersionsResult/DeleteMarker/VersionId", take_version },
    { "ListVersionsResult/IsTruncated", take_truncated },
    { "ListVersionsResult/NextKeyMarker", take_next_key },
    { "ListVersionsResult/NextVersionIdMarker", take_next_version },
};

static const listing_kind keys_kind = {
    key_elements,
    sizeof(key_elements) / sizeof(key_elements[0]),
    { "ListBucketResult/Contents", NULL },
    "ListBucketResult",
};

static const listing_kind versions_kind = {
    version_elements,
    sizeof(version_elements) / sizeof(version_elements[0]),
    { "ListVersionsResult/Version", "ListVersionsResult/DeleteMarker" },
    "ListVersionsResult",
};

/* ---- a page ------------------------------------------------------------- */

static void begin_entry(page *self)
{
    bal_buf_clear(&self->key);
    bal_buf_clear(&self->version);
    self->sized = self->keyed = false;
    self->size = 0;
}

static int end_entry(page *self, bool marker, bal_error *err)
{
    const char *prefix = self->backend->client.place.prefix;
    const char *key = bal_buf_string(&self->key);
    size_t len = strlen(prefix);

    if (!self->keyed || (!marker && !self->sized))
        return bad(self, "an entry without a key or a size", err);
    if (strncmp(key, prefix, len) != 0 ||
        strncmp(key + len, self->begin, strlen(self->begin)) != 0)
        return bad(self, "a key that was not asked for", err);
    const bal_s3_entry entry = {
        .name = key + len,
        .version = bal_buf_string(&self->version),
        .size = self->size,
        .marker = marker,
    };
    return self->fn(self->ctx, &entry, err);
}

/* Which of the kind's entries the path is; 2: none. */
static size_t entry_of(const page *self, const char *path)
{
    size_t i = 0;

    while (i < 2 && (!self->kind->entries[i] ||
                     strcmp(path, self->kind->entries[i]) != 0))
        i++;
    return i;
}

static int take(void *ctx, bal_xml_end end, const char *path, const char *text,
                bal_error *err)
{
    page *self = ctx;
    size_t entry = entry_of(self, path);

    if (!strcmp(path, self->kind->root))
        self->rooted = true;
    if (end == BAL_XML_OPENS) {
        if (entry < 2)
            begin_entry(self);
        return 0;
    }
    if (entry < 2)
        return end_entry(self, entry == 1, err);
    for (size_t i = 0; i < self->kind->count; i++) {
        if (!strcmp(path, self->kind->elements[i].path))
            return self->kind->elements[i].take(self, text, err);
    }
    return 0;
}

static bool same(const bal_buf *a, const bal_buf *b)
{
    return !strcmp(bal_buf_string(a), bal_buf_string(b));
}

/* Where the next page begins: somewhere else than this one. */
static int turn(page *self, bal_error *err)
{
    int rc = 0;

    if (!self->rooted || !self->told)
        return bad(self, "neither its end nor more", err);
    if (!self->truncated)
        return 0;
    if (!self->next[0].len || (same(&self->next[0], &self->before[0]) &&
                               same(&self->next[1], &self->before[1])))
        return bad(self, "it leads nowhere", err);
    for (size_t i = 0; i < 2 && !rc; i++) {
        rc = set(&self->before[i], bal_buf_string(&self->next[i]), err);
        bal_buf_clear(&self->next[i]);
    }
    return rc;
}

static int read_page(page *self, s3_backend *backend, const bal_s3_call *call,
                     bal_error *err)
{
    bal_s3_reply reply = { 0 };
    int rc = bal_s3_send(&reply, &backend->client, call, err);
    if (rc)
        return rc;

    self->truncated = self->told = self->rooted = false;
    if (reply.longer)
        rc = bad(self, "a page that is too long", err);
    else if (reply.status == 200)
        rc = bal_xml_walk(reply.body.data, reply.body.len, "a list", take, self,
                          err);
    else
        rc = bal_s3_refused(&reply, "listing", err);
    bal_s3_reply_done(&reply);
    /* Of the answer itself; what is listed may be damaged as well. */
    return rc ? rc : turn(self, err);
}

int bal_s3_each(s3_backend *self, const char *begin, bool versions,
                bal_s3_entry_fn *fn, void *ctx, bal_error *err)
{
    BAL_LOCAL(bal_buf) prefix = { 0 };
    BAL_LOCAL(page)
    all = {
        .backend = self,
        .kind = versions ? &versions_kind : &keys_kind,
        .begin = begin,
        .fn = fn,
        .ctx = ctx,
    };
    int rc =
        bal_buf_format(&prefix, err, "%s%s", self->client.place.prefix, begin);

    do {
        const char *key = bal_buf_string(&all.before[0]);
        const char *version = bal_buf_string(&all.before[1]);
        bal_s3_call call = {
            .method = "GET",
            .query = { { versions ? "versions" : "list-type",
                         versions ? "" : "2" },
                       { "prefix", bal_buf_string(&prefix) },
                       { "encoding-type", "url" } },
        };
        if (key[0])
            call.query[3] = (bal_sigv4_pair){ versions ? "key-marker"
                                                       : "continuation-token",
                                              key };
        if (versions && version[0])
            call.query[4] = (bal_sigv4_pair){ "version-id-marker", version };
        if (!rc)
            rc = read_page(&all, self, &call, err);
    } while (!rc && all.truncated);
    return rc;
}

/* ---- the row's list ----------------------------------------------------- */

typedef struct naming {
    bal_listed_fn *fn;
    void *ctx;
    bal_buf last; /* the name that was told, of several versions */
} naming;

static void naming_done(naming *self)
{
    bal_buf_done(&self->last);
}

/* What begins with a dot is not a run, nor is what ends with a slash: some
 * programs make these to stand for folders. */
static bool is_name(const char *name)
{
    size_t len = strlen(name);

    return len && name[0] != '.' && name[len - 1] != '/' &&
           !strstr(name, "/.") && !strstr(name, "//") && name[0] != '/';
}

/* Versions of a name come one behind the other, the current one first. */
static int tell(void *ctx, const bal_s3_entry *entry, bal_error *err)
{
    naming *self = ctx;

    if (entry->marker || !is_name(entry->name) ||
        !strcmp(entry->name, bal_buf_string(&self->last)))
        return 0;
    int rc = set(&self->last, entry->name, err);
    return rc ? rc : self->fn(self->ctx, entry->name, entry->size, err);
}

int bal_s3_list(bal_backend *base, const char *prefix, bal_listed_fn *fn,
                void *ctx, bal_error *err)
{
    s3_backend *self = bal_s3_of(base);
    BAL_LOCAL(naming) all = { .fn = fn, .ctx = ctx };
    bool versions = false;
    int rc = bal_s3_ready(self, false, err);

    if (!rc)
        rc = bal_s3_versioned(self, &versions, err);
    return rc ? rc : bal_s3_each(self, prefix, versions, tell, &all, err);
}
