/* PEFT's combination types (peft/utils/merge_utils.py, 0.21.2), under names
 * that tell them from mergekit's methods: in space factors what
 * add_weighted_adapter does to the factors, in space product, cut to a rank,
 * what its *_svd types do to the maps. */
#ifndef MERGE_PEFT_TYPES_H
#define MERGE_PEFT_TYPES_H

#include "merge/sparsify.h"

extern const bal_param bal_peft_linear_params[];
extern const bal_param bal_peft_prune_params[];
extern const bal_param bal_peft_ties_params[];

/* Rows of scratch, and for each input. */
enum { BAL_PEFT_ROWS = 1, BAL_PEFT_EACH = 2 };

/* The largest int(density * n) of n magnitudes, maybe none; of equal ones the
 * lower index. */
extern const bal_sparsify bal_sparsify_topk;

/* Rows of methods.c, without signs and with. */
#define BAL_PEFT_TYPE(NAME, SUMMARY, FORMULA, PARAMS, SPARSIFY, FLAGS)         \
    {                                                                          \
        BAL_PEFT_ROW(NAME, SUMMARY, FORMULA, PARAMS, SPARSIFY, FLAGS)          \
    }
#define BAL_PEFT_TIES(NAME, SUMMARY, KEPT, SPARSIFY, FLAGS)                    \
    {                                                                          \
        BAL_PEFT_ROW(NAME, SUMMARY,                                            \
                     "sum w_i p_i over how many p_i count: those that have "   \
                     "the sign of most, weights apart; " KEPT,                 \
                     bal_peft_ties_params, SPARSIFY, FLAGS),                   \
            .consensus = true                                                  \
    }
#define BAL_PEFT_ROW(NAME, SUMMARY, FORMULA, PARAMS, SPARSIFY, FLAGS)          \
    .info = {                                                              \
            .name = (NAME),                                                    \
            .summary = (SUMMARY),                                              \
            .formula = (FORMULA),                                              \
            .min_inputs = 1,                                                   \
            .flags = BAL_METHOD_PEFT | (FLAGS),                                \
            .params = (PARAMS),                                                \
        },                                                                     \
        .absent = BAL_ABSENT_SKIP, .role = BAL_ROLE_ORIGIN,                    \
        .needs_base = true, .scratch = BAL_PEFT_ROWS,                          \
        .scratch_each = BAL_PEFT_EACH, .prepare = bal_peft_prepare,            \
        .merge = bal_peft_merge, .sparsify = (SPARSIFY)

/* bal_sparse of each input, where the method makes them sparse. */
BAL_CHECK int bal_peft_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                               const bal_values *values, bal_error *err);
/* Σ w_i p_i, p_i what is kept of x_i, over density where it was drawn. With
 * "majority_sign_method" only the p_i count that have the sign of the majority:
 * that of Σ p_i (total) or of the sum of their signs (frequency), weights
 * apart,
 * + where it is 0; and the sum is divided by how many they are. Of a single
 * input all types are linear. */
BAL_CHECK int bal_peft_merge(double *out, const bal_tile *tile,
                             const bal_values *values, bal_error *err);

typedef int bal_view_open_fn(bal_model **out, const bal_recipe *recipe,
                             bal_model *const *inputs, bal_error *err);
/* Such a merge of factors: A_i weighs sign(w_i s_i) root |w_i s_i| and B_i
 * root |w_i s_i|, w_i the input's weight and s_i the module's scale, and the
 * result's scales are 1. `open` merges the tensors themselves. EINVAL: ranks
 * that differ. */
BAL_CHECK int bal_peft_factors(bal_model **out, const bal_recipe *recipe,
                               bal_model *const *inputs, bal_view_open_fn *open,
                               bal_error *err);

#endif
