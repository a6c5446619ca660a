/* What a recipe has beside the parameters of its method. */
#ifndef MERGE_SETTINGS_H
#define MERGE_SETTINGS_H

#include "merge/merge.h"

typedef int bal_setting_set_fn(bal_recipe *self, const char *text,
                               bal_error *err);
/* space strict union (the opposite of strict) dtype seed base arithmetic; NULL:
 * no such setting. */
bal_setting_set_fn *bal_recipe_setting(const char *name);

const char *bal_space_name(bal_space space);
/* False: no such space. */
bool bal_space_find(bal_space *out, const char *name);

/* The one there is so far; recorded so that another can be told from it. */
#define BAL_ARITHMETIC "precise"

#endif
