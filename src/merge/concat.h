/* Adapters put side by side: what concat*.c and shrink.c share. */
#ifndef MERGE_CONCAT_H
#define MERGE_CONCAT_H

#include "merge/layers.h"
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
    bool embedding; /* as of bal_lora */
    bool scaled;    /* alpha is told; else it is the rank, and the scale 1 */
    double alpha;
    bal_share *shares;
    size_t count;
} bal_joined;

/* The entries of an adapter that is made: two factors a module, a config, and
 * the files of another adapter, but for its card, which is about that one
 * alone. What an entry is comes back from bal_made_of. */
typedef enum bal_made {
    BAL_MADE_A, /* index: of a module */
    BAL_MADE_B,
    BAL_MADE_CONFIG,
    BAL_MADE_OTHER, /* index: of an entry of the other adapter */
} bal_made;
typedef struct bal_entries {
    const bal_joined *modules;
    size_t count;
    bal_dtype dtype;
    const bal_buf *config;
    bal_model *files; /* NULL: there is no other adapter */
} bal_entries;
BAL_CHECK int bal_entries_add(bal_model *to, const bal_entries *self,
                              bal_error *err);
/* One entry of the other adapter. */
BAL_CHECK int bal_entries_pass(bal_model *to, const bal_model *from, size_t i,
                               bal_error *err);
bal_made bal_made_of(size_t *index, const bal_model *model, size_t i);
/* EUNSUPPORTED: whole tensors, which are not merged. Copies of the base's own
 * that PEFT saved beside an update of it may be there if all that have one have
 * the same as the first input; then these are the result's, by pass. */
BAL_CHECK int bal_wholes_check(const bal_loras *adapters,
                               bal_model *const *inputs, size_t count,
                               bal_error *err);
BAL_CHECK int bal_wholes_pass(bal_model *to, const bal_loras *adapter,
                              const bal_model *from, bal_error *err);
/* The dtype of all factors of an adapter and of what has `dtype` (-1: of
 * nothing yet), F32 or F64 where they differ. */
int bal_loras_join(int dtype, const bal_loras *adapter, const bal_model *model);

/* A config for an adapter that none was there for before, of no modules yet;
 * base_model may be NULL. NULL: no memory. */
json_t *bal_config_new(const char *base_model);
/* The text of the result's adapter_config.json, as PEFT writes it (indent 2,
 * sorted keys): the first adapter's, with what has to be different. r is the
 * rank that most modules have; the others are named, exactly, in rank_pattern
 * and alpha_pattern; every scale is 1. EINVAL: adapters of different base
 * models. */
BAL_CHECK int bal_concat_config(bal_buf *out, const bal_loras *adapters,
                                size_t count, const bal_joined *modules,
                                size_t module_count, bal_error *err);

/* The sum, as bal_product_open has it where the recipe has no rank and no
 * energy. With dtype it is of F64, which loses next to nothing, and *dtype is
 * what the result is to have, -1 for what the sum has. */
BAL_CHECK int bal_concat_exact(bal_model **out, int *dtype,
                               const bal_recipe *recipe,
                               bal_model *const *inputs, bal_error *err);

/* What each adapter's maps are multiplied by, module by module: parameters may
 * go over the layers, or be for some modules only. Filters and layers are
 * looked for in a module's name. */
typedef struct bal_shares {
    const bal_method *method;
    bal_rules rules;
    bal_values values;
    bal_stacks stacks;
    bal_place *places;
    double *weights;
    size_t count;
    const char *latest; /* the module that values are of, NULL: none */
} bal_shares;
BAL_CHECK int bal_shares_init(bal_shares *out, const bal_recipe *recipe,
                              const bal_loras *adapters, bal_error *err);
void bal_shares_done(bal_shares *self);
/* EINVAL: no share can be computed of these weights. */
BAL_CHECK int bal_share_of(double *out, bal_shares *self, const char *module,
                           size_t input, bal_error *err);
/* What the input weighs there. */
BAL_CHECK int bal_share_weight(double *out, bal_shares *self,
                               const char *module, size_t input,
                               bal_error *err);
/* *out: the result is the one input as it is. */
BAL_CHECK int bal_shares_same(bool *out, const bal_recipe *recipe,
                              bal_error *err);

#endif
