/* GGUF, version 3, as far as a LoRA adapter for llama.cpp needs it. Facts:
 * ggml's docs/gguf.md, llama.cpp's src/llama-adapter.cpp and
 * convert_lora_to_gguf.py. */
#ifndef MODEL_GGUF_H
#define MODEL_GGUF_H

#include "model/known.h"
#include "model/peft.h"
#include "model/scaled.h"

/* A tensor of the file. Dimensions are ggml's: the fastest first. */
typedef struct bal_gguf_tensor {
    const char *name; /* "blk.0.attn_q.weight.lora_a" */
    uint64_t dims[2];
    uint32_t type;   /* ggml's */
    bal_scaled from; /* the adapter's entry; of A only entry and dtype count */
    bool scaled;     /* B: read as `from` says */
    bool turned;     /* A of an embedding, stored transposed */
    uint64_t size;   /* bytes, without padding */
} bal_gguf_tensor;

typedef struct bal_gguf {
    const char *architecture; /* "llama"; static */
    float alpha;              /* 0: the scale is in B */
    bal_gguf_tensor *tensors;
    size_t count;
    bal_arena arena;
} bal_gguf;

/* What the file is to hold. EUNSUPPORTED, ECORRUPT name what does not fit. */
BAL_CHECK int bal_gguf_plan(bal_gguf *out, const bal_loras *loras,
                            bal_model *adapter, const bal_known *base,
                            bal_error *err);
void bal_gguf_done(bal_gguf *self);

/* What llama.cpp calls a base's modules; gguf_names.c. */
typedef struct bal_gguf_base {
    const char *architecture; /* "llama" */
    bool paired;              /* rows of q and k are in another order */
} bal_gguf_base;
/* EUNSUPPORTED names the architecture. */
BAL_CHECK int bal_gguf_base_of(bal_gguf_base *out, const bal_known *base,
                               bal_error *err);
/* Appends "blk.0.attn_q.weight". heads: the key of the base's config that has
 * how many the module's rows are of, NULL: rows keep their order. EUNSUPPORTED
 * names the module. */
BAL_CHECK int bal_gguf_name(bal_buf *to, const char **heads, const char *module,
                            bal_error *err);

#endif
