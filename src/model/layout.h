/* Which files' headers base + change is written with. */
#ifndef MODEL_LAYOUT_H
#define MODEL_LAYOUT_H

#include "model/model.h"

/* The base's layout stays: a header of change is taken for a file only if it
 * holds just the tensors that the file has of the base, and new ones; then the
 * file comes out as it was tuned, byte for byte. */
typedef struct bal_layout {
    bool *base, *change; /* by entry: is this header taken? */
    bool changed;        /* all are of change: its index fits, too */
} bal_layout;

/* The layout of a change that stands alone: its own, the base's where it has
 * none. */
BAL_CHECK int bal_layout_of_whole(bal_layout *out, bal_model *base,
                                  bal_model *change, bal_error *err);
BAL_CHECK int bal_layout_choose(bal_layout *out, bal_model *base,
                                bal_model *change, bal_error *err);
void bal_layout_done(bal_layout *self);

#endif
