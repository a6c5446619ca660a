/* Stand-ins until the rules of the engines are here. */
#include <string.h>

#include "ballast.h"

#include "core/error.h"
#include "model/model.h"

static const bal_engine_info engines[] = {
    { "vllm", "vLLM", 16 },
    { "sglang", "SGLang", 0 },
    { "llama.cpp", "llama.cpp", 0 },
    { "peft", "PEFT", 0 },
};

size_t bal_engine_count(void)
{
    return sizeof(engines) / sizeof(engines[0]);
}

const bal_engine_info *bal_engine_at(size_t i)
{
    return &engines[i];
}

const bal_engine_info *bal_engine_find(const char *name)
{
    for (size_t i = 0; i < bal_engine_count(); i++) {
        if (!strcmp(engines[i].name, name))
            return &engines[i];
    }
    return NULL;
}

int bal_preflight(bal_model *adapter, const bal_serving_options *options,
                  bal_preflight_fn *fn, void *ctx, bal_error *err)
{
    (void)adapter;
    (void)fn;
    (void)ctx;
    if (!bal_engine_find(options->engine))
        return bal_fail(err, BAL_EINVAL, "no engine '%s'", options->engine);
    return 0;
}

int bal_lora_adapt(bal_model **out, bal_model *adapter,
                   const bal_serving_options *options, bal_preflight_fn *fn,
                   void *ctx, bal_error *err)
{
    (void)options;
    (void)fn;
    (void)ctx;
    (void)err;
    *out = bal_model_ref(adapter);
    return 0;
}

int bal_gguf_write(const char *out, bal_model *adapter, bal_model *base,
                   bal_error *err)
{
    (void)adapter;
    (void)base;
    return bal_fail(err, BAL_EUNSUPPORTED, "'%s': no GGUF yet", out);
}
