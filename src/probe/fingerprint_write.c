/* The byte form of a fingerprint; fingerprint.h says what it is. */
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/str.h"
#include "probe/fingerprint_inside.h"

typedef struct form {
    const bal_fingerprint *of;
    size_t slots;
    bal_token_words words; /* by their first place in the answers */
    bal_buf numbers;       /* doubles */
    bool narrow;           /* each is a float */
} form;

static void form_done(form *self)
{
    bal_token_words_done(&self->words);
    bal_buf_done(&self->numbers);
}

/* A float that is as large reads back as the same double? -inf does. */
static bool is_narrow(double value)
{
    return (double)(float)value == value; /* NOLINT: exactly */
}

static int gather_said(form *self, const bal_said *said, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < said->top_count && !rc; i++) {
        size_t index;
        bool there;
        double value = said->top[i].logprob;

        self->narrow = self->narrow && is_narrow(value);
        rc = bal_token_words_add(&self->words, said->top[i].token, &index,
                                 &there, err);
        if (!rc)
            rc = bal_buf_append(&self->numbers, &value, sizeof(value), err);
    }
    return rc;
}

static int gather(form *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->slots; i++) {
        const bal_answer *first = &self->of->slots[i].first;

        for (size_t j = 0; j < first->token_count && !rc; j++)
            rc = gather_said(self, &first->tokens[j], err);
    }
    return rc;
}

static void write_said(bal_json *json, const form *self, const bal_said *said)
{
    size_t own = 0;

    while (said->top[own].token != said->token)
        own++;
    bal_json_array(json);
    bal_json_u64(json, own);
    for (size_t i = 0; i < said->top_count; i++) {
        const char *token = said->top[i].token;
        bal_json_u64(json,
                     bal_map_find(&self->words.map, token, strlen(token)));
    }
    bal_json_close(json);
}

static void write_slot(bal_json *json, const form *self, const bal_slot *slot)
{
    if (!slot->count) {
        bal_json_null(json);
        return;
    }
    bal_json_object(json);
    bal_json_key(json, "texts");
    bal_json_array(json);
    for (size_t i = 0; i < slot->count; i++) {
        bal_json_array(json);
        bal_json_string(json, slot->texts[i].text);
        bal_json_u64(json, slot->texts[i].times);
        bal_json_close(json);
    }
    bal_json_close(json);
    bal_json_key(json, "more");
    bal_json_u64(json, slot->more);
    bal_json_key(json, "tokens");
    bal_json_array(json);
    for (size_t i = 0; i < slot->first.token_count; i++)
        write_said(json, self, &slot->first.tokens[i]);
    bal_json_close(json);
    bal_json_close(json);
}

static void write_front(bal_json *json, const form *self)
{
    const bal_fingerprint *of = self->of;
    char hex[BAL_ID_HEX + 1];
    char sum[32];

    bal_id_hex(hex, bal_probes_id(of->probes));
    bal_f64_text(sum, of->noise);
    bal_json_key(json, "schema");
    bal_json_string(json, BAL_FINGERPRINT_SCHEMA);
    bal_json_key(json, "probes");
    bal_json_string(json, hex);
    bal_json_key(json, "about");
    bal_json_raw(json, of->about);
    bal_json_key(json, "noise");
    bal_json_object(json);
    bal_json_key(json, "sum");
    bal_json_string(json, sum);
    bal_json_key(json, "tokens");
    bal_json_u64(json, of->noise_tokens);
    bal_json_close(json);
    bal_json_key(json, "width");
    bal_json_u64(json, self->narrow ? sizeof(float) : sizeof(double));
    bal_json_key(json, "numbers");
    bal_json_u64(json, self->numbers.len / sizeof(double));
}

static int write_text(bal_buf *to, const form *self, bal_error *err)
{
    bal_json json;

    bal_json_begin(&json, to, 0);
    bal_json_object(&json);
    write_front(&json, self);
    bal_json_key(&json, "words");
    bal_json_array(&json);
    for (size_t i = 0; i < self->words.count; i++)
        bal_json_string(&json, self->words.texts[i]);
    bal_json_close(&json);
    bal_json_key(&json, "answers");
    bal_json_array(&json);
    for (size_t i = 0; i < self->slots; i++)
        write_slot(&json, self, &self->of->slots[i]);
    int rc = bal_json_end(&json, err);
    return rc ? rc : bal_buf_text(to, "\n", err);
}

static uint64_t bits_of(const char *at, bool narrow)
{
    uint64_t wide;
    uint32_t bits;
    double value;

    memcpy(&value, at, sizeof(value));
    memcpy(&wide, &value, sizeof(wide));
    float small = (float)value;
    memcpy(&bits, &small, sizeof(bits));
    return narrow ? bits : wide;
}

static int write_planes(bal_buf *to, const form *self, bal_error *err)
{
    size_t width = self->narrow ? sizeof(float) : sizeof(double);
    size_t count = self->numbers.len / sizeof(double);
    int rc = bal_buf_reserve(to, count * width, err);
    if (rc)
        return rc;

    for (size_t i = 0; i < count; i++) {
        const char *at = self->numbers.data + i * sizeof(double);
        uint64_t bits = bits_of(at, self->narrow);

        for (size_t k = 0; k < width; k++)
            to->data[to->len + k * count + i] = (char)(bits >> (8 * k) & 0xff);
    }
    to->len += count * width;
    return 0;
}

int bal_fingerprint_write(bal_buf *to, const bal_fingerprint *self,
                          bal_error *err)
{
    BAL_LOCAL(form) all = { .of = self, .narrow = true };
    BAL_LOCAL(bal_buf) content = { .ceiling = BAL_FINGERPRINT_MAX };

    all.slots = bal_probes_count(self->probes);
    int rc = gather(&all, err);
    if (!rc)
        rc = write_text(&content, &all, err);
    if (!rc)
        rc = write_planes(&content, &all, err);
    if (rc)
        return bal_within(err, rc, "fingerprint");
    return bal_pack(to, (bal_bytes){ content.data, content.len }, err);
}
