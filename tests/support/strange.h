/* Random bits that hit what goes wrong: signed zeros, subnormals, infinities,
 * NaN payloads, ties. The same on every machine. */
#ifndef SUPPORT_STRANGE_H
#define SUPPORT_STRANGE_H

#include "ballast.h"

/* The next 64 random bits. */
uint64_t strange_bits(uint64_t *state);
/* size bytes of elements of a dtype. */
void strange_fill(void *to, uint64_t size, bal_dtype dtype, uint64_t *state);

#endif
