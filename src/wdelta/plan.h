/* Saving: how each tensor is to be stored, and where in the file. */
#ifndef WDELTA_PLAN_H
#define WDELTA_PLAN_H

#include "wdelta/file.h"

/* Elements that are read and encoded at once: a multiple of 256, so that signs
 * fill bytes and small groups do not cross tiles. */
#define BAL_WD_TILE ((size_t)1 << 17)

/* Memory of the calling thread while a model is saved; what is read below takes
 * none of these. */
enum bal_wd_slots {
    BAL_WD_SLOT_HASH = 3,
    BAL_WD_SLOT_RAW,
    BAL_WD_SLOT_TUNED,
    BAL_WD_SLOT_BASE,
    BAL_WD_SLOT_DELTA,
    BAL_WD_SLOT_BINS,
    BAL_WD_SLOT_PLACES,
    BAL_WD_SLOT_VALUES,
    BAL_WD_SLOT_CODES,
    BAL_WD_SLOT_OUT,
    BAL_WD_SLOT_WIDE,
    BAL_WD_SLOT_KEPT,
};

/* What a save reads: tuned - parent, where parent is the base or, of a chain,
 * the F32 sum so far. */
typedef struct bal_wd_source {
    bal_model *tuned, *parent, *base;
    bal_work *work;
} bal_wd_source;

typedef struct bal_wd_plan {
    const char *name;
    size_t tuned, parent, base; /* entries */
    uint64_t n;
    size_t tiles;
    bal_wd_kind kind;
    double setting; /* outlier_fraction, sparsity */
    /* Kept apart: magnitudes over least, and the first `ties` that equal it. */
    uint64_t kept;
    uint32_t least;
    uint64_t ties;
    uint64_t *before; /* by tile, and at the end: kept in the tiles before */
    uint64_t *tied;   /* by tile: ties in the tiles before, kept or not */
    bal_wd_number index, value;
    /* int4 */
    float low, range; /* range 0: every code is 0 */
    uint16_t scale, zero;
    uint8_t (*edges)[2]; /* by tile: half bytes at its ends, NO_EDGE */
    /* quantized */
    uint64_t columns;
    uint16_t *scales; /* NULL: groups within a tile, computed as they go */
    /* lossless */
    bool anchored; /* coded against the parent's tensor */
    bal_id digest;
    uint32_t *sizes; /* by piece */
    uint8_t *codecs;
    uint64_t payload; /* bytes of all pieces */
    /* In the file. */
    uint64_t offsets[BAL_WD_FIELDS];
} bal_wd_plan;

enum { BAL_WD_NO_EDGE = 16 };

void bal_wd_plan_done(bal_wd_plan *self);
/* Begin anew: what one way of storing it had is freed. */
void bal_wd_plan_reset(bal_wd_plan *self);

/* d = tuned - parent of elements [at, at + n), n <= BAL_WD_TILE, in F32. */
BAL_CHECK int bal_wd_difference(float *d, const bal_wd_source *from,
                                const bal_wd_plan *plan, uint64_t at, size_t n,
                                bal_error *err);

/* Which `keep` elements are the largest; of equal ones those that come first.
 * Fills kept, least, ties, before, tied, and low and high: the ends of what is
 * not kept (0 where nothing is left). */
typedef struct bal_wd_ends {
    float low, high;
    uint64_t rest;
    bool finite; /* every difference fits a float16 */
} bal_wd_ends;
BAL_CHECK int bal_wd_select(bal_wd_plan *plan, bal_wd_ends *ends,
                            const bal_wd_source *from, uint64_t keep,
                            bal_error *err);
/* All that are not 0. */
BAL_CHECK int bal_wd_select_all(bal_wd_plan *plan, const bal_wd_source *from,
                                bal_error *err);
/* How many are not 0, and whether all fit a float16. */
BAL_CHECK int bal_wd_census(uint64_t *nonzero, bool *finite,
                            const bal_wd_plan *plan, const bal_wd_source *from,
                            bal_error *err);

/* The scale of every row of plan->columns, as numpy's mean computes it. */
BAL_CHECK int bal_wd_scales(bal_wd_plan *plan, const bal_wd_source *from,
                            bal_error *err);
/* Of one group of at most 128. */
uint16_t bal_wd_scale_of(const float *d, size_t n);

/* Choose and plan; with options->max_error the smallest that keeps it. */
BAL_CHECK int bal_wd_choose(bal_wd_plan *plan, const bal_wd_source *from,
                            const bal_wdelta_options *options, bal_error *err);

/* Pieces of a lossless tensor. */
size_t bal_wd_pieces(const bal_wd_plan *plan);
/* Encodes all pieces of lossless plans and writes them behind one another, the
 * first tensor's records at `at`; fills sizes, codecs, payload. Each piece is
 * decoded again, and is what it was. */
BAL_CHECK int bal_wd_pieces_write(bal_wd_plan *plans, size_t count,
                                  const bal_wd_source *from, int fd,
                                  uint64_t at, bal_error *err);

/* ---- tiles -------------------------------------------------------------- */

/* A tile as it will be stored; of the calling thread. */
typedef struct bal_wd_tile {
    uint64_t at;
    size_t n;
    const float *d;
    size_t count;     /* kept in it */
    uint32_t *places; /* in the tile */
    float *values;    /* rounded to plan->value */
    uint8_t *codes;   /* int4: of those that are not kept, in their order */
    size_t code_count;
} bal_wd_tile;

BAL_CHECK int bal_wd_tile_read(bal_wd_tile *out, const bal_wd_plan *plan,
                               const bal_wd_source *from, size_t tile,
                               bal_error *err);
/* What a reader makes of it: y, n floats. */
void bal_wd_tile_value(float *y, const bal_wd_tile *self,
                       const bal_wd_plan *plan);
/* Into the file, but for the half bytes at its ends. */
BAL_CHECK int bal_wd_tile_write(const bal_wd_tile *self, bal_wd_plan *plan,
                                size_t tile, const bal_wd_source *from, int fd,
                                bal_error *err);
BAL_CHECK int bal_wd_edges_write(const bal_wd_plan *plan, int fd,
                                 bal_error *err);
BAL_CHECK int bal_wd_pwrite(int fd, uint64_t at, const void *data, size_t len,
                            bal_error *err);

#endif
