/* What a model answered, probe by probe. */
#include "probe/fingerprint.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/str.h"
#include "probe/compare.h"
#include "probe/fingerprint_inside.h"

static int read_object(json_t **out, const char *json, const char *what,
                       size_t most, bal_error *err)
{
    BAL_OWN(json_t) value = NULL;
    size_t len = json ? strlen(json) : 0;

    if (len > most)
        return bal_fail(err, BAL_EINVAL, "%s of more than %zu bytes", what,
                        most);
    int rc = bal_json_parse(&value, json ? json : "", len, what, err);
    if (rc == BAL_ECORRUPT && err)
        err->code = BAL_EINVAL;
    if (rc)
        return rc == BAL_ECORRUPT ? BAL_EINVAL : rc;
    if (!json_is_object(value))
        return bal_fail(err, BAL_EINVAL, "%s: not a json object", what);
    *out = BAL_TAKE(value);
    return 0;
}

/* Terms are compared as texts, so they have one. */
static int read_terms(char **out, const char *terms, bal_error *err)
{
    BAL_OWN(json_t) value = NULL;
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc = read_object(&value, terms, "terms", BAL_TERMS_MAX, err);
    if (rc)
        return rc;
    rc = bal_json_canonical(&text, value, err);
    if (rc)
        return bal_within(err, rc, "terms");

    *out = bal_str_copy(bal_buf_string(&text));
    return *out ? 0 : bal_fail_memory(err, "terms");
}

int bal_fingerprint_new(bal_fingerprint **out, bal_probes *probes,
                        const char *terms, bal_error *err)
{
    size_t count = bal_probes_count(probes);
    BAL_OWN(bal_fingerprint) self = calloc(1, sizeof(*self));

    if (!self)
        return bal_fail_memory(err, "a fingerprint");
    self->probes = bal_probes_ref(probes);
    self->arena.ceiling = BAL_FINGERPRINT_MAX;
    self->slots = calloc(count ? count : 1, sizeof(*self->slots));
    self->about = bal_str_copy("{}");
    if (!self->slots || !self->about)
        return bal_fail_memory(err, "a fingerprint");
    int rc = read_terms(&self->terms, terms, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

void bal_fingerprint_free(bal_fingerprint *self)
{
    if (!self)
        return;
    bal_probes_free(self->probes);
    bal_str_free(self->terms);
    bal_str_free(self->about);
    free(self->slots);
    bal_token_words_done(&self->words);
    bal_arena_done(&self->arena);
    free(self);
}

int bal_fingerprint_about(bal_fingerprint *self, const char *json,
                          bal_error *err)
{
    BAL_OWN(json_t) value = NULL;
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_json writer;
    int rc = read_object(&value, json, "about", BAL_ABOUT_MAX, err);
    if (rc)
        return rc;

    /* The same tokens without white space: numbers stay as they are written. */
    bal_json_begin(&writer, &text, 0);
    bal_json_raw(&writer, json);
    rc = bal_json_end(&writer, err);
    if (rc)
        return rc;
    char *about = bal_str_copy(bal_buf_string(&text));
    if (!about)
        return bal_fail_memory(err, "about");
    bal_str_free(self->about);
    self->about = about;
    return 0;
}

/* ---- adding -------------------------------------------------------------- */

/* More than what a copy of it takes of an arena. */
static size_t size_of(const bal_answer *answer)
{
    size_t size = 4096 + strlen(answer->output) +
                  BAL_TEXTS_MAX * sizeof(bal_told) +
                  answer->token_count * sizeof(bal_said);

    for (size_t i = 0; i < answer->token_count; i++) {
        const bal_said *said = &answer->tokens[i];
        size += 64 + strlen(said->token) +
                (said->top_count + 1) * sizeof(bal_likely);
        for (size_t j = 0; j < said->top_count; j++)
            size += 32 + strlen(said->top[j].token);
    }
    return size;
}

static int add_first(bal_fingerprint *self, bal_slot *slot,
                     const bal_answer *answer, bal_error *err)
{
    bal_answer kept = { 0 };
    bal_told *texts = bal_arena_alloc(&self->arena, sizeof(*texts));
    char *output =
        bal_arena_copy(&self->arena, answer->output, strlen(answer->output));

    if (!texts || !output)
        return bal_fail_memory(err, "an answer");
    int rc = bal_answer_keep(&kept, &self->arena, &self->words, answer, err);
    if (rc)
        return rc;
    kept.output = output;
    *texts = (bal_told){ output, 1 };
    *slot = (bal_slot){ .first = kept, .texts = texts, .count = 1 };
    self->answered++;
    return 0;
}

static bal_told *find_text(const bal_slot *slot, const char *text)
{
    for (size_t i = 0; i < slot->count; i++) {
        if (!strcmp(slot->texts[i].text, text))
            return &slot->texts[i];
    }
    return NULL;
}

/* The second text makes the room for all that may come. */
static int add_text(bal_fingerprint *self, bal_slot *slot, const char *text,
                    bal_error *err)
{
    if (slot->count == BAL_TEXTS_MAX) {
        slot->more++;
        return 0;
    }
    bal_told *texts = slot->texts;
    if (slot->count == 1)
        texts = bal_arena_alloc(&self->arena, BAL_TEXTS_MAX * sizeof(*texts));
    const char *copy = bal_arena_copy(&self->arena, text, strlen(text));
    if (!texts || !copy)
        return bal_fail_memory(err, "an answer");
    texts[0] = slot->texts[0];
    texts[slot->count++] = (bal_told){ copy, 1 };
    slot->texts = texts;
    return 0;
}

/* How far an answer to the same question is from the first. */
static int measure_noise(const bal_slot *slot, const bal_answer *answer,
                         double *sum, uint64_t *tokens, bal_error *err)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    BAL_LOCAL(bal_token_words) words = { 0 };
    bal_answer again = { 0 };
    size_t compared;
    int rc = bal_answer_keep(&again, &arena, &words, answer, err);
    if (rc)
        return rc;

    *sum = 0;
    bal_answer_common(&slot->first, &again, &compared);
    for (size_t i = 0; i < compared; i++)
        *sum += bal_kld(&slot->first.tokens[i], &again.tokens[i]);
    *tokens = compared;
    return 0;
}

static int add_again(bal_fingerprint *self, bal_slot *slot,
                     const bal_answer *answer, bal_error *err)
{
    bal_told *told = find_text(slot, answer->output);
    double sum;
    uint64_t tokens;
    int rc = measure_noise(slot, answer, &sum, &tokens, err);
    if (!rc && !told)
        rc = add_text(self, slot, answer->output, err);
    if (rc)
        return rc;

    if (told)
        told->times++;
    self->noise += sum;
    self->noise_tokens += tokens;
    return 0;
}

int bal_fingerprint_add(bal_fingerprint *self, size_t i,
                        const bal_answer *answer, bal_error *err)
{
    if (i >= bal_probes_count(self->probes))
        return bal_fail(err, BAL_EINVAL, "there is no probe %zu", i);
    bal_slot *slot = &self->slots[i];
    const char *id = bal_probes_at(self->probes, i)->id;
    int rc = bal_answer_check(answer, err);
    if (rc)
        return bal_within(err, rc, "probe '%s'", id);

    size_t size = size_of(answer);
    if (size > BAL_FINGERPRINT_MAX ||
        self->arena.used > BAL_FINGERPRINT_MAX - size)
        return bal_fail(err, BAL_EINVAL,
                        "probe '%s': all answers have more than %zu bytes", id,
                        BAL_FINGERPRINT_MAX);
    return slot->count ? add_again(self, slot, answer, err)
                       : add_first(self, slot, answer, err);
}

/* ---- looking ------------------------------------------------------------- */

const bal_probes *bal_fingerprint_probes(const bal_fingerprint *self)
{
    return self->probes;
}

const char *bal_fingerprint_terms(const bal_fingerprint *self)
{
    return self->terms;
}

const char *bal_fingerprint_facts(const bal_fingerprint *self)
{
    return self->about;
}

const bal_answer *bal_fingerprint_at(const bal_fingerprint *self, size_t i)
{
    bool there = i < bal_probes_count(self->probes) && self->slots[i].count;

    return there ? &self->slots[i].first : NULL;
}

size_t bal_fingerprint_distinct(const bal_fingerprint *self, size_t i)
{
    return i < bal_probes_count(self->probes) ? self->slots[i].count : 0;
}

size_t bal_fingerprint_count(const bal_fingerprint *self)
{
    return self->answered;
}

const char *bal_fingerprint_text(const bal_fingerprint *self, size_t i,
                                 size_t which, uint64_t *times)
{
    const bal_told *told = &self->slots[i].texts[which];

    if (times)
        *times = told->times;
    return told->text;
}

double bal_fingerprint_noise(const bal_fingerprint *self, uint64_t *tokens)
{
    *tokens = self->noise_tokens;
    return self->noise;
}
