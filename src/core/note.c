/* Checkpoints as signed notes. What is signed is the text as it stands, so a
 * note that was read keeps its bytes, lines that we do not know included. */
#include "core/note.h"

#include <inttypes.h>
#include <string.h>

#include "core/base64.h"
#include "core/error.h"
#include "core/str.h"
#include "core/utf8.h"

enum { NOTE_MAX_BYTES = 65536, KEY_ID = 4, RAW = 32 };

static const char dash[] = "\xe2\x80\x94 "; /* U+2014 and a space */

/* ---- names -----------------------------------------------------------------
 */

/* Unicode's white space above ASCII. */
static bool is_space(uint32_t point)
{
    static const uint32_t single[] = { 0x85,   0xa0,   0x1680, 0x2028,
                                       0x2029, 0x202f, 0x205f, 0x3000 };

    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
        if (point == single[i])
            return true;
    }
    return point >= 0x2000 && point <= 0x200a;
}

/* Fit to be a key's name in a note: no space, no '+', no control character. */
static bool name_fits(const char *name, size_t len)
{
    for (size_t at = 0; at < len;) {
        uint32_t point;
        size_t step = bal_utf8_next(&point, name + at, len - at);
        if (!step || point <= ' ' || point == '+' || point == 0x7f ||
            (point >= 0x80 && point < 0xa0) || is_space(point))
            return false;
        at += step;
    }
    return len > 0;
}

/* The front of SHA-256(name ‖ 0x0A ‖ 0x01 ‖ key). False in *has: the key is a
 * shared secret. */
static int key_id_of(uint8_t out[KEY_ID], const char *name, const bal_key *key,
                     bool *has, bal_error *err)
{
    uint8_t raw[RAW];
    bal_sha256 hash;

    *has = bal_key_public_bytes(key, raw);
    if (!*has)
        return 0;
    const bal_bytes parts[] = {
        { name, strlen(name) },
        { "\n\1", 2 },
        { raw, sizeof(raw) },
    };
    int rc = bal_sha256_of(&hash, parts, 3, err);
    if (rc)
        return rc;
    memcpy(out, hash.bytes, KEY_ID);
    return 0;
}

/* ---- writing ---------------------------------------------------------------
 */

static int write_text(bal_buf *to, const char *origin,
                      const bal_merkle_head *head, bal_error *err)
{
    int rc = bal_buf_format(to, err, "%s\n%" PRIu64 "\n", origin, head->size);
    if (rc)
        return rc;
    rc = bal_base64_encode(to, head->root.bytes, sizeof(head->root.bytes), err);
    if (rc)
        return rc;
    return bal_buf_text(to, "\n", err);
}

/* The bytes of a signature line: key id and signature. */
static int sign(bal_buf *to, const char *origin, const bal_buf *text,
                const bal_key *key, bal_error *err)
{
    uint8_t id[KEY_ID];
    bool has;
    int rc = key_id_of(id, origin, key, &has, err);
    if (rc)
        return rc;

    if (!has || !bal_key_signs(key))
        return bal_fail(err, BAL_EINVAL,
                        "key %s cannot sign a checkpoint: that takes an "
                        "Ed25519 pair",
                        bal_key_id(key));
    rc = bal_buf_append(to, id, sizeof(id), err);
    if (rc)
        return rc;
    return bal_key_sign(key, to, (bal_bytes){ text->data, text->len }, err);
}

int bal_note_write(bal_buf *to, const char *origin, const bal_merkle_head *head,
                   const bal_key *key, bal_error *err)
{
    BAL_LOCAL(bal_buf) note = { .ceiling = NOTE_MAX_BYTES };
    BAL_LOCAL(bal_buf) signature = { 0 };

    if (!name_fits(origin, strlen(origin)))
        return bal_fail(err, BAL_EINVAL,
                        "'%s' cannot name a log: no space, '+' or control "
                        "character",
                        origin);
    int rc = write_text(&note, origin, head, err);
    if (!rc)
        rc = sign(&signature, origin, &note, key, err);
    if (!rc)
        rc = bal_buf_format(&note, err, "\n%s%s ", dash, origin);
    if (!rc)
        rc = bal_base64_encode(&note, signature.data, signature.len, err);
    if (!rc)
        rc = bal_buf_text(&note, "\n", err);
    if (rc)
        return rc;
    return bal_buf_append(to, note.data, note.len, err);
}

/* ---- reading ---------------------------------------------------------------
 */

/* Takes the line in front, without its end; false: there is none. */
static bool take_line(bal_bytes *from, bal_bytes *line)
{
    const char *text = from->data;
    const char *end = from->len ? memchr(text, '\n', from->len) : NULL;

    if (!end)
        return false;
    line->data = text;
    line->len = (size_t)(end - text);
    from->data = end + 1;
    from->len -= line->len + 1;
    return true;
}

static int bad(const char *why, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "checkpoint: %s", why);
}

/* Base64 of the standard alphabet alone, as notes have it. */
static int read_base64(bal_buf *to, bal_bytes text, bal_error *err)
{
    if (text.len &&
        (memchr(text.data, '-', text.len) || memchr(text.data, '_', text.len)))
        return bad("bad base64", err);
    int rc = bal_base64_decode(to, text.data, text.len, err);
    return rc ? bal_within(err, rc, "checkpoint") : 0;
}

static int read_size(uint64_t *out, bal_bytes line, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc = bal_buf_append(&text, line.data, line.len, err);
    if (rc)
        return rc;

    /* One number has one text. */
    if ((line.len > 1 && text.data[0] == '0') ||
        strlen(text.data) != line.len || bal_parse_u64(out, text.data, NULL))
        return bad("the second line is not a size", err);
    return 0;
}

static int read_root(bal_sha256 *out, bal_bytes line, bal_error *err)
{
    BAL_LOCAL(bal_buf) root = { 0 };
    int rc = read_base64(&root, line, err);
    if (rc)
        return rc;

    if (root.len != sizeof(out->bytes))
        return bad("the third line is not a root", err);
    memcpy(out->bytes, root.data, sizeof(out->bytes));
    return 0;
}

/* "— name base64" into its two halves; false: it is not that. */
static bool split_signature(bal_bytes line, bal_bytes *name, bal_bytes *coded)
{
    const char *text = line.data;
    size_t front = sizeof(dash) - 1;

    if (line.len < front || memcmp(text, dash, front))
        return false;
    text += front;
    size_t left = line.len - front;
    const char *gap = memchr(text, ' ', left);
    if (!gap)
        return false;
    name->data = text;
    name->len = (size_t)(gap - text);
    coded->data = gap + 1;
    coded->len = left - name->len - 1;
    return name_fits(name->data, name->len);
}

/* All lines must be signatures, and there must be one. */
static int check_signatures(bal_bytes lines, bal_error *err)
{
    bal_bytes line;
    bal_bytes name;
    bal_bytes coded;

    if (!lines.len)
        return bad("no signature", err);
    while (take_line(&lines, &line)) {
        BAL_LOCAL(bal_buf) bytes = { 0 };
        if (!split_signature(line, &name, &coded))
            return bad("a line that is not a signature", err);
        int rc = read_base64(&bytes, coded, err);
        if (rc)
            return rc;
        if (bytes.len <= KEY_ID)
            return bad("a signature that is too short", err);
    }
    return lines.len ? bad("a line without an end", err) : 0;
}

/* No control character but the ends of lines. */
static bool is_text(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t c = (uint8_t)text[i];
        if ((c < ' ' && c != '\n') || c == 0x7f)
            return false;
    }
    return bal_utf8_valid(text, len);
}

/* The three lines, those that extend them, and the empty one. */
static int read_lines(bal_note *self, bal_bytes rest, bal_error *err)
{
    const char *start = rest.data;
    bal_bytes origin;
    bal_bytes size;
    bal_bytes root;
    bal_bytes line;

    if (!take_line(&rest, &origin) || !origin.len || !take_line(&rest, &size) ||
        !take_line(&rest, &root))
        return bad("not three lines", err);
    int rc = read_size(&self->head.size, size, err);
    if (rc)
        return rc;
    rc = read_root(&self->head.root, root, err);
    if (rc)
        return rc;
    do {
        if (!take_line(&rest, &line))
            return bad("no empty line", err);
    } while (line.len);
    self->text.data = start;
    self->text.len = (size_t)((const char *)line.data - start);
    self->signatures = rest;
    self->origin = bal_arena_copy(&self->arena, origin.data, origin.len);
    if (!self->origin)
        return bal_fail_memory(err, "a checkpoint");
    return check_signatures(rest, err);
}

int bal_note_read(bal_note *out, bal_bytes text, bal_error *err)
{
    BAL_LOCAL(bal_note) self = { 0 };

    if (text.len > NOTE_MAX_BYTES)
        return bad("larger than 64 KiB", err);
    if (!is_text(text.data, text.len))
        return bad("not text", err);
    const char *copy =
        bal_arena_copy(&self.arena, text.len ? text.data : "", text.len);
    if (!copy)
        return bal_fail_memory(err, "a checkpoint");
    int rc = read_lines(&self, (bal_bytes){ copy, text.len }, err);
    if (rc)
        return rc;

    *out = self;
    self = (bal_note){ 0 };
    return 0;
}

void bal_note_done(bal_note *self)
{
    bal_arena_done(&self->arena);
    *self = (bal_note){ 0 };
}

/* ---- checking --------------------------------------------------------------
 */

/* Is it a line of this name and key id, and a signature of the text? */
static int verify_line(const bal_note *self, bal_bytes line, const bal_key *key,
                       bool *good, bal_error *err)
{
    BAL_LOCAL(bal_buf) bytes = { 0 };
    uint8_t id[KEY_ID];
    bal_bytes name;
    bal_bytes coded;
    bool has;

    if (!split_signature(line, &name, &coded) ||
        name.len != strlen(self->origin) ||
        memcmp(name.data, self->origin, name.len))
        return 0;
    int rc = key_id_of(id, self->origin, key, &has, err);
    if (rc || !has)
        return rc;
    rc = read_base64(&bytes, coded, err);
    if (rc)
        return rc;
    if (bytes.len < KEY_ID || memcmp(bytes.data, id, KEY_ID))
        return 0;
    *good = bal_key_verifies(
        key, self->text,
        (bal_bytes){ bytes.data + KEY_ID, bytes.len - KEY_ID });
    return 0;
}

int bal_note_verify(const bal_note *self, const bal_key *key, bool *good,
                    bal_error *err)
{
    bal_bytes rest = self->signatures;
    bal_bytes line;
    int rc = 0;

    *good = false;
    while (!rc && !*good && take_line(&rest, &line))
        rc = verify_line(self, line, key, good, err);
    return rc;
}
