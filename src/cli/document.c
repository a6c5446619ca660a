/* JSON documents on stdout. What the library's writer leaves as it is because
 * JSON allows it (DEL, C1, bidi controls, line separators) is written as \uNNNN
 * here: output is read on terminals too. */
#include "cli/output.h"
#include "core/error.h"
#include "core/str.h"
#include "core/utf8.h"

static void open_document(bal_json *json, bal_out *out, const char *command,
                          unsigned indent)
{
    char schema[64];

    snprintf(schema, sizeof(schema), "ballast/%s/1", command);
    out->document = out->buf.len;
    bal_json_begin(json, &out->buf, indent);
    bal_json_object(json);
    bal_json_key(json, "schema");
    bal_json_string(json, schema);
}

void bal_doc_open(bal_json *json, bal_out *out, const char *command)
{
    open_document(json, out, command, out->terminal ? 2 : 0);
}

void bal_line_open(bal_json *json, bal_out *out, const char *command)
{
    open_document(json, out, command, 0);
}

void bal_doc_close(bal_json *json, bal_out *out)
{
    bal_error err = { 0 };

    bal_json_close(json);
    int rc = bal_json_end(json, &err);
    if (!rc)
        rc = bal_json_harmless(&out->buf, out->document, &err);
    bal_out_keep(out, rc, &err);
    bal_out_text(out, "\n");
}

/* The first byte at or behind `at` that needs a look: DEL, or no ASCII. */
static size_t suspect(const bal_buf *buf, size_t at)
{
    while (at < buf->len && (uint8_t)buf->data[at] < 0x7f)
        at++;
    return at;
}

/* Append one character, as \uNNNN if it is not one to be shown. */
static int put_character(bal_buf *to, const char *text, size_t len,
                         uint32_t point, bal_error *err)
{
    size_t before = to->len;
    int rc = bal_printable(to, text, len, false, err);
    if (rc)
        return rc;
    if (to->len - before == len && !memcmp(to->data + before, text, len))
        return 0;
    to->len = before;
    return bal_buf_format(to, err, "\\u%04x", (unsigned)point);
}

int bal_json_harmless(bal_buf *buf, size_t from, bal_error *err)
{
    BAL_LOCAL(bal_buf) out = { 0 };
    size_t at = from;
    size_t next = suspect(buf, at);

    while (next < buf->len) {
        uint32_t point = 0xfffd;
        size_t len = bal_utf8_next(&point, buf->data + next, buf->len - next);
        int rc = bal_buf_append(&out, buf->data + at, next - at, err);
        if (rc)
            return rc;
        len = len ? len : 1;
        rc = put_character(&out, buf->data + next, len, point, err);
        if (rc)
            return rc;
        at = next + len;
        next = suspect(buf, at);
    }
    if (at == from)
        return 0;
    int rc = bal_buf_append(&out, buf->data + at, buf->len - at, err);
    if (rc)
        return rc;
    buf->len = from;
    return bal_buf_append(buf, out.data, out.len, err);
}
