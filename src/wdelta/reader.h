/* The difference of one tensor, added to floats range after range. */
#ifndef WDELTA_READER_H
#define WDELTA_READER_H

#include "wdelta/file.h"

/* Elements that are computed at once: what of a tensor is ever in memory. A
 * multiple of 8. */
#define BAL_WD_CHUNK ((size_t)32768)

typedef struct bal_wd_reader {
    const bal_wdelta *file;
    const bal_wd_tensor *tensor;
    uint64_t at, stop;       /* the next element, and the range's end */
    uint64_t next, end;      /* of the indices: what is to come in the range */
    uint64_t batch, batched; /* indices that are in raw: first, how many */
    size_t count;            /* of the chunk's */
    uint32_t *places;        /* in the chunk */
    float *values;
    float *room;  /* chunk + 8 floats */
    uint8_t *raw; /* 4 bytes a chunk's element */
    uint8_t *index_raw, *value_raw;
    float *table; /* int4: 256 pairs */
    void *memory;
} bal_wd_reader;

/* For elements [at, at + n) of a tensor that is not lossless; at is a multiple
 * of 8. ECORRUPT. */
BAL_CHECK int bal_wd_reader_open(bal_wd_reader *out, const bal_wdelta *file,
                                 const bal_wd_tensor *tensor, uint64_t at,
                                 uint64_t n, bal_error *err);
/* x += the difference of the next n elements, n <= BAL_WD_CHUNK, a multiple of
 * 8 unless it ends the tensor. ECORRUPT: indices that do not ascend. */
BAL_CHECK int bal_wd_reader_add(bal_wd_reader *self, float *x, size_t n,
                                bal_error *err);
void bal_wd_reader_done(bal_wd_reader *self);

/* The values of the 16 codes, as deltatensors computes them, as 256 pairs by
 * byte: the upper half's value first. */
void bal_wd_table(float table[512], uint16_t scale, uint16_t zero);
float bal_wd_half(uint16_t bits);
/* float64 to float16, one rounding. */
uint16_t bal_wd_to_half(double value);

#endif
