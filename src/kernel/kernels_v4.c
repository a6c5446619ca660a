/* The loops of kernels.inc for x86-64-v4 (AVX-512); the build sets -march. */
#include "kernel/tables.h"

#define TABLE bal_kernels_v4
#define ISA   "v4"
#include "kernel/kernels.inc"
