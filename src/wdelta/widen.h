/* Tensors of any dtype that deltatensors takes as float32 and back. */
#ifndef WDELTA_WIDEN_H
#define WDELTA_WIDEN_H

#include "model/model.h"

/* Is there a way from the dtype to F32 and back? Floats, integers, BOOL. */
bool bal_wd_widens(bal_dtype dtype);
/* n elements as F32, each rounded once. */
void bal_wd_widen(float *to, bal_dtype from, const void *in, size_t n);
/* And back, rounded once: floats and integers to the nearest, ties to even;
 * what an integer cannot hold becomes its nearest end, a NaN 0; BOOL is whether
 * the nearest integer is not 0. */
void bal_wd_narrow(bal_dtype to, void *out, const float *in, size_t n);

#endif
