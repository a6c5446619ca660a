/* The floats of an entry as doubles, wherever they start. A door over
 * bal_model_read for callers that think in elements: rows of a factor, ranges
 * of a difference. */
#ifndef MODEL_ELEMENTS_H
#define MODEL_ELEMENTS_H

#include "model/model.h"

/* Elements [start, start + n) of entry i, which is of BF16 F16 F32 or F64 and
 * has them; start and n are free of bal_model_read's multiples of 8. Needs at
 * most 1 MiB beside `to`, whatever n is. */
BAL_CHECK int bal_elements_read(double *to, bal_model *model, size_t i,
                                uint64_t start, size_t n, bal_error *err);
/* Elements of an entry, by its shape. */
uint64_t bal_elements_of(const bal_tensor *tensor);

#endif
