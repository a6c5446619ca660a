/* Inside codec/huffman_*.c only: what one thread codes and decodes with. */
#ifndef CODEC_HUFFMAN_WORK_H
#define CODEC_HUFFMAN_WORK_H

#include "codec/huffman.h"

#define BAL_HUFFMAN_PAIRS   65536
#define BAL_HUFFMAN_PATCHES 8192 /* at most, that an encoder makes */

struct bal_huffman {
    bal_huffman_code code;

    /* decoding: by the next BAL_HUFFMAN_BITS bits */
    uint64_t entries[1 << BAL_HUFFMAN_BITS];

    /* encoding */
    uint64_t pairs[BAL_HUFFMAN_PAIRS]; /* by two symbols, first the low byte */
    uint8_t used[BAL_HUFFMAN_SYMBOLS]; /* that have pairs */
    size_t used_count;                 /* 0: pairs was never filled */
    const uint8_t *plane;
    uint8_t common; /* the symbol that stands in for one without a code */
    bool few;       /* eight symbols mostly take 56 bits or fewer */
    uint32_t patches;
    uint32_t where[BAL_HUFFMAN_PATCHES];
    uint8_t what[BAL_HUFFMAN_PATCHES];
};

#endif
