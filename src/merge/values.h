/* Parameters: from text to numbers, checked by their rows. */
#ifndef MERGE_VALUES_H
#define MERGE_VALUES_H

#include "merge/gradient.h"
#include "merge/merge.h"

/* A value as it is recorded (shortest text that reads back) and as it is
 * computed with: a boolean is 0 or 1, a name its place among the choices. */
typedef struct bal_param_value {
    char text[64];
    double number;
} bal_param_value;

/* The parameter that weights an input, where the method has it. */
#define BAL_WEIGHT "weight"

/* EINVAL says what is wanted instead: "0 … 1", the choices. */
BAL_CHECK int bal_value_parse(bal_param_value *out, const bal_param *param,
                              const char *text, bal_error *err);
/* The same of a number that was parsed. */
void bal_value_text(bal_param_value *out, const bal_param *param,
                    double number);
/* NULL: no such parameter. */
const bal_param *bal_param_find(const bal_param *params, const char *name);
/* EINVAL: the names that there are. */
int bal_param_unknown(const bal_method *method, const char *name,
                      bal_error *err);

/* ---- what a recipe tells ------------------------------------------------ */

/* Every parameter for every tensor: the input's own, else its slice's, else the
 * recipe's, else the default. */
typedef struct bal_rules {
    const bal_param *params;
    size_t param_count;
    bool mergekit;
    bool plain;           /* all of it the same for every tensor */
    bal_gradient *common; /* for each slice, param_count */
    size_t slices;
    bal_gradient *inputs; /* for each input, param_count */
    bool *takes;          /* for each input: it has parameters */
    size_t count;         /* of the recipe's inputs, with the base */
} bal_rules;

/* Of a base that is no input there are none. EINVAL: required and not there. */
BAL_CHECK int bal_rules_init(bal_rules *out, const bal_recipe *recipe,
                             bal_error *err);
void bal_rules_done(bal_rules *self);
/* What an input weighs, as text: "1" of a base that is none. */
BAL_CHECK int bal_rules_weight(bal_buf *to, const bal_rules *self, size_t input,
                               bal_error *err);

/* A tensor that parameters are wanted for. Names are the input's own, which
 * slices change: mergekit's filters see those where a parameter is an input's.
 */
typedef struct bal_where {
    size_t slice;
    bal_place place;
    const bal_place *inputs; /* count; tensor NULL: it takes no part */
} bal_where;

/* ---- of one tensor ------------------------------------------------------ */

struct bal_values {
    const bal_param *params;
    size_t param_count;
    bool mergekit;
    double *common; /* param_count */
    double *inputs; /* for each input, param_count; 0 where it has none */
    size_t count;   /* of the recipe's inputs, with the base */
};

/* Bytes of common and inputs, which lie in one piece. */
size_t bal_values_size(const bal_values *self);
/* Room for what the rules tell; without numbers, to be freed by
 * bal_values_done. */
BAL_CHECK int bal_values_room(bal_values *out, const bal_rules *rules,
                              bal_error *err);
/* EINVAL: nothing is told for this tensor. */
BAL_CHECK int bal_values_fill(bal_values *self, const bal_rules *rules,
                              const bal_where *where, bal_error *err);
void bal_values_done(bal_values *self);
/* What an input weighs; 1 where the method knows no weights. */
double bal_values_weight(const bal_values *self, size_t input);
/* Of a recipe that is the same for every tensor; of another what a tensor
 * without a name would have. */
BAL_CHECK int bal_values_init(bal_values *out, const bal_recipe *recipe,
                              bal_error *err);

/* Is this input the base of its slice, and not one of those that are merged? */
bool bal_recipe_apart(const bal_recipe *self, size_t input);

#endif
