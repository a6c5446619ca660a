/* The loops of kernels.inc for x86-64-v3 (AVX2); the build sets -march. */
#include "kernel/tables.h"

#define TABLE bal_kernels_v3
#define ISA   "v3"
#include "kernel/kernels.inc"
