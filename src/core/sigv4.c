/* Three texts: the request in one canonical form, what is signed of it, and the
 * header. Each is made from the one before; the key is derived anew each time,
 * which is four short HMACs. */
#include "core/sigv4.h"

#include <assert.h>
#include <openssl/hmac.h>
#include <string.h>

#include "core/clock.h"
#include "core/crypto.h"
#include "core/error.h"
#include "core/str.h"

static const char algorithm[] = "AWS4-HMAC-SHA256";

enum { DAY = 8 };

void bal_sigv4_date(char out[17], int64_t at)
{
    char text[40];
    size_t len = 0;

    bal_clock_rfc3339(text, at);
    for (size_t i = 0; text[i] && text[i] != '.' && len < 15; i++) {
        if (text[i] != '-' && text[i] != ':')
            out[len++] = text[i];
    }
    memcpy(out + len, "Z", 2);
}

/* ---- encoding ----------------------------------------------------------- */

static bool stays(char c, unsigned flags)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c >= '0' && c <= '9') || strchr("-._~", c) ||
           (c == '/' && flags & BAL_SIGV4_SLASH);
}

int bal_sigv4_encode(bal_buf *to, const char *text, unsigned flags,
                     bal_error *err)
{
    int rc = 0;

    for (; *text && !rc; text++) {
        if (stays(*text, flags))
            rc = bal_buf_append(to, text, 1, err);
        else
            rc = bal_buf_format(to, err, "%%%02X", (unsigned char)*text);
    }
    return rc;
}

/* Texts that are put in order, each in a buffer of its own. */
typedef struct lines {
    bal_buf line[BAL_SIGV4_PAIRS_MAX];
    size_t count;
} lines;

static void lines_done(lines *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_buf_done(&self->line[i]);
}

/* By name and then value: a byte that cannot be in either parts the two. */
static int by_text(const void *a, const void *b)
{
    const bal_buf *one = a, *two = b;

    return strcmp(one->data, two->data);
}

static int too_many(bal_error *err)
{
    return bal_fail(err, BAL_EINVAL, "a request of more than %d parts to sign",
                    BAL_SIGV4_PAIRS_MAX);
}

int bal_sigv4_query(bal_buf *to, const bal_sigv4_pair *query, size_t count,
                    bal_error *err)
{
    BAL_LOCAL(lines) all = { .count = 0 };
    int rc = 0;

    if (count > BAL_SIGV4_PAIRS_MAX)
        return too_many(err);
    for (size_t i = 0; i < count && !rc; i++) {
        bal_buf *line = &all.line[all.count++];
        rc = bal_sigv4_encode(line, query[i].name, 0, err);
        if (!rc)
            rc = bal_buf_text(line, "\x01", err);
        if (!rc)
            rc = bal_sigv4_encode(line, query[i].value, 0, err);
    }
    if (rc)
        return rc;
    qsort(all.line, all.count, sizeof(all.line[0]), by_text);
    for (size_t i = 0; i < all.count && !rc; i++) {
        char *mark = strchr(all.line[i].data, '\x01');
        assert(mark);
        *mark = '=';
        rc = bal_buf_format(to, err, "%s%s", i ? "&" : "", all.line[i].data);
    }
    return rc;
}

/* ---- the request in its canonical form ---------------------------------- */

/* The value without spaces at its ends, and one where there are several. */
static int add_value(bal_buf *to, const char *value, bal_error *err)
{
    bool gap = false;
    int rc = 0;

    value += strspn(value, " ");
    for (; *value && !rc; value++) {
        if (*value == ' ') {
            gap = true;
            continue;
        }
        if (gap)
            rc = bal_buf_text(to, " ", err);
        gap = false;
        if (!rc)
            rc = bal_buf_append(to, value, 1, err);
    }
    return rc;
}

static int sort_headers(lines *all, const bal_sigv4_request *request,
                        bal_error *err)
{
    int rc = 0;

    if (request->header_count > BAL_SIGV4_PAIRS_MAX)
        return too_many(err);
    for (size_t i = 0; i < request->header_count && !rc; i++) {
        bal_buf *line = &all->line[all->count++];
        rc = bal_buf_format(line, err, "%s\x01", request->headers[i].name);
        if (!rc)
            rc = add_value(line, request->headers[i].value, err);
    }
    if (!rc)
        qsort(all->line, all->count, sizeof(all->line[0]), by_text);
    return rc;
}

/* The headers, a line each, and their names in *names. */
static int add_headers(bal_buf *to, bal_buf *names,
                       const bal_sigv4_request *request, bal_error *err)
{
    BAL_LOCAL(lines) all = { .count = 0 };
    int rc = sort_headers(&all, request, err);

    for (size_t i = 0; i < all.count && !rc; i++) {
        char *line = all.line[i].data;
        char *end = strchr(line, '\x01');
        *end = '\0';
        rc = bal_buf_format(names, err, "%s%s", i ? ";" : "", line);
        if (!rc)
            rc = bal_buf_format(to, err, "%s:%s\n", line, end + 1);
    }
    return rc;
}

static int canonical(bal_buf *to, bal_buf *names,
                     const bal_sigv4_request *request, bal_error *err)
{
    int rc =
        bal_buf_format(to, err, "%s\n%s\n", request->method, request->path);
    if (!rc)
        rc = bal_sigv4_query(to, request->query, request->query_count, err);
    if (!rc)
        rc = bal_buf_text(to, "\n", err);
    if (!rc)
        rc = add_headers(to, names, request, err);
    if (rc)
        return rc;
    return bal_buf_format(to, err, "\n%s\n%s", bal_buf_string(names),
                          request->payload);
}

/* ---- signing ------------------------------------------------------------ */

static int hmac(uint8_t out[32], bal_bytes key, const char *text,
                bal_error *err)
{
    unsigned len = 0;

    if (!HMAC(EVP_sha256(), key.data, (int)key.len, (const uint8_t *)text,
              strlen(text), out, &len) ||
        len != 32)
        return bal_fail_crypto(err, "signing a request");
    return 0;
}

/* HMACs in a row, the first by the secret. */
static int derive(uint8_t key[32], const char *secret, const char *const *texts,
                  size_t count, bal_error *err)
{
    BAL_LOCAL(bal_buf) first = { 0 };
    int rc = bal_buf_format(&first, err, "AWS4%s", secret);
    bal_bytes with = { first.data, first.len };

    for (size_t i = 0; i < count && !rc; i++) {
        uint8_t next[32];
        rc = hmac(next, with, texts[i], err);
        memcpy(key, next, sizeof(next));
        with = (bal_bytes){ key, sizeof(next) };
    }
    if (first.data)
        explicit_bzero(first.data, first.len);
    return rc;
}

static int hash_hex(char out[65], const bal_buf *text, bal_error *err)
{
    const bal_bytes part = { text->data, text->len };
    bal_sha256 hash;
    int rc = bal_sha256_of(&hash, &part, 1, err);

    if (!rc)
        bal_sha256_hex(out, &hash);
    return rc;
}

int bal_sigv4_sign(bal_buf *to, const bal_sigv4_keys *keys,
                   const bal_sigv4_scope *scope,
                   const bal_sigv4_request *request, bal_error *err)
{
    BAL_LOCAL(bal_buf) whole = { 0 };
    BAL_LOCAL(bal_buf) names = { 0 };
    BAL_LOCAL(bal_buf) where = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };
    char date[17], day[DAY + 1] = { 0 }, hex[65];
    uint8_t key[32];

    bal_sigv4_date(date, scope->at);
    memcpy(day, date, DAY);
    int rc = canonical(&whole, &names, request, err);
    if (!rc)
        rc = hash_hex(hex, &whole, err);
    if (!rc)
        rc = bal_buf_format(&where, err, "%s/%s/%s/aws4_request", day,
                            scope->region, scope->service);
    if (!rc)
        rc = bal_buf_format(&text, err, "%s\n%s\n%s\n%s", algorithm, date,
                            where.data, hex);
    if (rc)
        return rc;
    const char *const texts[] = { day, scope->region, scope->service,
                                  "aws4_request", text.data };
    rc =
        derive(key, keys->secret, texts, sizeof(texts) / sizeof(texts[0]), err);
    if (rc)
        return rc;
    bal_hex_write(hex, key, sizeof(key));
    hex[64] = '\0';
    return bal_buf_format(
        to, err, "%s Credential=%s/%s,SignedHeaders=%s,Signature=%s", algorithm,
        keys->access, where.data, bal_buf_string(&names), hex);
}
