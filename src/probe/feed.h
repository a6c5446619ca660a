/* A model's tensors as one safetensors file that goes through a pipe, so that a
 * child gets them without a file; and its side files as files, which are
 * small. */
#ifndef PROBE_FEED_H
#define PROBE_FEED_H

#include "core/child.h"
#include "model/model.h"

/* The descriptor that the child finds it at, told in BALLAST_MODEL_FD. */
enum { BAL_FEED_FD = 3 };

typedef struct bal_feed {
    bal_stream *stream;
    uint64_t at;
} bal_feed;

/* Keeps a reference on the model. */
BAL_CHECK int bal_feed_init(bal_feed *self, bal_model *model, bal_error *err);
void bal_feed_done(bal_feed *self);
/* From its beginning, for another child. */
void bal_feed_rewind(bal_feed *self);
/* As fill of core/child.h, with a bal_feed as ctx. */
BAL_CHECK int bal_feed_fill(void *ctx, bal_buf *to, bal_error *err);

/* The side files that lie in a model's own folder (configs, tokenizer) as files
 * in another one, which is made. */
BAL_CHECK int bal_feed_sides(const char *folder, bal_model *model,
                             bal_error *err);

#endif
