/* Learned from vLLM 0.32.0 and SGLang 0.5.23 with a tiny Llama on a CPU, from
 * llama.cpp's server of the PyPI wheel, and from PEFT 0.21.2. */
#include "model/engines.h"

#include <string.h>

static const char *const llama_modules[] = {
    "q_proj",       "k_proj",       "v_proj",   "o_proj",
    "gate_proj",    "up_proj",      "qkv_proj", "down_proj",
    "gate_up_proj", "embed_tokens", "lm_head",  NULL,
};

static const bal_engine engines[BAL_ENGINES] = {
    [BAL_ENGINE_VLLM] = {
        .info = { "vllm", "vLLM 0.32.0", 16 },
        .patterns = true,
        .all_ranks = true,
    },
    [BAL_ENGINE_SGLANG] = {
        .info = { "sglang", "SGLang 0.5.23", 0 },
        .grouped = true,
        .listed = true,
        .modules = llama_modules,
    },
    [BAL_ENGINE_LLAMA] = {
        .info = { "llama.cpp", "llama.cpp (xllamacpp 2026.10.11549)", 0 },
        .patterns = true,
    },
    [BAL_ENGINE_PEFT] = {
        .info = { "peft", "PEFT 0.21.2", 0 },
        .patterns = true,
    },
};

size_t bal_engine_count(void)
{
    return BAL_ENGINES;
}

const bal_engine_info *bal_engine_at(size_t i)
{
    return i < BAL_ENGINES ? &engines[i].info : NULL;
}

const bal_engine *bal_engine_row(const char *name)
{
    for (size_t i = 0; i < BAL_ENGINES; i++) {
        if (!strcmp(engines[i].info.name, name))
            return &engines[i];
    }
    return NULL;
}

const bal_engine_info *bal_engine_find(const char *name)
{
    const bal_engine *row = bal_engine_row(name);

    return row ? &row->info : NULL;
}

bal_engine_id bal_engine_id_of(const bal_engine *self)
{
    return (bal_engine_id)(self - engines);
}
