/* Inside codec/ only: one thread's state, and what the rows are made of. */
#ifndef CODEC_CODER_H
#define CODEC_CODER_H

#include <zstd.h>

#include "codec/codec.h"
#include "codec/huffman.h"
#include "codec/rans.h"

/* Memory of the coder's own, kept from call to call: what is in use at once has
 * rooms of its own. */
typedef enum bal_room {
    BAL_ROOM_PLANES,
    BAL_ROOM_TURNED,
    BAL_ROOM_TUNED, /* elements that differences are of */
    BAL_ROOM_GAPS,
    BAL_ROOM_FEW, /* the elements that changed */
    BAL_ROOM_FEW_BASE,
    BAL_ROOM_PAIRS, /* how many there are of each */
    BAL_ROOMS,
} bal_room;

struct bal_coder {
    ZSTD_CCtx *packer;
    ZSTD_DCtx *unpacker;
    const bal_loops *loops;
    struct {
        uint8_t *data;
        size_t len;
    } rooms[BAL_ROOMS];
    bal_huffman *huffman; /* made when first asked for */
    bal_rans *rans;       /* so is this */
};

/* At least len bytes. NULL: no memory. */
uint8_t *bal_coder_room(bal_coder *self, bal_room room, size_t len);

/* NULL: no memory. */
bal_huffman *bal_coder_huffman(bal_coder *self);
bal_rans *bal_coder_rans(bal_coder *self);

/* How zstd is set. 0 leaves what the level says. */
typedef struct bal_tuning {
    int level;
    int hash_log;
    int min_match;
    int skip; /* bytes not looked at after each look; literals are Huffman */
} bal_tuning;

/* What an effort means: the tunings tried (the smallest frame stays; a level
 * of 0 ends the list), and how little is still a gain. */
typedef struct bal_effort_row {
    bal_tuning text[4];
    bal_tuning plane[4];
    bal_tuning noise[4];
    unsigned least;   /* per mille of a plane that must be saved */
    unsigned samples; /* bytes looked at before trying; 0: always try */
} bal_effort_row;

/* Of any effort but NONE. */
const bal_effort_row *bal_effort_find(bal_effort effort);

/* Append from as one frame of at most `most` bytes; *gains is false, and `to`
 * as before, if it takes more. */
BAL_CHECK int bal_frame_append(bal_coder *coder, bal_buf *to, bal_bytes from,
                               size_t most, const bal_tuning *tunings,
                               bool *gains, bal_error *err);
/* Fill exactly len bytes from one frame that ends where the bytes do. */
BAL_CHECK int bal_frame_fill(bal_coder *coder, void *to, size_t len,
                             bal_bytes frame, bal_error *err);

typedef enum bal_texture {
    BAL_TEXTURE_ANY,    /* not known to be one of the others */
    BAL_TEXTURE_NOISE,  /* bytes by chance, some more often than others */
    BAL_TEXTURE_RANDOM, /* no code of single bytes would save 2 percent */
} bal_texture;

/* Of a sample of so many of len bytes that are step apart; ANY if there are not
 * as many. Sees runs, and no other repetition. */
bal_texture bal_texture_of(const uint8_t *data, size_t len, size_t step,
                           size_t samples);

/* What a coded plane may take, to be worth it. */
size_t bal_plane_most(size_t len, const bal_effort_row *row);
/* Append one frame of numbers' bytes, tuned by what a sample says they are;
 * *gains as in bal_frame_append. */
BAL_CHECK int bal_plane_append(bal_coder *coder, bal_buf *to, bal_bytes from,
                               const bal_effort_row *row, bool *gains,
                               bal_error *err);

/* ---- the rows: one a file, listed in codec.c ---------------------------- */

extern const bal_codec bal_codec_raw;
extern const bal_codec bal_codec_zstd;
extern const bal_codec bal_codec_split;
extern const bal_codec bal_codec_turned;
extern const bal_codec bal_codec_anchored;
extern const bal_codec bal_codec_trimmed;
extern const bal_codec bal_codec_sparse;

#endif
