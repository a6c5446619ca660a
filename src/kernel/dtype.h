/* The dtypes of safetensors as rows: name, width, and how their values become
 * floats and back. */
#ifndef KERNEL_DTYPE_H
#define KERNEL_DTYPE_H

#include "ballast.h"

/* What a dtype is to arithmetic. */
typedef enum bal_class {
    BAL_CLASS_FLOAT, /* BF16 F16 F32 F64: differences, merges */
    BAL_CLASS_SMALL, /* FP8, FP6, FP4: floats kept as replacements */
    BAL_CLASS_OTHER, /* integers, booleans, complex: replacements */
} bal_class;

typedef struct bal_dtype_row {
    const char *name;
    unsigned bits;
    bal_class class_of;
    /* The dtype that differences of it are recorded in: F32, F64 for F64. */
    bal_dtype wide;
    /* The unsigned integer of the same width, for residuals. */
    bal_dtype bits_as;
} bal_dtype_row;

/* Borrowed, never NULL for a dtype below BAL_DTYPES. */
const bal_dtype_row *bal_dtype_row_of(bal_dtype dtype);
/* Exact, case-sensitive; false: no such dtype. */
bool bal_dtype_find(bal_dtype *out, const char *name, size_t len);
/* Elements of a shape, and the bytes they take; false on overflow or when
 * sub-byte elements do not fill whole bytes. A zero dimension anywhere gives
 * zero, whatever the others are. */
bool bal_shape_size(uint64_t *elements, uint64_t *bytes, bal_dtype dtype,
                    const uint64_t *shape, uint32_t rank);

#endif
