/* The tables that kernels_*.c make of kernels.inc; only dispatch.c asks for
 * them by name. */
#ifndef KERNEL_TABLES_H
#define KERNEL_TABLES_H

#include "kernel/kernels.h"

extern const bal_kernels bal_kernels_base;
extern const bal_kernels bal_kernels_v3; /* x86-64-v3: AVX2 */
extern const bal_kernels bal_kernels_v4; /* x86-64-v4: AVX-512 */

#endif
