/* The byte form of a fingerprint, from anywhere; fingerprint.h says what it is.
 * Every index, count and order is checked, so that what comes out is what
 * bal_fingerprint_add could have made. */
#include <math.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/json.h"
#include "core/str.h"
#include "probe/fingerprint_inside.h"

typedef struct reader {
    bal_scan scan;
    bal_fingerprint *self;
    const uint8_t *planes;
    size_t width;
    size_t numbers;
    size_t next; /* the number that is next */
} reader;

static int bad(const char *why, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "fingerprint: %s", why);
}

/* ---- pieces -------------------------------------------------------------- */

/* Members stand in one order. */
static int expect_key(reader *self, const char *name, bool first,
                      bal_error *err)
{
    const char *key;
    size_t len;
    bool more = first;
    int rc = first ? 0 : bal_scan_more(&self->scan, '}', false, &more, err);

    if (!rc && !more)
        return bal_fail(err, BAL_ECORRUPT, "fingerprint: no '%s'", name);
    if (!rc)
        rc = bal_scan_key(&self->scan, &key, &len, err);
    if (rc)
        return rc;
    if (len != strlen(name) || memcmp(key, name, len) != 0)
        return bal_fail(err, BAL_ECORRUPT,
                        "fingerprint: '%s' where '%s' belongs", key, name);
    return 0;
}

static int expect_close(reader *self, char closing, bool first, bal_error *err)
{
    bool more;
    int rc = bal_scan_more(&self->scan, closing, first, &more, err);

    if (!rc && more)
        return bad("a list or object that is too long", err);
    return rc;
}

static int read_string(reader *self, const char **out, size_t most,
                       bal_error *err)
{
    size_t len;
    int rc = bal_scan_string(&self->scan, out, &len, err);

    if (!rc && (len > most || strlen(*out) != len))
        return bad("a text that is too long, or holds a nul", err);
    return rc;
}

static int expect_string(reader *self, const char *want, bal_error *err)
{
    const char *text;
    int rc = read_string(self, &text, BAL_TERMS_MAX, err);

    if (!rc && strcmp(text, want) != 0)
        return bal_fail(err, BAL_ECORRUPT,
                        "fingerprint: '%s' where '%s' belongs", text, want);
    return rc;
}

/* ---- what stands in front ------------------------------------------------ */

static int read_about(reader *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) about = { .ceiling = BAL_ABOUT_MAX };

    bal_scan_peek(&self->scan);
    size_t from = self->scan.at;
    int rc = bal_scan_skip(&self->scan, 64, err);
    if (rc)
        return rc;
    rc = bal_buf_append(&about, self->scan.data + from, self->scan.at - from,
                        err);
    if (!rc)
        rc = bal_fingerprint_about(self->self, about.data, err);
    return rc == BAL_EINVAL ? bad("'about' is not what it may be", err) : rc;
}

static int read_noise(reader *self, bal_error *err)
{
    bal_fingerprint *of = self->self;
    const char *sum = NULL;
    int rc = bal_scan_open(&self->scan, '{', err);
    if (!rc)
        rc = expect_key(self, "sum", true, err);
    if (!rc)
        rc = read_string(self, &sum, 32, err);
    if (!rc)
        rc = expect_key(self, "tokens", false, err);
    if (!rc)
        rc = bal_scan_u64(&self->scan, &of->noise_tokens, err);
    if (!rc)
        rc = expect_close(self, '}', false, err);
    if (rc)
        return rc;
    rc = bal_parse_f64(&of->noise, sum, err);
    if (rc == BAL_ENOMEM)
        return rc;
    if (rc || of->noise < 0 || (!of->noise_tokens && of->noise > 0))
        return bad("the noise is no number", err);
    return 0;
}

/* The planes are all that is behind the text. */
static int read_sizes(reader *self, size_t behind, bal_error *err)
{
    uint64_t width = 0;
    uint64_t numbers = 0;
    uint64_t bytes;
    int rc = expect_key(self, "width", false, err);
    if (!rc)
        rc = bal_scan_u64(&self->scan, &width, err);
    if (!rc)
        rc = expect_key(self, "numbers", false, err);
    if (!rc)
        rc = bal_scan_u64(&self->scan, &numbers, err);
    if (rc)
        return rc;

    if (width != sizeof(float) && width != sizeof(double))
        return bad("the width is neither 4 nor 8", err);
    if (!bal_mul(&bytes, numbers, width) || bytes != behind)
        return bad("another count of numbers", err);
    self->width = (size_t)width;
    self->numbers = (size_t)numbers;
    return 0;
}

static int read_front(reader *self, size_t behind, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, bal_probes_id(self->self->probes));
    int rc = bal_scan_open(&self->scan, '{', err);
    if (!rc)
        rc = expect_key(self, "schema", true, err);
    if (!rc)
        rc = expect_string(self, BAL_FINGERPRINT_SCHEMA, err);
    if (!rc)
        rc = expect_key(self, "probes", false, err);
    if (!rc)
        rc = expect_string(self, hex, err);
    if (!rc)
        rc = expect_key(self, "about", false, err);
    if (!rc)
        rc = read_about(self, err);
    if (!rc)
        rc = expect_key(self, "noise", false, err);
    if (!rc)
        rc = read_noise(self, err);
    return rc ? rc : read_sizes(self, behind, err);
}

static int read_words(reader *self, bal_error *err)
{
    bool more = false;
    int rc = expect_key(self, "words", false, err);
    if (!rc)
        rc = bal_scan_open(&self->scan, '[', err);

    for (bool first = true; !rc; first = false) {
        const char *word;
        size_t index;
        bool there = false;

        rc = bal_scan_more(&self->scan, ']', first, &more, err);
        if (rc || !more)
            break;
        rc = read_string(self, &word, SIZE_MAX, err);
        if (!rc)
            rc = bal_token_words_add(&self->self->words, word, &index, &there,
                                     err);
        if (!rc && there)
            rc = bad("a word that is there twice", err);
    }
    return rc;
}

/* ---- answers ------------------------------------------------------------- */

static double number_at(const reader *self, size_t i)
{
    uint64_t wide = 0;
    double value;
    float small;

    for (size_t k = 0; k < self->width; k++)
        wide |= (uint64_t)self->planes[k * self->numbers + i] << (8 * k);
    uint32_t narrow = (uint32_t)wide;
    memcpy(&value, &wide, sizeof(value));
    memcpy(&small, &narrow, sizeof(small));
    return self->width == sizeof(float) ? (double)small : value;
}

/* The next number belongs to this word. */
static int read_likely(reader *self, bal_likely *out, uint64_t index,
                       bal_error *err)
{
    const bal_token_words *words = &self->self->words;

    if (index >= words->count || self->next >= self->numbers)
        return bad("a word or number that is not there", err);
    double value = number_at(self, self->next++);
    if (!(value <= 0) || (value >= 0 && signbit(value)))
        return bad("a number that is no log-probability", err);
    *out = (bal_likely){ words->texts[index], value };
    return 0;
}

/* Words are held once, so that the same text is the same pointer. */
static int check_list(const bal_likely *list, size_t count, bal_error *err)
{
    for (size_t i = 1; i < count; i++) {
        if (bal_likely_compare(&list[i - 1], &list[i]) >= 0)
            return bad("likely tokens that are not in order", err);
    }
    for (size_t i = 1; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (list[i].token == list[j].token)
                return bad("a likely token that is there twice", err);
        }
    }
    return 0;
}

/* As many as may be in a list; how many there are. */
static int read_list(reader *self, bal_likely *list, size_t *count,
                     bal_error *err)
{
    bool more = false;
    int rc = bal_scan_more(&self->scan, ']', false, &more, err);

    for (*count = 0; !rc && more; ++*count) {
        uint64_t index;
        if (*count > BAL_TOP_MAX)
            return bad("too many likely tokens", err);
        rc = bal_scan_u64(&self->scan, &index, err);
        if (!rc)
            rc = read_likely(self, &list[*count], index, err);
        if (!rc)
            rc = bal_scan_more(&self->scan, ']', false, &more, err);
    }
    return rc;
}

static int read_said(reader *self, bal_said *out, bal_error *err)
{
    bal_likely list[BAL_TOP_MAX + 1];
    uint64_t own;
    size_t count = 0;
    int rc = bal_scan_open(&self->scan, '[', err);
    if (!rc)
        rc = bal_scan_u64(&self->scan, &own, err);
    if (!rc)
        rc = read_list(self, list, &count, err);
    if (!rc)
        rc = check_list(list, count, err);
    if (rc)
        return rc;

    if (own >= count || (count > BAL_TOP_MAX && own != BAL_TOP_MAX))
        return bad("a token that came and is not in its list", err);
    bal_likely *top = bal_arena_alloc(&self->self->arena, count * sizeof(*top));
    if (!top)
        return bal_fail_memory(err, "a fingerprint");
    memcpy(top, list, count * sizeof(*top));
    *out = (bal_said){ top[own].token, top[own].logprob, top, count };
    return 0;
}

static int read_tokens(reader *self, bal_answer *out, bal_error *err)
{
    BAL_LOCAL(bal_buf) said = { .ceiling = BAL_SAID_MAX * sizeof(bal_said) };
    bool more = false;
    int rc = bal_scan_open(&self->scan, '[', err);

    for (bool first = true; !rc; first = false) {
        bal_said one;
        rc = bal_scan_more(&self->scan, ']', first, &more, err);
        if (rc || !more)
            break;
        if (said.len == said.ceiling)
            return bad("too many tokens", err);
        rc = read_said(self, &one, err);
        if (!rc)
            rc = bal_buf_append(&said, &one, sizeof(one), err);
    }
    if (rc)
        return rc;
    bal_said *tokens = bal_arena_alloc(&self->self->arena, said.len);
    if (!tokens)
        return bal_fail_memory(err, "a fingerprint");
    if (said.len)
        memcpy(tokens, said.data, said.len);
    out->tokens = tokens;
    out->token_count = said.len / sizeof(*tokens);
    return 0;
}

static int read_told(reader *self, bal_told *out, bal_error *err)
{
    int rc = bal_scan_open(&self->scan, '[', err);
    bool more = false;

    if (!rc)
        rc = read_string(self, &out->text, BAL_ANSWER_MAX, err);
    if (!rc)
        rc = bal_scan_more(&self->scan, ']', false, &more, err);
    if (!rc && !more)
        return bad("a text without its count", err);
    if (!rc)
        rc = bal_scan_u64(&self->scan, &out->times, err);
    if (!rc)
        rc = expect_close(self, ']', false, err);
    if (!rc && !out->times)
        return bad("a text that never came", err);
    return rc;
}

static bool is_told(const bal_told *texts, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(texts[i].text, text))
            return true;
    }
    return false;
}

static int read_texts(reader *self, bal_slot *slot, bal_error *err)
{
    bal_told texts[BAL_TEXTS_MAX];
    bool more = false;
    size_t count = 0;
    int rc = bal_scan_open(&self->scan, '[', err);

    if (!rc)
        rc = bal_scan_more(&self->scan, ']', true, &more, err);
    for (; !rc && more; count++) {
        if (count == BAL_TEXTS_MAX)
            return bad("too many texts of one probe", err);
        rc = read_told(self, &texts[count], err);
        if (!rc && is_told(texts, count, texts[count].text))
            return bad("a text that is there twice", err);
        if (!rc)
            rc = bal_scan_more(&self->scan, ']', false, &more, err);
    }
    if (rc)
        return rc;
    if (!count)
        return bad("an answer without a text", err);
    /* bal_fingerprint_add makes room for all with the second. */
    size_t room = count > 1 ? BAL_TEXTS_MAX : 1;
    slot->texts = bal_arena_alloc(&self->self->arena, room * sizeof(*texts));
    if (!slot->texts)
        return bal_fail_memory(err, "a fingerprint");
    memcpy(slot->texts, texts, count * sizeof(*texts));
    slot->count = count;
    slot->first.output = texts[0].text;
    return 0;
}

static int read_slot(reader *self, bal_slot *slot, bal_error *err)
{
    if (bal_scan_peek(&self->scan) == 'n')
        return bal_scan_skip(&self->scan, 1, err);

    int rc = bal_scan_open(&self->scan, '{', err);
    if (!rc)
        rc = expect_key(self, "texts", true, err);
    if (!rc)
        rc = read_texts(self, slot, err);
    if (!rc)
        rc = expect_key(self, "more", false, err);
    if (!rc)
        rc = bal_scan_u64(&self->scan, &slot->more, err);
    if (!rc)
        rc = expect_key(self, "tokens", false, err);
    if (!rc)
        rc = read_tokens(self, &slot->first, err);
    if (!rc)
        rc = expect_close(self, '}', false, err);
    if (!rc && slot->more && slot->count < BAL_TEXTS_MAX)
        return bad("texts that could have been kept", err);
    if (!rc)
        self->self->answered++;
    return rc;
}

static int read_answers(reader *self, bal_error *err)
{
    size_t count = bal_probes_count(self->self->probes);
    int rc = expect_key(self, "answers", false, err);
    if (!rc)
        rc = bal_scan_open(&self->scan, '[', err);

    for (size_t i = 0; i < count && !rc; i++) {
        bool more = false;
        rc = bal_scan_more(&self->scan, ']', !i, &more, err);
        if (!rc && !more)
            return bad("fewer answers than probes", err);
        if (!rc)
            rc = read_slot(self, &self->self->slots[i], err);
    }
    if (!rc)
        rc = expect_close(self, ']', !count, err);
    if (!rc)
        rc = expect_close(self, '}', false, err);
    if (!rc && self->next != self->numbers)
        return bad("numbers that belong to nothing", err);
    return rc;
}

static int read_content(reader *self, const bal_buf *content, bal_error *err)
{
    const char *end =
        content->len ? memchr(content->data, '\n', content->len) : NULL;

    if (!end)
        return bad("no line of json", err);
    size_t len = (size_t)(end - content->data);
    self->planes = (const uint8_t *)end + 1;
    self->scan = (bal_scan){
        .data = content->data,
        .len = len,
        .arena = &self->self->arena,
        .what = "fingerprint",
    };
    int rc = read_front(self, content->len - len - 1, err);
    if (!rc)
        rc = read_words(self, err);
    if (!rc)
        rc = read_answers(self, err);
    return rc ? rc : bal_scan_end(&self->scan, err);
}

int bal_fingerprint_parse(bal_fingerprint **out, bal_probes *probes,
                          bal_bytes body, const char *terms, bal_error *err)
{
    BAL_LOCAL(bal_buf) content = { .ceiling = BAL_FINGERPRINT_MAX };
    BAL_OWN(bal_fingerprint) self = NULL;
    int rc = bal_fingerprint_new(&self, probes, terms, err);
    if (rc)
        return rc == BAL_EINVAL ? bad("its terms are not what they may be", err)
                                : rc;
    rc = bal_unpack(&content, body, BAL_FINGERPRINT_MAX, err);
    if (rc)
        return bal_within(err, rc, "fingerprint");

    reader from = { .self = self };
    rc = read_content(&from, &content, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}
