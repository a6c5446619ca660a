/* Inside codec/ only: elements as tokens of one of up to 16 tables, with raw
 * bits behind them, in one stream of interleaved states. What is on disk is in
 * docs/format.md. */
#ifndef CODEC_RANS_H
#define CODEC_RANS_H

#include "codec/codec.h"
#include "codec/loops.h"

/* What one thread works with, reused from block to block. */
typedef struct bal_rans bal_rans;

/* How tables are written: each frequency, or how high each magnitude stands. */
typedef enum bal_rans_form {
    BAL_RANS_EXACT,
    BAL_RANS_ROUGH, /* where there is no token 1 */
} bal_rans_form;

#define BAL_RANS_HEIGHTS (BAL_RANS_TOKENS / 2)

/* By magnitude, in half octaves; only how they differ counts. */
typedef struct bal_rans_shape {
    size_t last;
    int32_t height[BAL_RANS_HEIGHTS];
} bal_rans_shape;

struct bal_rans {
    bal_tile tile;
    /* log2 of 1 … SLOTS, in 65536ths */
    uint32_t log[BAL_RANS_SLOTS + 1];

    /* ---- encoding -------------------------------------------------------- */
    uint32_t count[4][BAL_RANS_TABLES * BAL_RANS_TOKENS]; /* summed in [0] */
    uint16_t freq[BAL_RANS_TABLES][BAL_RANS_TOKENS];      /* of each context */
    bal_rans_form form;
    bal_rans_shape shape[BAL_RANS_TABLES]; /* of each context, if ROUGH */
    uint16_t starts; /* bit i: context i has a table of its own */
    uint64_t bits;   /* what all will take, about; the header apart */
    bal_rans_codes codes;

    /* ---- both ------------------------------------------------------------ */
    uint32_t raw[BAL_RANS_TOKENS]; /* raw bits behind a token, as told */
    unsigned rule;                 /* as of bal_rans_pull; 0: none */

    /* ---- decoding -------------------------------------------------------- */
    uint32_t slots[BAL_RANS_TABLES * BAL_RANS_SLOTS];
    bool used[BAL_RANS_TOKENS]; /* that have slots */
};

/* Where elements come from: fill symbol, bits, raw (and high, where a token has
 * more than 32 bits) of n from `from` on. */
typedef struct bal_source {
    void (*fill)(bal_tile *tile, const void *self, size_t from, size_t n);
    const void *self;
    size_t count;
} bal_source;

/* Raw bits of tokens t: (t >> rule) - 1, or 0 where that is less. */
void bal_rans_rule(bal_rans *self, unsigned rule);
/* None, of any token; raw is for the caller to fill. */
void bal_rans_no_rule(bal_rans *self);
/* Count elements, after what was counted since clear. */
void bal_rans_clear(bal_rans *self);
void bal_rans_count(bal_rans *self, const bal_source *source);
/* Tables for what was counted, and bits; raw is set. */
void bal_rans_fit(bal_rans *self);
/* Bytes that n elements will take, about. */
uint64_t bal_rans_size(const bal_rans *self, size_t n);
/* Append tables, states and words of the elements that were counted; *gains
 * is false, and `to` as before, if it takes more than `most` bytes. */
BAL_CHECK int bal_rans_append(bal_rans *self, const bal_loops *loops,
                              bal_buf *to, const bal_source *source,
                              size_t most, bool *gains, bal_error *err);

/* Where they go: `direct` takes as many whole rounds, of WIDE or LANES lanes,
 * as it can take by itself, and says of how many elements that was; of the
 * others `before` fills table, `after` takes token, raw and high. */
typedef struct bal_sink {
    size_t (*direct)(bal_rans_pull *in, const void *self, size_t n);
    void (*before)(bal_tile *tile, const void *self, size_t from, size_t n);
    void (*after)(bal_tile *tile, const void *self, size_t from, size_t n);
    const void *self;
} bal_sink;

/* A sink's `direct` that takes none. */
size_t bal_rans_none_direct(bal_rans_pull *in, const void *self, size_t n);
/* The n elements of exactly these bytes; raw is set. ECORRUPT. */
BAL_CHECK int bal_rans_fill(bal_rans *self, const bal_loops *loops,
                            const bal_sink *sink, size_t n, bal_bytes from,
                            bal_error *err);

/* ---- tables (rans_tables.c) --------------------------------------------- */

void bal_rans_prepare(bal_rans *self); /* log */
/* log2 of any number but 0, in 65536ths. */
uint32_t bal_rans_log(const bal_rans *self, uint64_t value);
/* Bits of counts under frequencies of their own, in 65536ths; 0 of none. */
uint64_t bal_rans_cost(const bal_rans *self, const uint32_t *count);
/* Frequencies that sum to SLOTS, none 0 whose count is not. */
void bal_rans_scale(const bal_rans *self, uint16_t *freq,
                    const uint32_t *count);
/* Bits that a table takes. */
uint64_t bal_rans_table_bits(const uint16_t *freq);
uint64_t bal_rans_shape_bits(const bal_rans_shape *shape);
/* At most this many bytes, of all tables. */
#define BAL_RANS_TABLES_MOST 8192
/* To TABLES_MOST bytes; how many it took. */
size_t bal_rans_put_tables(uint8_t *to, const bal_rans *self);
/* Fill the slots of all contexts. ECORRUPT unless the tables take exactly
 * these bytes. */
BAL_CHECK int bal_rans_get_tables(bal_rans *self, unsigned starts,
                                  bal_bytes from, bal_error *err);

/* ---- shapes (rans_shape.c) ---------------------------------------------- */

/* Of counts that have no token 1. */
void bal_rans_set_heights(const bal_rans *self, bal_rans_shape *out,
                          const uint32_t *count);
/* Frequencies that sum to SLOTS, none 0 up to the last but token 1's. */
void bal_rans_from_shape(uint16_t *freq, const bal_rans_shape *shape);

#endif
