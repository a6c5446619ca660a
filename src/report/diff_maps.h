/* Two adapters as the maps they are, beside what their tensors say. */
#ifndef REPORT_DIFF_MAPS_H
#define REPORT_DIFF_MAPS_H

#include "core/json.h"

typedef struct bal_diff_maps {
    bool compared;
    bal_error why; /* where they could not be: what is not plain LoRA */
    bal_residual residual;
    bal_buf rows; /* bal_lora_row */
    bal_arena names;
} bal_diff_maps;

/* All modules as one; NAN where there is nothing to tell. */
typedef struct bal_diff_maps_sums {
    double cosine;
    double columns, rows; /* means over those that both have */
} bal_diff_maps_sums;

void bal_diff_maps_done(bal_diff_maps *self);
/* Of two adapters; of others nothing. That they cannot be compared as maps is
 * no failure. */
BAL_CHECK int bal_diff_maps_fill(bal_diff_maps *out, bal_model *a, bal_model *b,
                                 bal_work *work, bal_error *err);
const bal_lora_row *bal_diff_maps_at(const bal_diff_maps *self,
                                     size_t i); /* NULL behind the last */
double bal_diff_maps_cosine(const bal_lora_row *row);
bal_diff_maps_sums bal_diff_maps_sum(const bal_diff_maps *self);
/* "maps", into the open object, where both are adapters. */
void bal_diff_maps_json(bal_json *json, const bal_diff_maps *self);

#endif
