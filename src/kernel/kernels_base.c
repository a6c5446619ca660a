/* The loops of kernels.inc for what every CPU of this architecture runs. */
#include "kernel/tables.h"

#define TABLE bal_kernels_base
#define ISA   "base"
#include "kernel/kernels.inc"
