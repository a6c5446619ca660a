/* Inside codec/ only: how the numbers are made that have an exponent. */
#ifndef CODEC_NUMBERS_H
#define CODEC_NUMBERS_H

#include "ballast.h"

#include "codec/codec.h"

typedef struct bal_number_row {
    bal_dtype dtype; /* for the kernels, where there is a difference */
    uint16_t mask;   /* of the exponent, shifted down */
    uint8_t width;   /* bytes; 0: has no exponent, cannot be anchored */
    uint8_t shift;   /* of the exponent's lowest bit */
    uint8_t wide;    /* bytes of a difference of two; 0: they have none */
    uint8_t turn;    /* bits to turn left: the exponent's low byte on top */
} bal_number_row;

/* NULL: no such number, or one without an exponent. */
const bal_number_row *bal_number_find(unsigned number);

#endif
