/* What a fuzz target defines: one call a test input, always 0. */
#ifndef SUPPORT_FUZZ_H
#define SUPPORT_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
