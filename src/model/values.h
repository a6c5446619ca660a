/* Tensors of any dtype as doubles, for comparing. */
#ifndef MODEL_VALUES_H
#define MODEL_VALUES_H

#include "ballast.h"

/* How a dtype is gone through: complex numbers as two floats each, elements of
 * less than a byte by whole bytes and without a value. */
typedef struct bal_values_row {
    unsigned width; /* bytes of one value */
    unsigned each;  /* values of an element; 0: a value is a byte */
    /* NULL: no numbers to be had, bits can be compared. */
    void (*read)(double *to, const void *from, size_t n, bal_dtype dtype);
} bal_values_row;

/* Borrowed, never NULL for a dtype below BAL_DTYPES. I64 and U64 beyond 2^53
 * are rounded. */
const bal_values_row *bal_values_of(bal_dtype dtype);

#endif
