/* Relative change of tensors taken together: by layer, by kind of module, by
 * both. */
#ifndef REPORT_DIFF_GROUPS_H
#define REPORT_DIFF_GROUPS_H

#include "core/json.h"
#include "core/map.h"

typedef struct bal_diff_group {
    const char *layer; /* NULL: all of them */
    const char *name;  /* "12", "q_proj" */
    size_t tensors, changed;
    bool unmeasured; /* a change that is not in these sums */
    double diff2, norm2;
} bal_diff_group;

/* In the order in which they come. */
typedef struct bal_diff_groups {
    bal_buf rows; /* bal_diff_group */
    bal_map index;
    bal_arena names;
} bal_diff_groups;

void bal_diff_groups_done(bal_diff_groups *self);
/* Add to the group of that name, in that layer if it is not NULL, made if need
 * be. Both are shorter than BAL_MODULE_ROOM. unmeasured: changed in a way that
 * diff2 does not tell. */
BAL_CHECK int bal_diff_groups_add(bal_diff_groups *self, const char *layer,
                                  const char *name, const bal_diff_row *row,
                                  bool unmeasured, bal_error *err);
/* In the order of the numbers that names are; nothing is added after that. */
void bal_diff_groups_sort(bal_diff_groups *self);
size_t bal_diff_groups_count(const bal_diff_groups *self);
const bal_diff_group *bal_diff_groups_at(const bal_diff_groups *self, size_t i);
double bal_diff_group_relative(const bal_diff_group *self);
/* [{"layer"?, "name", "tensors", "changed", "relative"}]. */
void bal_diff_groups_json(bal_json *json, const bal_diff_groups *self);

#endif
