/* What a recipe has beside the parameters of its method. */
#ifndef MERGE_SETTINGS_H
#define MERGE_SETTINGS_H

#include "merge/merge.h"

typedef int bal_setting_set_fn(bal_recipe *self, const char *text,
                               bal_error *err);
/* space strict union (the opposite of strict) dtype out_dtype seed arithmetic
 * mergekit_stream rank energy; NULL: no such setting. */
bal_setting_set_fn *bal_recipe_setting(const char *name);

/* A dtype that results may have, by the names that people use; `what` is named
 * in the message. EINVAL. */
BAL_CHECK int bal_setting_dtype(int *out, const char *text, const char *what,
                                bal_error *err);

const char *bal_space_name(bal_space space);
/* False: no such space. */
bool bal_space_find(bal_space *out, const char *name);

const char *bal_arithmetic_name(bool mergekit);
/* False: no such arithmetic. */
bool bal_arithmetic_find(bool *mergekit, const char *name);

#endif
