/* What sums over inputs and sums over elements share: torch's cascade of four
 * levels, which keeps a long chain of F32 additions from losing its tail
 * (aten/src/ATen/native/cpu/SumKernel.cpp). A chain adds its values to level 0;
 * after every 2^p of them level 0 goes to level 1 and starts anew, after every
 * 2^2p level 1 to level 2, after every 2^3p level 2 to level 3. */
#ifndef MERGE_ARITH_SUM_H
#define MERGE_ARITH_SUM_H

#include <stdint.h>

enum { BAL_SUM_LEVELS = 4, BAL_SUM_CHAINS = 4 };

/* p for a chain of so many values. */
static inline unsigned bal_sum_power(uint64_t values)
{
    unsigned bits = 1;

    while (bits < 64 && (uint64_t)1 << bits < values)
        bits++;
    return bits / BAL_SUM_LEVELS < 4 ? 4 : bits / BAL_SUM_LEVELS;
}

/* How many levels are handed up after so many values, 0 … 3. */
static inline unsigned bal_sum_carries(uint64_t values, unsigned power)
{
    uint64_t mask = ((uint64_t)1 << power) - 1;
    unsigned levels = 0;

    while (levels < BAL_SUM_LEVELS - 1 && !(values >> levels * power & mask))
        levels++;
    return levels;
}

#endif
