/* Parameters: from text to numbers, checked by their rows. */
#ifndef MERGE_VALUES_H
#define MERGE_VALUES_H

#include "merge/merge.h"

/* A value as it is recorded (shortest text that reads back) and as it is
 * computed with: a boolean is 0 or 1, a name its place among the choices. */
typedef struct bal_param_value {
    char text[64];
    double number;
} bal_param_value;

/* The parameter that weights an input; every input has one. */
#define BAL_WEIGHT     "weight"
#define BAL_PARAMS_MAX 16

struct bal_values {
    const bal_param *params;
    bool mergekit;
    double common[BAL_PARAMS_MAX];
    double *inputs; /* for each input, BAL_PARAMS_MAX of them */
    size_t count;   /* of the recipe, with the base */
};

/* EINVAL says what is wanted instead: "0 … 1", the choices. */
BAL_CHECK int bal_value_parse(bal_param_value *out, const bal_param *param,
                              const char *text, bal_error *err);
/* NULL: no such parameter. */
const bal_param *bal_param_find(const bal_param *params, const char *name);
/* EINVAL: the names that there are. */
int bal_param_unknown(const bal_method *method, const char *name,
                      bal_error *err);
/* Every parameter's number: the input's own, else the recipe's, else the
 * default; of a base that is no input, none. EINVAL: required and not there. */
BAL_CHECK int bal_values_init(bal_values *out, const bal_recipe *recipe,
                              bal_error *err);
/* Is this input the base, and not one of those that are merged? */
bool bal_recipe_apart(const bal_recipe *self, size_t input);
void bal_values_done(bal_values *self);

#endif
