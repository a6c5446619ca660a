/* A model's tensors as one safetensors file that goes through a pipe, so that a
 * child gets them without a file; and its side files as files, which are
 * small. */
#ifndef PROBE_STREAM_H
#define PROBE_STREAM_H

#include "core/child.h"
#include "model/model.h"

/* The descriptor that the child finds it at, told in BALLAST_MODEL_FD. */
enum { BAL_STREAM_FD = 3 };

typedef struct bal_stream {
    bal_model *model; /* borrowed */
    size_t *entries;  /* tensors, in the order of the file */
    size_t count;
    bal_buf head; /* length and header */
    bool begun;
    size_t at;       /* the entry that is being read */
    uint64_t offset; /* in it */
} bal_stream;

BAL_CHECK int bal_stream_init(bal_stream *self, bal_model *model,
                              bal_error *err);
void bal_stream_done(bal_stream *self);
/* From its beginning, for another child. */
void bal_stream_rewind(bal_stream *self);
/* As fill of core/child.h, with a bal_stream as ctx. */
BAL_CHECK int bal_stream_fill(void *ctx, bal_buf *to, bal_error *err);

/* The side files that lie in a model's own folder (configs, tokenizer) as files
 * in another one, which is made. */
BAL_CHECK int bal_stream_sides(const char *folder, bal_model *model,
                               bal_error *err);

#endif
