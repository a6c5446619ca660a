/* The view inside: what its plan leaves for its reads. */
#ifndef MERGE_VIEW_H
#define MERGE_VIEW_H

#include <pthread.h>
#include <stdatomic.h>

#include "merge/values.h"

#define BAL_VIEW_LOCKS 16

typedef struct bal_view bal_view;
typedef struct bal_view_row bal_view_row;

/* Bytes [offset, offset + len) of the entry that row is of. */
typedef int bal_view_read_fn(bal_view *self, size_t i, bal_view_row *row,
                             uint64_t offset, void *to, size_t len,
                             bal_error *err);

/* How one entry comes about. sources has an entry index for each input,
 * BAL_NONE where the input has none. */
struct bal_view_row {
    bal_view_read_fn *read; /* NULL: the entry has no bytes */
    const char *name;
    size_t *sources;
    size_t from; /* the input whose bytes are passed on */
    /* Of a merge: the inputs that take part, and their weights, without the
     * base. One that has no source takes part as zeros. */
    size_t *which;
    double *weights;
    size_t count;
    bool based;        /* the base takes part: the view's, or zeros */
    bal_extent extent; /* shape borrowed from an input */
    uint64_t unit;     /* tiles begin and end at multiples of it */
    bal_arith arith;
    const bal_values *values;
    uint64_t *drawn; /* count: where in the view's stream an input's begin */
    void *prepared;  /* guarded by the row's lock until ready is set */
    atomic_bool ready;
};

struct bal_walk {
    bal_view *view;
    const bal_view_row *row;
};

struct bal_view {
    bal_model model;
    const bal_method *method;
    bal_values values;
    bool strict;
    bool whole;   /* inputs are whole things, not differences */
    bool weights; /* whole models: what is absent in the base is an error */
    bool mergekit;
    int dtype;
    uint64_t seed;
    bool streamed;
    uint64_t stream_seed;
    bal_torch_stream *stream; /* made by planning, if it is asked for */
    size_t base; /* the input that is set apart, BAL_NONE: none is */
    size_t tile; /* elements, where tests want so many; else 0 */
    bal_model **inputs;
    double *input_weights;
    size_t count;
    bal_view_row *rows;
    size_t row_count, row_room;
    bal_map names[2]; /* of tensors, of files: name to row */
    /* Guard preparing: a row has one of them, so that many are prepared at
     * once. */
    pthread_mutex_t locks[BAL_VIEW_LOCKS];
};

/* Fill in model entries and rows, refuse what cannot be. */
BAL_CHECK int bal_view_plan(bal_view *self, bal_error *err);
/* Tensors and files; see view_tensor.c, view_file.c. */
BAL_CHECK int bal_plan_tensor(bal_view *self, size_t row, bal_error *err);
BAL_CHECK int bal_plan_file(bal_view *self, size_t row, bal_error *err);
/* Who takes part in a merge of whole floats, in what arithmetic; dtype is what
 * all inputs have in common. Where an input's bytes are the result, its number
 * is in row->from and row->read tells; *kept false: the result has no such
 * tensor. See view_take.c. */
BAL_CHECK int bal_view_take(bal_view *self, bal_view_row *row, bal_dtype dtype,
                            bool *kept, bal_error *err);
/* The same of differences. */
BAL_CHECK int bal_view_take_differences(bal_view *self, bal_view_row *row,
                                        bal_dtype dtype, bal_error *err);
/* Of what shape and size a tensor is. */
bal_extent bal_view_extent(const bal_tensor *tensor);
/* Once all rows are planned: what each draws from mergekit's stream. */
BAL_CHECK int bal_view_order_draws(bal_view *self, bal_error *err);
/* An input's entry for a row, NULL: it has none. */
const bal_tensor *bal_view_source(const bal_view *self, const bal_view_row *row,
                                  size_t input);
/* What messages call an input: "input 2 ('3f0a…')" needs number and name. */
const char *bal_view_input_name(const bal_view *self, size_t input);

/* Elements of a tile of so many at most that are wanted, and calling fn for the
 * tiles of elements [start, start + n), the first and last of which reach
 * beyond them where the row's unit says so. */
size_t bal_view_tile_size(const bal_view *self, const bal_view_row *row,
                          uint64_t n);
BAL_CHECK int bal_view_each(bal_view *self, const bal_view_row *row,
                            uint64_t start, uint64_t n, bal_tile_fn *fn,
                            void *ctx, bal_error *err);
/* A tile of the whole tensor, without elements. */
bal_tile bal_view_no_tile(const bal_view *self, const bal_view_row *row);

/* The ways to read. */
bal_view_read_fn bal_view_pass;    /* one input's bytes */
bal_view_read_fn bal_view_cast;    /* one input's values in another dtype */
bal_view_read_fn bal_view_compare; /* the same, once all agree */
bal_view_read_fn bal_view_merge;   /* the method */
bal_view_read_fn bal_view_zeros;   /* -0.0: x + -0.0 is x for every x */

#endif
