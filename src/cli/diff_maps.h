/* Two adapters as the maps they are, beside what their tensors say. */
#ifndef CLI_DIFF_MAPS_H
#define CLI_DIFF_MAPS_H

#include "cli/cli.h"

typedef struct bal_diff_maps {
    bool compared;
    bal_error why; /* where they could not be: what is not plain LoRA */
    bal_residual residual;
    bal_buf rows; /* bal_lora_row, texts in the program's arena */
} bal_diff_maps;

void bal_diff_maps_done(bal_diff_maps *self);
/* Of two adapters; of others nothing. That they cannot be compared as maps is
 * no failure. */
BAL_CHECK int bal_diff_maps_fill(bal_diff_maps *out, bal_cli *cli, bal_model *a,
                                 bal_model *b, bal_error *err);
/* Lines, and one for each module with stat. */
void bal_diff_maps_text(bal_out *out, const bal_diff_maps *self, bool stat);
/* "maps", into the open object, where both are adapters. */
void bal_diff_maps_json(bal_json *json, const bal_diff_maps *self);

#endif
