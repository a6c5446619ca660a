/* Inside codec/ only: order-0 Huffman coding of a byte plane, in eight streams.
 * What is on disk is in docs/format.md. */
#ifndef CODEC_HUFFMAN_H
#define CODEC_HUFFMAN_H

#include "codec/codec.h"

#define BAL_HUFFMAN_SYMBOLS 256
#define BAL_HUFFMAN_BITS    11 /* of the longest code */
#define BAL_HUFFMAN_STREAMS 8

/* ---- the header of a plane, by offset ----------------------------------- */

enum {
    BAL_HUFFMAN_AT_LENGTHS = 0,   /* u4[256], the even symbol in the low half */
    BAL_HUFFMAN_AT_SEGMENT = 128, /* u32: bytes of all segments but the last */
    BAL_HUFFMAN_AT_PATCHES = 132, /* u32: how many */
    BAL_HUFFMAN_AT_SIZES = 136,   /* u32[8]: bytes of each stream */
    BAL_HUFFMAN_HEADER = 168,
    BAL_HUFFMAN_PATCH = 5, /* bytes of one: u32 where, u8 what */
};

/* ---- codes -------------------------------------------------------------- */

typedef struct bal_huffman_code {
    uint8_t length[BAL_HUFFMAN_SYMBOLS]; /* 0: has none */
    uint16_t bits[BAL_HUFFMAN_SYMBOLS];
} bal_huffman_code;

/* The lengths that make the fewest bits of so many of each, none over
 * BAL_HUFFMAN_BITS. At least two counts are not 0. */
void bal_huffman_lengths(uint8_t *length, const uint32_t *count);
/* The canonical codes of these lengths. False unless they are the lengths of a
 * complete code: no bits that mean two things or none. */
bool bal_huffman_number(bal_huffman_code *code);

/* ---- planes ------------------------------------------------------------- */

/* What one thread works with: half a megabyte, reused from plane to plane. */
typedef struct bal_huffman bal_huffman;

/* Append a plane; *gains is false, and `to` as before, if it takes more than
 * `most` bytes. */
BAL_CHECK int bal_huffman_append(bal_coder *coder, bal_buf *to, bal_bytes from,
                                 size_t most, bool *gains, bal_error *err);
/* Fill exactly len bytes from a plane; ECORRUPT if it does not say so. */
BAL_CHECK int bal_huffman_fill(bal_coder *coder, void *to, size_t len,
                               bal_bytes plane, bal_error *err);

#endif
