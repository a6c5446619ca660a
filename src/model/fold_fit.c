/* An adapter that is folded onto the wrong weights gives a model that loads and
 * talks nonsense, so what cannot be told for certain is refused by name. */
#include "model/fold_fit.h"

#include <string.h>

#include "core/error.h"
#include "core/json.h"

enum { CONFIG_MAX = 16 << 20 };

/* Model classes of transformers whose attention and MLP weights are Conv1D:
 * stored [in, out]. Shapes cannot tell it where a weight is square. */
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

/* Names under which models keep the embedding and the head that may be one. */
static const char *const tied_names[] = {
    "embed_tokens", "lm_head",         "wte",    "embed_in",
    "embed_out",    "word_embeddings", "output", "tok_embeddings",
};

static const char *const head_tensors[] = {
    "lm_head.weight",
    "embed_out.weight",
    "output.weight",
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
    for (size_t i = 0; i < sizeof(head_tensors) / sizeof(*head_tensors); i++) {
        if (bal_model_find(base, BAL_PART_TENSOR, head_tensors[i]) != BAL_NONE)
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

static bool may_be_transposed(const bal_fit *self)
{
    const char *type =
        json_string_value(json_object_get(self->config, "model_type"));

    return !type || listed(type, conv1d_types,
                           sizeof(conv1d_types) / sizeof(*conv1d_types));
}

int bal_fit_open(bal_fit *out, bal_model *base, const json_t *adapter_config,
                 bal_error *err)
{
    *out = (bal_fit){ .base = base };
    if (!bal_peft_off(json_object_get(adapter_config, "fan_in_fan_out")))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "%s: 'fan_in_fan_out' is not folded yet",
                        BAL_PEFT_CONFIG);
    int rc = read_config(&out->config, base, err);
    if (rc)
        return rc;
    out->tied = may_be_tied(out);
    out->transposed = may_be_transposed(out);
    return 0;
}

void bal_fit_done(bal_fit *self)
{
    json_decref(self->config);
    *self = (bal_fit){ 0 };
}

static int check_tied(const bal_fit *self, const char *module,
                      const char *tensor, bal_error *err)
{
    bool named = listed(last_of(module), tied_names,
                        sizeof(tied_names) / sizeof(*tied_names));

    if (!self->tied || !named)
        return 0;
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "tensor '%s' may be both the embedding and the head of "
                    "this base: the adapter changes one of them",
                    tensor);
}

static int check_base(const bal_tensor *tensor, bal_error *err)
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

/* [in, out] as Conv1D has it; a square one is told by name and class. */
static int check_conv1d(const bal_fit *self, const bal_lora *lora,
                        const bal_tensor *tensor, bal_error *err)
{
    bool turned = tensor->shape[0] == lora->in && tensor->shape[1] == lora->out;
    bool named = listed(last_of(lora->module), conv1d_names,
                        sizeof(conv1d_names) / sizeof(*conv1d_names));

    if (!turned || (lora->in == lora->out && !(named && self->transposed)))
        return 0;
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "tensor '%s' is stored transposed (Conv1D), which is not "
                    "folded yet",
                    tensor->name);
}

static int check_shape(const bal_lora *lora, const bal_tensor *tensor,
                       bal_error *err)
{
    if (tensor->rank != 2)
        return bal_fail(err, BAL_ECORRUPT,
                        "module '%s' of the adapter is linear, the base's has "
                        "%u dimensions",
                        lora->module, tensor->rank);
    if (tensor->shape[0] == lora->out && tensor->shape[1] == lora->in)
        return 0;
    return bal_fail(err, BAL_ECORRUPT,
                    "module '%s' of the adapter is %llu x %llu, the base's is "
                    "%llu x %llu",
                    lora->module, (unsigned long long)lora->out,
                    (unsigned long long)lora->in,
                    (unsigned long long)tensor->shape[0],
                    (unsigned long long)tensor->shape[1]);
}

int bal_fit_lora(const bal_fit *self, const bal_lora *lora, size_t *entry,
                 bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    int rc = bal_buf_format(&name, err, "%s.weight", lora->module);
    if (rc)
        return rc;
    rc = check_tied(self, lora->module, bal_buf_string(&name), err);
    if (rc)
        return rc;

    size_t i =
        bal_model_find(self->base, BAL_PART_TENSOR, bal_buf_string(&name));
    if (i == BAL_NONE)
        return bal_fail(err, BAL_ECORRUPT,
                        "module '%s' of the adapter is not in the base",
                        lora->module);
    const bal_tensor *tensor = bal_model_at(self->base, i);
    rc = check_base(tensor, err);
    if (rc)
        return rc;
    if (tensor->rank == 2) {
        rc = check_conv1d(self, lora, tensor, err);
        if (rc)
            return rc;
    }
    *entry = i;
    return check_shape(lora, tensor, err);
}

int bal_fit_whole(const bal_fit *self, const bal_lora_whole *whole,
                  const bal_tensor *tensor, size_t *entry, bal_error *err)
{
    size_t i = bal_model_find(self->base, BAL_PART_TENSOR, whole->name);
    BAL_LOCAL(bal_buf) module = { 0 };
    const char *dot = strrchr(whole->name, '.');
    size_t len = dot ? (size_t)(dot - whole->name) : strlen(whole->name);

    int rc = bal_buf_append(&module, whole->name, len, err);
    if (rc)
        return rc;
    rc = check_tied(self, bal_buf_string(&module), whole->name, err);
    if (rc)
        return rc;
    if (i == BAL_NONE)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' of the adapter is not in the base",
                        tensor->name);
    const bal_tensor *old = bal_model_at(self->base, i);
    rc = check_base(old, err);
    if (rc)
        return rc;
    if (tensor->form != BAL_FORM_WHOLE || !bal_tensor_float(tensor))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' of the adapter is not of floats",
                        tensor->name);
    if (!bal_tensor_same_shape(old, tensor))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' of the adapter has another shape than the "
                        "base's",
                        tensor->name);
    *entry = i;
    return 0;
}
