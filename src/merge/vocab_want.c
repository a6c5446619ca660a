/* What is asked for, out of a recipe and back into it. Recipes come out of
 * databases that others wrote, so every key and index is looked at. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "merge/vocab.h"

static const char what[] = "a vocabulary";

static const char *const top_keys[] = { "source", "pad_to_multiple_of",
                                        "tokens", NULL };
static const char *const token_keys[] = { "source", "force", NULL };
static const char *const source_keys[] = { "input", "token", "token_id", NULL };

typedef struct parsing {
    bal_vocab_want *want;
    size_t inputs;
} parsing;

static int bad(const char *why, const char *name, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "%s %s '%.200s'", what, why, name);
}

static bool known(const char *const *keys, const char *key)
{
    while (*keys && strcmp(*keys, key) != 0)
        keys++;
    return *keys != NULL;
}

static int check_keys(const json_t *object, const char *const *keys,
                      bal_error *err)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return bal_fail(err, BAL_ECORRUPT, "%s that is no object", what);
    json_object_foreach((json_t *)object, key, value)
    {
        if (!known(keys, key))
            return bad("with an unknown", key, err);
    }
    return 0;
}

static int read_number(uint64_t *out, const json_t *value, uint64_t low,
                       uint64_t high, const char *name, bal_error *err)
{
    json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || (uint64_t)number < low ||
        (uint64_t)number > high)
        return bad("without a fitting number for", name, err);
    *out = (uint64_t)number;
    return 0;
}

static int read_input(size_t *out, const parsing *self, const json_t *value,
                      bal_error *err)
{
    uint64_t input = 0;

    if (!self->inputs)
        return bad("of no inputs, with an", "input", err);
    int rc = read_number(&input, value, 0, self->inputs - 1, "input", err);
    *out = (size_t)input;
    return rc;
}

static int keep(const char **out, parsing *self, const char *text,
                bal_error *err)
{
    *out = bal_arena_copy(&self->want->arena, text, strlen(text));
    return *out ? 0 : bal_fail_memory(err, what);
}

/* ---- one token ----------------------------------------------------------- */

static int read_other(bal_vocab_token *out, parsing *self, const json_t *other,
                      bal_error *err)
{
    const char *text = json_string_value(other);

    if (!text)
        return bad("without a text for", "token", err);
    out->source = BAL_ROW_TOKEN;
    return keep(&out->other, self, text, err);
}

static int read_row_source(bal_vocab_token *out, parsing *self,
                           const json_t *source, bal_error *err)
{
    const char *word = json_string_value(source);

    if (word && !strcmp(word, "zero")) {
        out->source = BAL_ROW_ZERO;
        return 0;
    }
    int rc = check_keys(source, source_keys, err);
    if (!rc)
        rc = read_input(&out->input, self, json_object_get(source, "input"),
                        err);
    if (rc)
        return rc;
    const json_t *other = json_object_get(source, "token");
    const json_t *id = json_object_get(source, "token_id");
    if (other && id)
        return bad("with both 'token' and", "token_id", err);
    if (other)
        return read_other(out, self, other, err);
    out->source = id ? BAL_ROW_ID : BAL_ROW_INPUT;
    return id ? read_number(&out->id, id, 0, UINT32_MAX - 1, "token_id", err)
              : 0;
}

static int read_token(bal_vocab_token *out, parsing *self, const char *token,
                      const json_t *json, bal_error *err)
{
    const json_t *source = json_object_get(json, "source");
    const json_t *force = json_object_get(json, "force");
    int rc = check_keys(json, token_keys, err);

    if (!rc && !*token)
        rc = bad("with an empty", "token", err);
    if (!rc && force && !json_is_boolean(force))
        rc = bad("without true or false for", "force", err);
    if (!rc)
        rc = keep(&out->token, self, token, err);
    out->force = json_is_true(force);
    if (rc || !source)
        return rc;
    return read_row_source(out, self, source, err);
}

static int by_token(const void *a, const void *b)
{
    const bal_vocab_token *left = a;
    const bal_vocab_token *right = b;

    return strcmp(left->token, right->token);
}

static int read_tokens(parsing *self, const json_t *json, bal_error *err)
{
    bal_vocab_want *want = self->want;
    size_t count = json_object_size(json);
    const char *token;
    json_t *value;

    if (!json_is_object(json) || count > BAL_VOCAB_TOKENS_MAX)
        return bad("without an object, or too large a one, for", "tokens", err);
    want->tokens =
        bal_arena_alloc(&want->arena, (count + 1) * sizeof(*want->tokens));
    if (!want->tokens)
        return bal_fail_memory(err, what);
    json_object_foreach((json_t *)json, token, value)
    {
        int rc =
            read_token(&want->tokens[want->count], self, token, value, err);
        if (rc)
            return bal_within(err, rc, "token '%.200s'", token);
        want->count++;
    }
    qsort(want->tokens, want->count, sizeof(*want->tokens), by_token);
    return 0;
}

/* ---- all ----------------------------------------------------------------- */

static int read_source(parsing *self, const json_t *json, bal_error *err)
{
    const char *word = json_string_value(json);

    self->want->source = BAL_VOCAB_INPUT;
    if (word && !strcmp(word, "union"))
        self->want->source = BAL_VOCAB_UNION;
    else if (word && !strcmp(word, "base"))
        self->want->source = BAL_VOCAB_BASE;
    else
        return read_input(&self->want->input, self, json, err);
    return 0;
}

static int read_all(parsing *self, const json_t *json, bal_error *err)
{
    const json_t *multiple = json_object_get(json, "pad_to_multiple_of");
    const json_t *tokens = json_object_get(json, "tokens");
    int rc = check_keys(json, top_keys, err);

    if (!rc)
        rc = read_source(self, json_object_get(json, "source"), err);
    if (!rc && multiple)
        rc = read_number(&self->want->multiple, multiple, 1,
                         BAL_VOCAB_MULTIPLE_MAX, "pad_to_multiple_of", err);
    if (!rc && tokens)
        rc = read_tokens(self, tokens, err);
    return rc;
}

int bal_vocab_want_parse(bal_vocab_want *out, const json_t *json, size_t inputs,
                         bal_error *err)
{
    BAL_LOCAL(bal_vocab_want) want = { 0 };
    parsing self = { &want, inputs };
    int rc = read_all(&self, json, err);
    if (rc)
        return rc;

    *out = want;
    want = (bal_vocab_want){ 0 };
    return 0;
}

void bal_vocab_want_done(bal_vocab_want *self)
{
    bal_arena_done(&self->arena);
    *self = (bal_vocab_want){ 0 };
}

/* ---- and back ------------------------------------------------------------ */

static int put(json_t *to, const char *key, json_t *value, bal_error *err)
{
    if (json_object_set_new(to, key, value))
        return bal_fail_memory(err, what);
    return 0;
}

static int put_number(json_t *to, const char *key, uint64_t value,
                      bal_error *err)
{
    return put(to, key, json_integer((json_int_t)value), err);
}

static int put_row_source(json_t *to, const bal_vocab_token *token,
                          bal_error *err)
{
    if (token->source == BAL_ROW_NONE)
        return 0;
    if (token->source == BAL_ROW_ZERO)
        return put(to, "source", json_string("zero"), err);
    json_t *source = json_object();
    int rc = put(to, "source", source, err);
    if (!rc)
        rc = put_number(source, "input", token->input, err);
    if (!rc && token->source == BAL_ROW_TOKEN)
        rc = put(source, "token", json_string(token->other), err);
    if (!rc && token->source == BAL_ROW_ID)
        rc = put_number(source, "token_id", token->id, err);
    return rc;
}

static int put_tokens(json_t *to, const bal_vocab_want *self, bal_error *err)
{
    json_t *tokens = json_object();
    int rc = put(to, "tokens", tokens, err);

    for (size_t i = 0; !rc && i < self->count; i++) {
        json_t *token = json_object();
        rc = put(tokens, self->tokens[i].token, token, err);
        if (!rc)
            rc = put_row_source(token, &self->tokens[i], err);
        if (!rc && self->tokens[i].force)
            rc = put(token, "force", json_true(), err);
    }
    return rc;
}

static json_t *source_json(const bal_vocab_want *self)
{
    if (self->source == BAL_VOCAB_INPUT)
        return json_integer((json_int_t)self->input);
    return json_string(self->source == BAL_VOCAB_BASE ? "base" : "union");
}

int bal_vocab_want_json(json_t **out, const bal_vocab_want *self,
                        bal_error *err)
{
    BAL_OWN(json_t) json = json_object();
    if (!json)
        return bal_fail_memory(err, what);
    int rc = put(json, "source", source_json(self), err);

    if (!rc && self->multiple)
        rc = put_number(json, "pad_to_multiple_of", self->multiple, err);
    if (!rc && self->count)
        rc = put_tokens(json, self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(json);
    return 0;
}
