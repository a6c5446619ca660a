/* The dtype that values of several dtypes are merged to. */
#ifndef MERGE_JOIN_H
#define MERGE_JOIN_H

#include "ballast.h"

/* Of two of BF16 F16 F32 F64: the one if they are the same, else the smaller of
 * F32 and F64 that holds both. */
static inline bal_dtype bal_dtype_join(bal_dtype a, bal_dtype b)
{
    if (a == b)
        return a;
    return a == BAL_F64 || b == BAL_F64 ? BAL_F64 : BAL_F32;
}

#endif
