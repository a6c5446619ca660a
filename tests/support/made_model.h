/* Models made by a test, entry by entry, in memory. */
#ifndef SUPPORT_MADE_MODEL_H
#define SUPPORT_MADE_MODEL_H

#include "model/model.h"

typedef struct made_row {
    const char *name;
    bal_part part;
    bal_form form;
    bal_dtype dtype;
    bal_dtype of; /* looked at for a DIFFERENCE */
    uint32_t rank;
    uint64_t shape[4];
    const void *bytes; /* borrowed; of a file: text, rank and shape 0 */
    const bal_id *base, *tuned;
} made_row;

/* Never NULL. base_model may be. */
bal_model *made_model(bal_kind kind, const char *base_model,
                      const made_row *rows, size_t count);
/* A digest that is the same for the same seed. */
bal_id made_id(unsigned seed);
/* n floats of normal size, the same for the same seed. */
void made_floats(float *out, size_t n, unsigned seed);
/* n of them as bfloat16, and back. */
void made_bf16(uint16_t *out, size_t n, unsigned seed);
float bf16_value(uint16_t bits);
/* To nearest, ties to even; finite values only. */
uint16_t bf16_round(double value);

#endif
