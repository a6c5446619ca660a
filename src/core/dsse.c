/* DSSE envelopes, written compactly and read by the strict scanner. */
#include "core/dsse.h"

#include <string.h>

#include "core/base64.h"
#include "core/error.h"
#include "core/json.h"

enum { LEVELS = 64 };

static const char what[] = "dsse envelope";

int bal_dsse_pae(bal_buf *to, const char *type, bal_bytes payload,
                 bal_error *err)
{
    int rc = bal_buf_format(to, err, "DSSEv1 %zu %s %zu ", strlen(type), type,
                            payload.len);

    return rc ? rc : bal_buf_append(to, payload.data, payload.len, err);
}

/* ---- writing ---------------------------------------------------------------
 */

static int write_base64(bal_json *json, bal_bytes bytes, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc = bal_base64_encode(&text, bytes.data, bytes.len, err);
    if (rc)
        return rc;

    bal_json_string(json, bal_buf_string(&text));
    return 0;
}

static int write_signature(bal_json *json, const char *type, bal_bytes payload,
                           const bal_key *key, bal_error *err)
{
    BAL_LOCAL(bal_buf) pae = { 0 };
    BAL_LOCAL(bal_buf) signature = { 0 };
    int rc = bal_dsse_pae(&pae, type, payload, err);
    if (rc)
        return rc;
    rc = bal_key_sign(key, &signature, (bal_bytes){ pae.data, pae.len }, err);
    if (rc)
        return rc;

    bal_json_object(json);
    bal_json_key(json, "keyid");
    bal_json_string(json, bal_key_id(key));
    bal_json_key(json, "sig");
    rc = write_base64(json, (bal_bytes){ signature.data, signature.len }, err);
    bal_json_close(json);
    return rc;
}

int bal_dsse_write(bal_buf *to, const char *type, bal_bytes payload,
                   const bal_key *key, bal_error *err)
{
    bal_json json;

    bal_json_begin(&json, to, 0);
    bal_json_object(&json);
    bal_json_key(&json, "payload");
    int rc = write_base64(&json, payload, err);
    if (rc)
        return rc;
    bal_json_key(&json, "payloadType");
    bal_json_string(&json, type);
    bal_json_key(&json, "signatures");
    bal_json_array(&json);
    if (key)
        rc = write_signature(&json, type, payload, key, err);
    if (rc)
        return rc;
    bal_json_close(&json);
    bal_json_close(&json);
    return bal_json_end(&json, err);
}

/* ---- reading ---------------------------------------------------------------
 */

/* What one member is for: its value goes into the place that ctx is. */
typedef struct member {
    const char *name;
    bool required;
    int (*read)(bal_scan *scan, void *ctx, bal_error *err);
} member;

static int read_member(bal_scan *scan, const member *members, size_t count,
                       unsigned *seen, void *ctx, bal_error *err)
{
    const char *key;
    size_t len;
    int rc = bal_scan_key(scan, &key, &len, err);
    if (rc)
        return rc;

    for (size_t i = 0; i < count; i++) {
        if (strlen(members[i].name) != len || memcmp(members[i].name, key, len))
            continue;
        if (*seen & 1u << i)
            return bal_fail(err, BAL_ECORRUPT, "%s: '%s' is there twice", what,
                            members[i].name);
        *seen |= 1u << i;
        return members[i].read(scan, ctx, err);
    }
    return bal_scan_skip(scan, LEVELS, err);
}

static int read_object(bal_scan *scan, const member *members, size_t count,
                       void *ctx, bal_error *err)
{
    unsigned seen = 0;
    bool more = true;
    int rc = bal_scan_open(scan, '{', err);

    if (!rc)
        rc = bal_scan_more(scan, '}', true, &more, err);
    while (!rc && more) {
        rc = read_member(scan, members, count, &seen, ctx, err);
        if (!rc)
            rc = bal_scan_more(scan, '}', false, &more, err);
    }
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        if (members[i].required && !(seen & 1u << i))
            return bal_fail(err, BAL_ECORRUPT, "%s: no '%s'", what,
                            members[i].name);
    }
    return 0;
}

static int read_text(bal_scan *scan, const char **text, bal_error *err)
{
    size_t len;
    int rc = bal_scan_string(scan, text, &len, err);
    if (rc)
        return rc;

    if (strlen(*text) != len)
        return bal_fail(err, BAL_ECORRUPT, "%s: a text with a nul byte", what);
    return 0;
}

static int read_base64(bal_scan *scan, bal_bytes *bytes, bal_error *err)
{
    BAL_LOCAL(bal_buf) decoded = { 0 };
    const char *text;
    size_t len;
    int rc = bal_scan_string(scan, &text, &len, err);
    if (rc)
        return rc;
    rc = bal_base64_decode(&decoded, text, len, err);
    if (rc)
        return bal_within(err, rc, "%s", what);

    bytes->data =
        bal_arena_copy(scan->arena, bal_buf_string(&decoded), decoded.len);
    bytes->len = decoded.len;
    return bytes->data ? 0 : bal_fail_memory(err, what);
}

static int read_keyid(bal_scan *scan, void *ctx, bal_error *err)
{
    bal_dsse_signature *self = ctx;

    return read_text(scan, &self->keyid, err);
}

static int read_sig(bal_scan *scan, void *ctx, bal_error *err)
{
    bal_dsse_signature *self = ctx;

    return read_base64(scan, &self->bytes, err);
}

static int read_signature(bal_scan *scan, bal_dsse *self, bal_error *err)
{
    static const member members[] = {
        { "keyid", false, read_keyid },
        { "sig", true, read_sig },
    };

    if (self->count == BAL_DSSE_SIGNATURES)
        return bal_fail(err, BAL_ECORRUPT, "%s: more than %d signatures", what,
                        BAL_DSSE_SIGNATURES);
    bal_dsse_signature *signature = &self->signatures[self->count++];
    signature->keyid = "";
    return read_object(scan, members, sizeof(members) / sizeof(members[0]),
                       signature, err);
}

static int read_payload(bal_scan *scan, void *ctx, bal_error *err)
{
    bal_dsse *self = ctx;

    return read_base64(scan, &self->payload, err);
}

static int read_type(bal_scan *scan, void *ctx, bal_error *err)
{
    bal_dsse *self = ctx;

    return read_text(scan, &self->type, err);
}

static int read_signatures(bal_scan *scan, void *ctx, bal_error *err)
{
    bool more = true;
    int rc = bal_scan_open(scan, '[', err);

    if (!rc)
        rc = bal_scan_more(scan, ']', true, &more, err);
    while (!rc && more) {
        rc = read_signature(scan, ctx, err);
        if (!rc)
            rc = bal_scan_more(scan, ']', false, &more, err);
    }
    return rc;
}

int bal_dsse_read(bal_dsse *out, bal_bytes text, bal_error *err)
{
    static const member members[] = {
        { "payload", true, read_payload },
        { "payloadType", true, read_type },
        { "signatures", true, read_signatures },
    };
    BAL_LOCAL(bal_dsse) self = { 0 };
    bal_scan scan = {
        .data = text.data,
        .len = text.len,
        .arena = &self.arena,
        .what = what,
    };
    int rc = read_object(&scan, members, sizeof(members) / sizeof(members[0]),
                         &self, err);
    if (rc)
        return rc;
    rc = bal_scan_end(&scan, err);
    if (rc)
        return rc;

    *out = self;
    self = (bal_dsse){ 0 };
    return 0;
}

void bal_dsse_done(bal_dsse *self)
{
    bal_arena_done(&self->arena);
    *self = (bal_dsse){ 0 };
}

int bal_dsse_verify(const bal_dsse *self, const bal_key *key, bool *good,
                    bal_error *err)
{
    BAL_LOCAL(bal_buf) pae = { 0 };
    int rc = bal_dsse_pae(&pae, self->type, self->payload, err);
    if (rc)
        return rc;

    *good = false;
    for (size_t i = 0; i < self->count && !*good; i++)
        *good = bal_key_verifies(key, (bal_bytes){ pae.data, pae.len },
                                 self->signatures[i].bytes);
    return 0;
}
