/* tokenizer and tokenizer_source, taken apart: what they name is found among
 * the models that are merged. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "merge/mergekit_read.h"
#include "merge/vocab.h"

static const bal_mergekit_key keys[] = {
    { "source", NULL },
    { "tokens", NULL },
    { "pad_to_multiple_of", NULL },
    { 0 },
};

static const bal_mergekit_key token_keys[] = {
    { "source", NULL },
    { "force", NULL },
    { 0 },
};

static int set(json_t *to, const char *key, json_t *value, bal_error *err)
{
    if (json_object_set_new(to, key, value))
        return bal_fail_memory(err, "a configuration");
    return 0;
}

/* ---- models ------------------------------------------------------------- */

/* Which of the models a reference is. */
static int find_model(size_t *out, bal_mergekit *self,
                      const bal_yaml_node *node, bal_error *err)
{
    bal_mergekit_model model = { 0 };
    int rc = bal_mergekit_reference(&model, &self->arena, node, err);
    if (rc)
        return rc;

    for (size_t i = 0; i < self->count; i++) {
        *out = i;
        if (!strcmp(self->models[i].name, model.name))
            return 0;
    }
    return bal_yaml_fail(err, BAL_EUNSUPPORTED, node,
                         "model '%s', whose tokens are asked for, is not among "
                         "those that are merged",
                         model.name);
}

static int put_model(json_t *to, const char *key, bal_mergekit *self,
                     const bal_yaml_node *node, bal_error *err)
{
    size_t at = 0;
    int rc = find_model(&at, self, node, err);

    return rc ? rc : set(to, key, json_integer((json_int_t)at), err);
}

/* "union", "base", or a model. */
static int put_source(json_t *to, bal_mergekit *self, const bal_yaml_node *node,
                      bal_error *err)
{
    static const char *const words[] = { "union", "base" };

    if (bal_mergekit_absent(node))
        return set(to, "source", json_string("union"), err);
    for (size_t i = 0; node->text && i < 2; i++) {
        if (!strcmp(node->text, words[i]))
            return set(to, "source", json_string(words[i]), err);
    }
    return put_model(to, "source", self, node, err);
}

/* ---- tokens ------------------------------------------------------------- */

/* {kind: model_token, model, token or token_id}. */
static int put_other(json_t *to, bal_mergekit *self, const bal_yaml_node *node,
                     bal_error *err)
{
    const bal_yaml_node *model = bal_yaml_get(node, "model");
    const bal_yaml_node *token = bal_yaml_get(node, "token");
    const bal_yaml_node *id = bal_yaml_get(node, "token_id");

    if (bal_mergekit_absent(model) ||
        bal_mergekit_absent(token) == bal_mergekit_absent(id))
        return bal_yaml_fail(err, BAL_EINVAL, node,
                             "a model_token is a model and one of token and "
                             "token_id");
    int rc = put_model(to, "input", self, model, err);
    if (rc)
        return rc;
    if (!bal_mergekit_absent(token) && token->text)
        return set(to, "token", json_string(token->text), err);
    if (!bal_mergekit_absent(id) && id->type == BAL_YAML_INT &&
        id->integer >= 0 && id->integer < (int64_t)BAL_VOCAB_TOKENS_MAX)
        return set(to, "token_id", json_integer(id->integer), err);
    return bal_yaml_fail(err, BAL_EINVAL, node, "a token that is none");
}

/* A model; {kind: zero}; {kind: model_token, …}. */
static int put_row(json_t *to, bal_mergekit *self, const bal_yaml_node *node,
                   bal_error *err)
{
    const bal_yaml_node *kind = bal_yaml_get(node, "kind");
    const char *word = kind ? kind->text : NULL;
    json_t *row;

    if (word && !strcmp(word, "zero"))
        return set(to, "source", json_string("zero"), err);
    row = json_object();
    int rc = set(to, "source", row, err);
    if (rc)
        return rc;
    if (!kind)
        return put_model(row, "input", self, node, err);
    if (word && !strcmp(word, "model_token"))
        return put_other(row, self, node, err);
    return bal_yaml_fail(err, BAL_EINVAL, node,
                         "a token's kind is neither zero nor model_token");
}

static int put_token(json_t *tokens, bal_mergekit_reader *self,
                     const char *name, const bal_yaml_node *node,
                     bal_error *err)
{
    const bal_yaml_node *source = bal_yaml_get(node, "source");
    const bal_yaml_node *force = bal_yaml_get(node, "force");
    json_t *token;
    int rc;

    if (!*name)
        return bal_yaml_fail(err, BAL_EINVAL, node, "a token without a name");
    token = json_object();
    rc = set(tokens, name, token, err);
    if (!rc)
        rc = bal_mergekit_keys(self, node, "tokenizer.tokens", token_keys, err);
    if (!rc && !bal_mergekit_absent(source))
        rc = put_row(token, self->to, source, err);
    if (rc || bal_mergekit_absent(force))
        return rc;
    if (force->type != BAL_YAML_BOOL)
        return bal_yaml_fail(err, BAL_EINVAL, force,
                             "'force' is not true or false");
    return force->number != 0 ? set(token, "force", json_true(), err) : 0;
}

static int put_tokens(json_t *to, bal_mergekit_reader *self,
                      const bal_yaml_node *node, bal_error *err)
{
    json_t *tokens;
    int rc;

    if (bal_mergekit_absent(node))
        return 0;
    if (node->type != BAL_YAML_MAP)
        return bal_yaml_fail(err, BAL_EINVAL, node, "'tokens' is not a map");
    tokens = json_object();
    rc = set(to, "tokens", tokens, err);
    for (size_t i = 0; !rc && i < node->count; i++)
        rc = put_token(tokens, self, node->keys[i]->text, node->items[i], err);
    return rc;
}

static int put_multiple(json_t *to, const bal_yaml_node *node, bal_error *err)
{
    if (bal_mergekit_absent(node))
        return 0;
    if (node->type != BAL_YAML_INT || node->integer < 1 ||
        (uint64_t)node->integer > BAL_VOCAB_MULTIPLE_MAX)
        return bal_yaml_fail(err, BAL_EINVAL, node,
                             "'pad_to_multiple_of' is no number of rows");
    return set(to, "pad_to_multiple_of", json_integer(node->integer), err);
}

int bal_mergekit_tokenizer(bal_mergekit_reader *self, bal_error *err)
{
    const bal_yaml_node *source =
        bal_yaml_get(self->document, "tokenizer_source");
    const bal_yaml_node *map = bal_yaml_get(self->document, "tokenizer");
    bool simple = !bal_mergekit_absent(source);

    if (simple && !bal_mergekit_absent(map))
        return bal_yaml_fail(err, BAL_EINVAL, map,
                             "'tokenizer' and 'tokenizer_source'");
    if (!simple && bal_mergekit_absent(map))
        return 0;
    json_t *to = json_object();
    self->to->vocabulary = to;
    if (!to)
        return bal_fail_memory(err, "a configuration");
    if (simple)
        return put_source(to, self->to, source, err);
    int rc = bal_mergekit_keys(self, map, "tokenizer", keys, err);
    if (!rc)
        rc = put_source(to, self->to, bal_yaml_get(map, "source"), err);
    if (!rc)
        rc = put_tokens(to, self, bal_yaml_get(map, "tokens"), err);
    return rc ? rc
              : put_multiple(to, bal_yaml_get(map, "pad_to_multiple_of"), err);
}
