/* Adapters put side by side: what concat.c and concat_config.c share. */
#ifndef MERGE_CONCAT_H
#define MERGE_CONCAT_H

#include "merge/values.h"
#include "model/peft.h"

/* One adapter's share in a module. */
typedef struct bal_share {
    size_t input;
    const bal_lora *lora;
    double scale; /* of its B: weight times scale */
    uint64_t at;  /* its first row of A and column of B in the result */
} bal_share;

/* One module of the result. */
typedef struct bal_joined {
    const char *module;
    uint64_t rank, in, out;
    bal_share *shares;
    size_t count;
} bal_joined;

/* The text of the result's adapter_config.json, as PEFT writes it (indent 2,
 * sorted keys): the first adapter's, with what has to be different. r is the
 * rank that most modules have; the others are named, exactly, in rank_pattern
 * and alpha_pattern; every scale is 1. EINVAL: adapters of different base
 * models. */
BAL_CHECK int bal_concat_config(bal_buf *out, const bal_loras *adapters,
                                size_t count, const bal_joined *modules,
                                size_t module_count, bal_error *err);

#endif
