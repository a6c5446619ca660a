/* IEEE 754, bfloat16, and the 8-bit floats of arXiv:2209.05433. */
#include "codec/numbers.h"

#include <stddef.h>

static const bal_number_row rows[] = {
    [BAL_NUMBER_BF16] = { BAL_BF16, 0xff, 2, 7, 4, 1 },
    [BAL_NUMBER_F16] = { BAL_F16, 0x1f, 2, 10, 4, 0 },
    [BAL_NUMBER_F32] = { BAL_F32, 0xff, 4, 23, 4, 1 },
    [BAL_NUMBER_F64] = { BAL_F64, 0x7ff, 8, 52, 8, 4 },
    [BAL_NUMBER_E4M3] = { BAL_U8, 0xf, 1, 3, 0, 0 },
    [BAL_NUMBER_E5M2] = { BAL_U8, 0x1f, 1, 2, 0, 0 },
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) == BAL_NUMBERS,
               "every kind needs its row, or none");

const bal_number_row *bal_number_find(unsigned kind)
{
    return kind < BAL_NUMBERS && rows[kind].width ? &rows[kind] : NULL;
}
