/* What a parameter is for each tensor: one number, or one that goes over the
 * layers, or different ones by name. What mergekit has as scalars, gradients
 * and lists of {filter, value} is one text here, and one value. */
#ifndef MERGE_GRADIENT_H
#define MERGE_GRADIENT_H

#include "ballast.h"

#include "core/buf.h"
#include "core/own.h"

/* Where a tensor is: its name, and how far it is into its layers, 0 … 1. What
 * is in no layer is at 0. */
typedef struct bal_place {
    const char *tensor;
    double depth;
} bal_place;

/* The numbers of one part, for tensors whose name contains filter. */
typedef struct bal_gradient_part {
    char *filter; /* NULL: of any name */
    double *values;
    size_t count;
} bal_gradient_part;

/* The parts that were appended, of which the first that fits holds. */
typedef struct bal_gradient {
    bal_gradient_part *parts;
    size_t count, room;
    bool whole; /* one fits every name: nothing behind it would be looked at */
} bal_gradient;

/* More values in one part, or more parts, are refused: nobody has as many
 * layers. */
#define BAL_GRADIENT_MOST 4096

/* Append what text says of param: "0.5"; "0,0.5,1"; either behind "FILTER:",
 * FILTER being "*" for any name; or several of these with ';' between them.
 * What comes behind a part for every name is checked and left out. EINVAL: not
 * a value of param, out of its bounds. */
BAL_CHECK int bal_gradient_append(bal_gradient *self, const bal_param *param,
                                  const char *text, bal_error *err);
void bal_gradient_done(bal_gradient *self);
/* True if it is the same for every tensor, *out. */
bool bal_gradient_scalar(double *out, const bal_gradient *self);
/* The value at a place; *found is false if no part fits. Of n numbers v, with
 * s = depth (n - 1) and i = trunc(s): (1 - (s - i)) v[i] + (s - i) v[i + 1] for
 * FLOAT and INT, v[i] for BOOL and NAME (mergekit 0.1.5). EINVAL: an INT that
 * comes out with a fraction. */
BAL_CHECK int bal_gradient_at(double *out, bool *found,
                              const bal_gradient *self, const bal_param *param,
                              const bal_place *place, bal_error *err);
/* Append the text that reads back as this: the shortest numbers. */
BAL_CHECK int bal_gradient_text(bal_buf *to, const bal_gradient *self,
                                const bal_param *param, bal_error *err);

#endif
