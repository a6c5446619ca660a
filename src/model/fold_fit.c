/* An adapter that is folded onto the wrong weights gives a model that loads and
 * talks nonsense, so what cannot be told for certain is refused by name. */
#include "model/fold_fit.h"

#include <string.h>

#include "core/error.h"
#include "core/json.h"

enum { CONFIG_MAX = 16 << 20 };

/* Model classes of transformers whose attention and MLP weights are Conv1D:
 * stored [in, out]. Shapes cannot tell it where a weight is square, and the
 * adapter's fan_in_fan_out is not to be believed: PEFT rewrites that one flag
 * to suit the last module that it visited. */
static const char *const conv1d_types[] = {
    "gpt2", "openai-gpt", "imagegpt", "decision_transformer", "clvp",
};

/* The names of those modules. */
static const char *const conv1d_names[] = {
    "c_attn",
    "c_proj",
    "c_fc",
    "q_attn",
};

/* Model classes that multiply by a stack of experts as it lies, [in, out]. */
static const char *const turned_stacks[] = {
    "gpt_oss",
    "llama4",
    "llama4_text",
};

/* What the part of a model without its head is called. */
static const char *const bodies[] = { "model.", "transformer." };

/* Names under which models keep the embedding and the head that may be one. */
static const char *const vocabulary_names[] = {
    "embed_tokens", "lm_head",         "wte",    "embed_in",
    "embed_out",    "word_embeddings", "output", "tok_embeddings",
};

/* Which head is which embedding where both are one. */
static const struct {
    const char *embedding, *head;
} ties[] = {
    { "model.embed_tokens.weight", "lm_head.weight" },
    { "embed_tokens.weight", "lm_head.weight" },
    { "model.language_model.embed_tokens.weight", "lm_head.weight" },
    { "language_model.model.embed_tokens.weight",
      "language_model.lm_head.weight" },
    { "model.decoder.embed_tokens.weight", "lm_head.weight" },
    { "transformer.wte.weight", "lm_head.weight" },
    { "wte.weight", "lm_head.weight" },
    { "transformer.word_embeddings.weight", "lm_head.weight" },
    { "word_embeddings.weight", "lm_head.weight" },
    { "gpt_neox.embed_in.weight", "embed_out.weight" },
    { "model.tok_embeddings.weight", "output.weight" },
};

static bool listed(const char *text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(text, names[i]))
            return true;
    }
    return false;
}

static const char *last_of(const char *module)
{
    const char *dot = strrchr(module, '.');

    return dot ? dot + 1 : module;
}

/* ---- the model's config ------------------------------------------------- */

static int read_config(json_t **out, bal_model *base, bal_error *err)
{
    size_t i = bal_model_find(base, BAL_PART_FILE, "config.json");
    BAL_LOCAL(bal_buf) text = { .ceiling = CONFIG_MAX };

    if (i == BAL_NONE)
        return 0;
    uint64_t size = bal_model_at(base, i)->size;
    int rc = size > CONFIG_MAX
                 ? bal_fail(err, BAL_ECORRUPT, "config.json is over 16 MiB")
                 : bal_buf_reserve(&text, size, err);
    if (rc)
        return rc;
    rc = bal_model_read(base, i, 0, text.data, size, err);
    if (rc)
        return rc;
    return bal_json_parse(out, text.data, size, "config.json", err);
}

/* Where a model of text and images keeps what is of the text. */
static const json_t *config_get(const json_t *config, const char *key)
{
    const json_t *value = json_object_get(config, key);

    if (value)
        return value;
    return json_object_get(json_object_get(config, "text_config"), key);
}

static bool has_head(const bal_model *base)
{
    for (size_t i = 0; i < sizeof(ties) / sizeof(*ties); i++) {
        if (bal_model_find(base, BAL_PART_TENSOR, ties[i].head) != BAL_NONE)
            return true;
    }
    return false;
}

/* Classes have their own default, so without a word the head's absence is what
 * tells. */
static bool may_be_tied(const bal_fit *self)
{
    const json_t *says = config_get(self->config, "tie_word_embeddings");

    return says ? json_is_true(says) : !has_head(self->base);
}

static bool is_conv1d(const char *type)
{
    return listed(type, conv1d_types,
                  sizeof(conv1d_types) / sizeof(*conv1d_types));
}

/* True if a part of the model is of such a class: the decoder of a
 * vision-encoder-decoder is a GPT-2. */
static bool has_conv1d(json_t *config)
{
    const char *key;
    json_t *value;

    json_object_foreach(config, key, value)
    {
        const char *type =
            json_string_value(json_object_get(value, "model_type"));
        if (type && is_conv1d(type))
            return true;
    }
    return false;
}

static const char *behind_body(const char *name)
{
    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
        size_t len = strlen(bodies[i]);
        if (!strncmp(name, bodies[i], len))
            return name + len;
    }
    return NULL;
}

/* Saved without its head: no name begins with the body's. */
static bool is_body(const bal_model *base)
{
    for (size_t i = 0; i < bal_model_count(base); i++) {
        const bal_tensor *entry = bal_model_at(base, i);
        if (entry->part == BAL_PART_TENSOR && behind_body(entry->name))
            return false;
    }
    return true;
}

int bal_fit_open(bal_fit *out, bal_model *base, bal_error *err)
{
    *out = (bal_fit){ .base = base };
    int rc = read_config(&out->config, base, err);
    if (rc)
        return rc;
    out->type = json_string_value(json_object_get(out->config, "model_type"));
    out->tied = may_be_tied(out);
    out->body = is_body(base);
    out->transposed =
        !out->type || is_conv1d(out->type) || has_conv1d(out->config);
    return 0;
}

void bal_fit_done(bal_fit *self)
{
    json_decref(self->config);
    *self = (bal_fit){ 0 };
}

/* ---- tensors ------------------------------------------------------------ */

int bal_fit_find(const bal_fit *self, size_t *entry, const char *module,
                 const char *tail, bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    int rc = bal_buf_format(&name, err, "%s%s", module, tail);
    if (rc)
        return rc;

    const char *text = bal_buf_string(&name);
    *entry = bal_model_find(self->base, BAL_PART_TENSOR, text);
    const char *rest = self->body ? behind_body(text) : NULL;
    if (*entry == BAL_NONE && rest)
        *entry = bal_model_find(self->base, BAL_PART_TENSOR, rest);
    return 0;
}

int bal_fit_floats(const bal_tensor *tensor, bal_error *err)
{
    if (tensor->form != BAL_FORM_WHOLE)
        return bal_fail(err, BAL_EINVAL,
                        "an adapter goes onto a whole model, not onto a delta");
    if (!bal_tensor_float(tensor))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' of the base is %s, not of floats",
                        tensor->name, bal_dtype_name(tensor->dtype));
    return 0;
}

int bal_fit_weight(const bal_fit *self, size_t *entry, const char *module,
                   bal_error *err)
{
    int rc = bal_fit_find(self, entry, module, ".weight", err);
    if (rc)
        return rc;
    if (*entry == BAL_NONE)
        return bal_fail(err, BAL_ECORRUPT,
                        "module '%s' of the adapter is not in the base",
                        module);
    return bal_fit_floats(bal_model_at(self->base, *entry), err);
}

static int misfit(const bal_adapted *row, const bal_tensor *tensor,
                  bal_error *err)
{
    if (tensor->rank != 2)
        return bal_fail(err, BAL_ECORRUPT,
                        "module '%s' of the adapter is linear, the base's has "
                        "%u dimensions",
                        row->module, tensor->rank);
    return bal_fail(err, BAL_ECORRUPT,
                    "module '%s' of the adapter is %llu x %llu, the base's is "
                    "%llu x %llu",
                    row->module, (unsigned long long)row->out,
                    (unsigned long long)row->in,
                    (unsigned long long)tensor->shape[0],
                    (unsigned long long)tensor->shape[1]);
}

/* IA3 has numbers for one dimension alone, 1 for the other; a single number
 * says of neither that it is any. */
static bool fits(const bal_adapted *row, uint64_t out, uint64_t in)
{
    bool any = row->family == BAL_FAMILY_IA3 && (row->out != 1 || row->in != 1);

    return (row->out == out || (any && row->out == 1)) &&
           (row->in == in || (any && row->in == 1));
}

int bal_fit_turned(const bal_fit *self, const bal_adapted *row,
                   const bal_tensor *tensor, bool *turned, bal_error *err)
{
    if (tensor->rank != 2)
        return misfit(row, tensor, err);
    bool straight = fits(row, tensor->shape[0], tensor->shape[1]);
    bool around = fits(row, tensor->shape[1], tensor->shape[0]);
    bool embedding = row->family == BAL_FAMILY_EMBEDDING;
    bool named = listed(last_of(row->module), conv1d_names,
                        sizeof(conv1d_names) / sizeof(*conv1d_names));

    *turned = embedding || (self->transposed && around && (named || !straight));
    if (!(*turned ? around : straight))
        return misfit(row, tensor, err);
    if (embedding || self->type || !named || !straight)
        return 0;
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "tensor '%s' is square, and without a config.json it "
                    "cannot be told whether it is stored transposed (Conv1D)",
                    tensor->name);
}

bool bal_fit_stack_turned(const bal_fit *self)
{
    return self->type && listed(self->type, turned_stacks,
                                sizeof(turned_stacks) / sizeof(*turned_stacks));
}

/* ---- vocabularies ------------------------------------------------------- */

bool bal_fit_vocabulary(const char *tensor)
{
    for (size_t i = 0; i < sizeof(vocabulary_names) / sizeof(*vocabulary_names);
         i++) {
        const char *at = strstr(tensor, vocabulary_names[i]);
        size_t len = strlen(vocabulary_names[i]);

        if (at && (at == tensor || at[-1] == '.') &&
            !strcmp(at + len, ".weight"))
            return true;
    }
    return false;
}

size_t bal_fit_embedding(const bal_fit *self, const char *head)
{
    size_t entry = BAL_NONE;

    for (size_t i = 0; i < sizeof(ties) / sizeof(*ties) && entry == BAL_NONE;
         i++) {
        if (!strcmp(head, ties[i].head))
            entry =
                bal_model_find(self->base, BAL_PART_TENSOR, ties[i].embedding);
    }
    return entry;
}

const char *bal_fit_head(const char *embedding)
{
    for (size_t i = 0; i < sizeof(ties) / sizeof(*ties); i++) {
        if (!strcmp(embedding, ties[i].embedding))
            return ties[i].head;
    }
    return NULL;
}
