/* Inside codec/ only: the loops over elements that are compiled for several
 * instruction sets. All give the same; which table is used follows
 * kernel/'s. */
#ifndef CODEC_LOOPS_H
#define CODEC_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BAL_RANS_BITS   12 /* of a probability */
#define BAL_RANS_SLOTS  (1 << BAL_RANS_BITS)
#define BAL_RANS_TOKENS 256
#define BAL_RANS_TABLES 16
#define BAL_RANS_LANES  128        /* states that take turns, at most */
#define BAL_RANS_WIDE   64         /* as many, or LANES, are for vectors */
#define BAL_RANS_LOW    (1u << 15) /* states are in [LOW, LOW << 16) */
#define BAL_RANS_PIECE  15 /* raw bits that go through a state at once */

/* Elements between memory and the coder. */
#define BAL_TILE 2048
typedef struct bal_tile {
    uint16_t symbol[BAL_TILE]; /* encoding: table << 8 | token */
    uint8_t table[BAL_TILE];   /* decoding */
    uint8_t token[BAL_TILE];   /* decoding */
    uint8_t bits[BAL_TILE];    /* encoding: raw bits behind the token */
    uint32_t raw[BAL_TILE];
    uint32_t high[BAL_TILE]; /* bits from 32 up, where there may be any */
} bal_tile;

/* How a symbol is put into a state, as loops_base.c says: freq (13 bits), bias
 * (13), shift (from bit 26 on), reciprocal (from bit 32 on). In one number,
 * since what vectors pay for is how many are fetched. */
typedef struct bal_rans_codes {
    uint64_t code[BAL_RANS_TABLES * BAL_RANS_TOKENS];
} bal_rans_codes;

/* The states and where words go; words are written from the end down. */
typedef struct bal_rans_push {
    uint32_t state[BAL_RANS_LANES];
    const bal_rans_codes *codes;
    uint8_t *at;  /* of the word written last */
    size_t lanes; /* WIDE or LANES for push of bal_loops */
    unsigned steps;
} bal_rans_push;

typedef struct bal_rans_pull {
    uint32_t state[BAL_RANS_LANES];
    /* By table and slot: token (8 bits), freq - 1 (12), slot in symbol (12). */
    const uint32_t *slots;
    const uint32_t *bits; /* raw bits by token */
    unsigned rule;     /* not 0: bits[t] is (t >> rule) - 1, and 0 where less */
    const uint8_t *at; /* of the next word */
    const uint8_t *end;
    size_t lanes;
    unsigned steps; /* 1, and one for each piece a token may have */
} bal_rans_pull;

/* What is said of numbers by width goes by log2 of it. */
typedef struct bal_anchor {
    const void *tuned;
    const void *base;
    uint32_t low; /* the exponent of the first table */
    uint32_t shift;
    uint32_t mask;
} bal_anchor;

/* What of an F32 is coded by tables (trimmed.c): exponent << 5 | significant
 * bits of the mantissa, and two that exponent 0 has no use for. */
#define BAL_PAIRS      (256 << 5)
#define BAL_PAIR_ZERO  30 /* +0 */
#define BAL_PAIR_WHOLE 31 /* all 32 bits are raw */

typedef struct bal_loops {
    const char *isa;
    /* Fill symbol, bits, raw of n elements from `from` on. */
    void (*take_apart[4])(bal_tile *tile, const bal_anchor *anchor, size_t from,
                          size_t n);
    /* Fill table. */
    void (*contexts[4])(bal_tile *tile, const bal_anchor *anchor, size_t from,
                        size_t n);
    /* The tuned elements of token and raw, to `to`. */
    void (*join[4])(void *to, const bal_tile *tile, const bal_anchor *anchor,
                    size_t from, size_t n);
    /* The pairs of n elements F32, up to TILE, in any order; how many, since
     * those of zeros may be left out. */
    size_t (*pairs)(uint16_t *pair, const uint8_t *from, size_t n);
    /* Fill symbol, bits, raw; token is by pair, 0: WHOLE. */
    void (*trim)(bal_tile *tile, const uint8_t *from, const uint8_t *token,
                 size_t n);
    /* The elements of token and raw, to `to`; pair is by token. */
    void (*untrim)(uint8_t *to, const bal_tile *tile, const uint32_t *pair,
                   size_t n);
    /* The last of the tile's whole rounds, n elements, backwards. There is
     * room for the words. */
    void (*push)(bal_rans_push *self, const bal_tile *tile, size_t n);
    /* As many whole rounds, of n elements, as need no check; how many elements
     * that were. */
    size_t (*pull)(bal_rans_pull *self, bal_tile *tile, size_t n);
    /* The same, of WIDE or LANES lanes, of elements of 2 bytes that are
     * distances, through no tile: to the tuned ones, of which the first is
     * `from` in the base. */
    size_t (*pull_two)(bal_rans_pull *self, uint8_t *to,
                       const bal_anchor *anchor, size_t from, size_t n);
} bal_loops;

extern const bal_loops bal_loops_base;
extern const bal_loops bal_loops_v3;
extern const bal_loops bal_loops_v4;

/* The loops for the kernels in use. */
const bal_loops *bal_loops_use(void);
size_t bal_loops_count(void);
/* NULL: no such loops, or this CPU does not run them. */
const bal_loops *bal_loops_at(size_t i);

/* By which of eight lanes take a word: four bits a lane, how many of those
 * below it take one. By which give a word: they, four bits each, the last
 * highest. */
extern const uint32_t bal_spread_by[256];
extern const uint32_t bal_squeeze_by[256];

/* The scalar reference. Rounds as push and pull do them; a round of any n up to
 * LANES, with checks (false: words are missing). */
void bal_rans_push_rounds(bal_rans_push *self, const bal_tile *tile, size_t n);
size_t bal_rans_pull_rounds(bal_rans_pull *self, bal_tile *tile, size_t n);
void bal_rans_push_round(bal_rans_push *self, const bal_tile *tile, size_t from,
                         size_t n);
bool bal_rans_pull_round(bal_rans_pull *self, bal_tile *tile, size_t at,
                         size_t n);

#endif
