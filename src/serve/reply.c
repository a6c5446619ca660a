/* What replies and requests have that needs no socket. */
#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "serve/range.h"
#include "serve/request.h"
#include "serve/spool.h"

static const struct {
    int status;
    const char *word;
} words[] = {
    { 400, "usage" },       { 403, "denied" },      { 404, "not-found" },
    { 405, "usage" },       { 408, "usage" },       { 409, "conflict" },
    { 411, "usage" },       { 412, "conflict" },    { 413, "usage" },
    { 414, "usage" },       { 416, "usage" },       { 429, "busy" },
    { 501, "unsupported" }, { 505, "unsupported" }, { 503, "busy" },
    { 500, "io" },
};

static const char *word_of(int status)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (words[i].status == status)
            return words[i].word;
    }
    return "io";
}

const char *bal_request_query(const bal_request *self, const char *name)
{
    for (size_t i = 0; i < self->query_count; i++) {
        if (!strcmp(self->query[i].name, name))
            return self->query[i].value;
    }
    return NULL;
}

void bal_reply_done(bal_reply *self)
{
    bal_buf_done(&self->body);
    bal_spooled_free(self->source);
    self->source = NULL;
}

void bal_reply_header(bal_reply *self, const char *name, const char *value)
{
    if (self->header_count < BAL_REPLY_HEADERS)
        self->headers[self->header_count++] = (bal_field){ name, value };
}

void bal_reply_error(bal_reply *self, int status, const char *code,
                     const char *message)
{
    bal_json json;

    bal_buf_clear(&self->body);
    bal_spooled_free(self->source);
    self->source = NULL;
    self->status = status;
    self->type = NULL;
    self->cacheable = false;
    bal_json_begin(&json, &self->body, 0);
    bal_json_object(&json);
    bal_json_key(&json, "error");
    bal_json_object(&json);
    bal_json_key(&json, "code");
    bal_json_string(&json, code ? code : word_of(status));
    bal_json_key(&json, "message");
    bal_json_string(&json, message);
    bal_json_close(&json);
    bal_json_close(&json);
    /* Without memory the status says it alone. */
    if (bal_json_end(&json, NULL) || bal_buf_text(&self->body, "\n", NULL))
        bal_buf_clear(&self->body);
}

static int text_header(bal_reply *self, bal_arena *arena, const char *name,
                       const bal_buf *text, bal_error *err)
{
    char *copy = bal_arena_copy(arena, text->data, text->len);

    if (!copy)
        return bal_fail_memory(err, "answering");
    bal_reply_header(self, name, copy);
    return 0;
}

int bal_reply_range(bal_reply *self, const bal_request *request, uint64_t size,
                    const char *etag, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    /* RFC 9110 14.2: of GET alone. */
    const char *range = request->head ? NULL : request->range;

    if (request->if_range && strcmp(request->if_range, etag) != 0)
        range = NULL;
    bal_range_kind kind =
        bal_range_of(range, size, &self->offset, &self->length);
    self->status = kind == BAL_RANGE_PART ? 206 : 200;
    bal_reply_header(self, "accept-ranges", "bytes");
    if (kind == BAL_RANGE_WHOLE)
        return 0;
    int rc = kind == BAL_RANGE_PART
                 ? bal_buf_format(
                       &text, err, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
                       self->offset, self->offset + self->length - 1, size)
                 : bal_buf_format(&text, err, "bytes */%" PRIu64, size);
    if (!rc)
        rc = text_header(self, request->arena, "content-range", &text, err);
    if (!rc && kind == BAL_RANGE_NOWHERE)
        bal_reply_error(self, 416, NULL, "the range is not in the file");
    return rc;
}
