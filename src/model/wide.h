/* Arithmetic on ranges of floats of any dtype: what minus, plus, cast and diff
 * compute with. Everything happens in F32, in F64 where one side is F64. */
#ifndef MODEL_WIDE_H
#define MODEL_WIDE_H

#include "model/model.h"

/* The dtype that differences of two float dtypes are in: F32 or F64. */
bal_dtype bal_wide_of(bal_dtype a, bal_dtype b);
/* n elements of a float dtype as wide, and back with one rounding. */
void bal_widen(bal_dtype wide, void *out, bal_dtype from, const void *in,
               size_t n);
void bal_narrow(bal_dtype to, void *out, bal_dtype wide, const void *in,
                size_t n);
/* out = a - b, out = a + b; out may be a or b. */
void bal_wide_sub(bal_dtype wide, void *out, const void *a, const void *b,
                  size_t n);
void bal_wide_add(bal_dtype wide, void *out, const void *a, const void *b,
                  size_t n);
/* Wrapping difference and sum of bit patterns of a float dtype. */
void bal_residual_sub(bal_dtype of, void *out, const void *a, const void *b,
                      size_t n);
void bal_residual_add(bal_dtype of, void *out, const void *a, const void *b,
                      size_t n);

/* in itself where it is wide already, else its values in room. */
const void *bal_widened(bal_dtype wide, void *room, bal_dtype from,
                        const void *in, size_t n);

/* ---- a range of several entries at once ---------------------------------- */

enum { BAL_SOURCES_MAX = 3 };

typedef struct bal_operand {
    bal_model *model; /* NULL: zeros */
    size_t entry;
    size_t width; /* bytes of an element */
} bal_operand;

/* The same elements of every source, few enough for a cache: BAL_CHUNK of them,
 * but for the last of a range. */
enum { BAL_CHUNK = 4096 };
typedef struct bal_chunk {
    size_t n;
    const void *raw[BAL_SOURCES_MAX]; /* aligned to the source's width */
    void *room[BAL_SOURCES_MAX];      /* for n elements of 8 bytes */
    void *to;                         /* aligned to the result's width */
} bal_chunk;
typedef void bal_chunk_fn(const bal_chunk *chunk, void *ctx);

typedef struct bal_wide_job {
    bal_operand sources[BAL_SOURCES_MAX];
    size_t count;
    size_t width; /* bytes of an element of the result, 0: there is none */
    size_t step;  /* elements that are read at once, a multiple of BAL_CHUNK; 0:
                     as many as are good for most */
    bal_chunk_fn *fn;
    void *ctx;
} bal_wide_job;

/* Read elements [at, at + n) of all sources and give them to fn, chunk by
 * chunk, in their order. to: where the result goes; it need not be aligned. at
 * is a multiple of 8. Uses up to 4 MiB of its own, or as much as a step of
 * every source, whichever thread calls. */
BAL_CHECK int bal_wide_run(const bal_wide_job *job, uint64_t at, uint64_t n,
                           void *to, bal_error *err);

#endif
