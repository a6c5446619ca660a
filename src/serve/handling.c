/* What handlers share: specs, headers, replies to what was posted. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"
#include "serve/handlers.h"
#include "serve/range.h"

const char *bal_request_text(bal_request *request, const char *format, ...)
{
    char room[512];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(room, sizeof(room), format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof(room))
        return NULL;
    return bal_arena_copy(request->arena, room, (size_t)len);
}

/* ---- tenants and specs -----------------------------------------------------
 */

typedef struct looking {
    const char *name;
    bool there;
} looking;

static int look(void *ctx, const char *name)
{
    looking *self = ctx;

    self->there = !strcmp(self->name, name);
    return self->there;
}

int bal_tenant_there(bool *there, bal_request *request, bal_error *err)
{
    looking self = { .name = bal_tenant_name(request->tenant) };
    int rc = bal_tenant_each(request->store, look, &self, err);

    *there = self.there;
    return rc;
}

int bal_not_found(bal_request *request, int rc, bal_error *err)
{
    bool there;

    if (rc != BAL_ENOTFOUND)
        return rc;
    int failed = bal_tenant_there(&there, request, NULL);
    return failed || there ? rc
                           : bal_fail(err, BAL_ENOTFOUND, "%s", "not found");
}

int bal_found_spec(bal_found *out, bal_request *request, const char *spec,
                   bal_error *err)
{
    int rc = bal_resolve(&out->id, request->tenant, spec, err);

    if (rc)
        return bal_not_found(request, rc, err);
    bal_id_hex(out->hex, &out->id);
    out->by_id = bal_hex_valid(spec, BAL_ID_HEX);
    out->tag = bal_request_text(request, "\"%s\"", out->hex);
    return out->tag ? 0 : bal_fail_memory(err, "a reply");
}

/* ---- headers ---------------------------------------------------------------
 */

void bal_reply_no_cache(bal_reply *reply)
{
    bal_reply_header(reply, "cache-control", "private, no-cache");
}

void bal_reply_found(bal_reply *reply, const bal_found *found)
{
    bal_reply_header(reply, "etag", found->tag);
    if (!found->by_id) {
        bal_reply_no_cache(reply);
        return;
    }
    bal_reply_header(reply, "cache-control",
                     "private, max-age=31536000, immutable");
    bal_reply_header(reply, "vary", "authorization");
}

bool bal_found_same(bal_reply *reply, const bal_request *request,
                    const bal_found *found)
{
    if (!bal_etag_named(request->if_none_match, found->tag, true))
        return false;
    bal_reply_found(reply, found);
    reply->status = 304;
    return true;
}

int bal_reply_tagged(bal_reply *reply, bal_request *request, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];
    bal_id hash;

    bal_hash_of(&hash, bal_buf_string(&reply->body), reply->body.len);
    bal_id_hex(hex, &hash);
    const char *tag = bal_request_text(request, "\"%.32s\"", hex);
    if (!tag)
        return bal_fail_memory(err, "a reply");
    bal_reply_header(reply, "etag", tag);
    bal_reply_no_cache(reply);
    reply->status = 200;
    return 0;
}

void bal_member_text(bal_json *json, const char *key, const char *text)
{
    bal_json_key(json, key);
    bal_json_string(json, text);
}

void bal_member_id(bal_json *json, const char *key, const bal_id *id)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    bal_member_text(json, key, hex);
}

/* ---- what was posted -------------------------------------------------------
 */

static int not_there(bal_reply *reply, const char *ref, bal_error *err)
{
    reply->status = 412;
    return bal_fail(err, BAL_ECONFLICT, "there is no ref '%s'", ref);
}

/* The ref's head, as long as it is one: it is moved only from there. */
static int any_head(bal_expected *out, bal_reply *reply, bal_request *request,
                    const char *ref, bal_error *err)
{
    int rc = BAL_ENOTFOUND;

    if (bal_name_valid(ref) && !bal_hex_valid(ref, BAL_ID_HEX))
        rc = bal_resolve(&out->id, request->tenant, ref, err);
    out->head = &out->id;
    return rc == BAL_ENOTFOUND ? not_there(reply, ref, err) : rc;
}

int bal_expected_read(bal_expected *out, bal_reply *reply, bal_request *request,
                      const char *ref, bal_error *err)
{
    const char *text = request->if_match;
    size_t len = text ? strlen(text) : 0;
    char hex[BAL_ID_HEX + 1];

    if (!text)
        return 0;
    if (!strcmp(text, "*"))
        return any_head(out, reply, request, ref, err);
    if (len != BAL_ID_HEX + 2 || text[0] != '"' || text[len - 1] != '"')
        return bal_fail(err, BAL_EINVAL,
                        "if-match is not one commit's full id in quotes");
    memcpy(hex, text + 1, BAL_ID_HEX);
    hex[BAL_ID_HEX] = '\0';
    out->head = &out->id;
    return bal_id_parse(&out->id, hex, err);
}

int bal_not_made(bal_reply *reply, const bal_expected *expected, int rc)
{
    if (rc == BAL_ECONFLICT && expected->head)
        reply->status = 412;
    return rc;
}

int bal_reply_made(bal_reply *reply, bal_request *request,
                   const bal_commit *commit, const char *ref, bal_error *err)
{
    const bal_commit_info *info = bal_commit_info_of(commit);
    char hex[BAL_ID_HEX + 1];
    bal_json json;

    bal_id_hex(hex, &info->id);
    const char *place =
        bal_request_text(request, "/tenants/%s/commits/%s", info->tenant, hex);
    if (!place)
        return bal_fail_memory(err, "a reply");
    bal_json_begin(&json, &reply->body, 0);
    bal_json_object(&json);
    bal_json_members(&json, bal_commit_json(commit));
    bal_member_text(&json, "ref", ref);
    bal_json_close(&json);
    int rc = bal_json_end(&json, err);
    if (rc)
        return rc;
    bal_reply_header(reply, "location", place);
    bal_reply_header(reply, "cache-control", "no-store");
    reply->status = 201;
    return 0;
}
