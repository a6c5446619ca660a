/* The view inside: what its plan leaves for its reads. */
#ifndef MERGE_VIEW_H
#define MERGE_VIEW_H

#include <pthread.h>
#include <stdatomic.h>

#include "merge/layers.h"
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
    size_t slice; /* the inputs that it is merged of */
    size_t *sources;
    size_t from;   /* the input whose bytes are passed on */
    bal_buf *text; /* bytes that are made, not read */
    /* Of a merge: the inputs that take part, and their weights, without the
     * base. One that has no source takes part as zeros. */
    size_t *which;
    double *weights;
    size_t count;
    bool based;        /* the base takes part: the view's, or zeros */
    bal_extent extent; /* shape borrowed from an input */
    uint64_t unit;     /* tiles begin and end at multiples of it */
    bal_arith arith;
    bool rounds; /* the result is rounded to arith's dtype before its own */
    const bal_values *values;
    uint64_t *drawn; /* count: where in the view's stream an input's begin */
    void *prepared;  /* guarded by the row's lock until ready is set */
    atomic_bool ready;
    atomic_bool told; /* that the method breaks down here */
};

struct bal_walk {
    bal_view *view;
    const bal_view_row *row;
};

/* Inputs [from, to), of which base is set apart; BAL_NONE: none is. */
typedef struct bal_view_slice {
    size_t from, to, base;
} bal_view_slice;

/* Where an input's layers come to be: its layer `first` is the result's `at`.
 */
typedef struct bal_view_shift {
    uint64_t first, at, count;
} bal_view_shift;

struct bal_view {
    bal_model model;
    const bal_method *method;
    const bal_recipe *recipe; /* while it is planned */
    bal_rules rules;
    bal_values values;        /* the last tensor's */
    const bal_values *latest; /* a copy of them, NULL: there is none yet */
    bal_place *places;        /* count */
    bal_stacks stacks;
    bool strict;
    bool whole;   /* inputs are whole things, not differences */
    bool weights; /* whole models: what is absent in the base is an error */
    bool mergekit;
    int dtype, out_dtype;
    uint64_t seed;
    bool streamed;
    uint64_t stream_seed;
    bal_torch_stream *stream; /* made by planning, if it is asked for */
    size_t tile;              /* elements, where tests want so many; else 0 */
    bal_model **inputs;
    size_t count;
    bool sliced;
    bal_view_slice *slices;
    size_t slice_count;
    bal_view_shift *shifts; /* count, where it is sliced */
    uint64_t layers;        /* of the result, where it is sliced */
    bal_view_row *rows;
    size_t row_count, row_room;
    bal_map names[2]; /* of tensors, of files: name to row */
    /* Guard preparing: a row has one of them, so that many are prepared at
     * once. */
    pthread_mutex_t locks[BAL_VIEW_LOCKS];
};

/* The inputs that a row is merged of. */
const bal_view_slice *bal_view_slice_of(const bal_view *self,
                                        const bal_view_row *row);
/* The row's parameters, in row->values. */
BAL_CHECK int bal_view_values(bal_view *self, bal_view_row *row,
                              bal_error *err);
/* What an input calls the tensor, NULL: no memory. Borrowed, or in the arena.
 */
const char *bal_view_label(bal_view *self, const bal_view_row *row,
                           size_t input);
/* Inputs that lack a head that others have contribute the embeddings that they
 * have tied to it. */
BAL_CHECK int bal_view_tie(bal_view *self, bal_error *err);
/* The text of a model's config.json, made to fit the view: row->text, if there
 * is anything to change. */
BAL_CHECK int bal_view_config(bal_view *self, bal_view_row *row,
                              bal_error *err);
/* An input of some of its layers under the numbers that they get, with what is
 * before and behind them where that is asked for. EINVAL: layers that it has
 * not; EUNSUPPORTED: several stacks. */
typedef struct bal_view_part {
    bal_view_shift shift;
    bool before, behind;
} bal_view_part;
BAL_CHECK int bal_part_open(bal_model **out, bal_model *of,
                            const bal_view_part *part, bal_error *err);

/* The inputs as they are merged: an adapter as the model that comes of putting
 * it onto one, all with the vocabulary that is asked for. */
typedef struct bal_dressed {
    bal_model **models;
    size_t count;
} bal_dressed;
BAL_CHECK int bal_view_dress(bal_dressed *out, const bal_recipe *recipe,
                             bal_model *const *inputs, bal_work *work,
                             bal_error *err);
void bal_dressed_done(bal_dressed *self);

/* Fill in model entries and rows, refuse what cannot be. */
BAL_CHECK int bal_view_plan(bal_view *self, bal_error *err);
/* Tensors and files; see view_tensor.c, view_file.c. */
BAL_CHECK int bal_plan_tensor(bal_view *self, size_t row, bal_error *err);
BAL_CHECK int bal_plan_file(bal_view *self, size_t row, bal_error *err);
/* What the recipe tells of a tensor of what the inputs are differences to,
 * NULL: nothing. */
BAL_CHECK int bal_view_origin(bal_view *self, const bal_id **out,
                              const char *name, bal_error *err);
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
bal_view_read_fn bal_view_text;    /* row->text */

#endif
