/* Bytes like those that models have, drawn from a seed. */
#ifndef SUPPORT_BYTES_H
#define SUPPORT_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* What follows is the same each time for the same seed. */
void bytes_seed(uint64_t seed);

void bytes_zero(uint8_t *to, size_t len);
void bytes_constant(uint8_t *to, size_t len);
void bytes_random(uint8_t *to, size_t len);
void bytes_text(uint8_t *to, size_t len);
void bytes_bf16(uint8_t *to, size_t len);
void bytes_f16(uint8_t *to, size_t len);
void bytes_f32(uint8_t *to, size_t len);
void bytes_difference(uint8_t *to, size_t len);
void bytes_f64(uint8_t *to, size_t len);

typedef struct bytes_kind {
    const char *name;
    void (*fill)(uint8_t *to, size_t len);
} bytes_kind;

enum { BYTES_KINDS = 9 };

extern const bytes_kind bytes_kinds[BYTES_KINDS];

#endif
