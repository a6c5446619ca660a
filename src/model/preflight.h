/* What engines make of adapters, as rules: a row a rule, a column an engine
 * (model/engines.h), a function that finds where an adapter meets it. */
#ifndef MODEL_PREFLIGHT_H
#define MODEL_PREFLIGHT_H

#include "model/engines.h"
#include "model/known.h"
#include "model/loose.h"
#include "model/peft_config.h"

typedef struct bal_flight bal_flight;
/* Tells each place by bal_flight_tell. */
typedef int bal_rule_fn(bal_flight *self, bal_error *err);

/* No row is told for that engine. */
#define BAL_OUTCOME_NONE (-1)

typedef struct bal_rule {
    const char *name;
    int outcomes[BAL_ENGINES]; /* bal_outcome, BAL_OUTCOME_NONE */
    bal_rule_fn *check;
    const char *key;   /* of the config, that the check looks at; NULL: none */
    const char *then;  /* what comes of it where the outcome is WRONG or NOTED;
                          NULL: "as PEFT would not" */
    const char *adapt; /* what bal_lora_adapt does about it; NULL: nothing */
    bool folds;        /* which may round */
    bool bars;         /* nothing is rewritten: engines and PEFT differ in what
                          the adapter is */
    bool values;       /* reads what the tensors hold */
    bool any_type;     /* for PEFT: also of adapters that are not LoRA */
} bal_rule;

extern const bal_rule bal_flight_rules[];
extern const size_t bal_flight_rules_count;

/* A rule that was met, and what was so without what comes of it; 0, or what
 * ends the run. */
typedef int bal_met_fn(void *ctx, const bal_rule *rule,
                       const bal_preflight_row *row, const char *fact);

struct bal_flight {
    const bal_engine *engine;
    uint64_t max_rank; /* 0: any */
    bal_model *adapter;
    bal_loose parts;
    bal_known base; /* where based */
    bool based;
    bal_peft_scales scales; /* where scaled; else why not */
    bool scaled;
    bal_error unscaled;
    const bal_rule *rule; /* that is looked at now */
    bal_met_fn *fn;
    void *ctx;
};

/* values: rules that read the tensors, too. EINVAL: no adapter, no such engine.
 */
BAL_CHECK int bal_flight_run(bal_model *adapter,
                             const bal_serving_options *options, bool values,
                             bal_met_fn *fn, void *ctx, bal_error *err);
/* The rule is met at `where`; format says what is so. */
BAL_CHECK int bal_flight_tell(bal_flight *self, const char *where,
                              bal_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Of the config; NULL: absent. */
const json_t *bal_flight_key(const bal_flight *self, const char *key);
bool bal_flight_is_lora(const bal_flight *self);
/* The name of an entry of the adapter. */
const char *bal_flight_name(const bal_flight *self, size_t entry);
/* The factors' dimensions, 0 where there is none, or it is no matrix. */
typedef struct bal_factor_dims {
    uint64_t in, rank_a, rank_b, out;
} bal_factor_dims;
bal_factor_dims bal_flight_dims(const bal_flight *self,
                                const bal_loose_module *module);

/* The checks, by file. preflight_config.c: */
bal_rule_fn bal_rule_config_missing, bal_rule_config_broken,
    bal_rule_key_missing, bal_rule_key_value, bal_rule_type, bal_rule_type_case,
    bal_rule_on, bal_rule_saved, bal_rule_bias, bal_rule_start,
    bal_rule_lora_ga, bal_rule_rank_limit, bal_rule_scale_unknown;
/* preflight_targets.c: */
bal_rule_fn bal_rule_target_pattern, bal_rule_target_names, bal_rule_untargeted,
    bal_rule_unlisted;
/* preflight_names.c: */
bal_rule_fn bal_rule_prefix, bal_rule_default_inside, bal_rule_name_inside,
    bal_rule_name_mixed, bal_rule_strange, bal_rule_whole, bal_rule_copy,
    bal_rule_copy_differs, bal_rule_twice, bal_rule_dora_tensor,
    bal_rule_bias_tensor, bal_rule_rows_tensor, bal_rule_embedding_names,
    bal_rule_no_factors;
/* preflight_shapes.c: */
bal_rule_fn bal_rule_dtype, bal_rule_empty, bal_rule_not_matrix,
    bal_rule_lone_a, bal_rule_lone_b, bal_rule_ranks_differ,
    bal_rule_rank_not_r;
/* preflight_base.c: */
bal_rule_fn bal_rule_no_base, bal_rule_module_unknown, bal_rule_module_nowhere,
    bal_rule_layer_missing, bal_rule_module_vector, bal_rule_shape_small,
    bal_rule_shape_large, bal_rule_vocabulary, bal_rule_added_tokens,
    bal_rule_tied, bal_rule_gguf_name;
/* preflight_groups.c: */
bal_rule_fn bal_rule_q_alone, bal_rule_kv_alone, bal_rule_up_alone;
/* preflight_values.c: */
bal_rule_fn bal_rule_not_finite;

#endif
