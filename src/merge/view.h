/* The view inside: what its plan leaves for its reads. */
#ifndef MERGE_VIEW_H
#define MERGE_VIEW_H

#include <pthread.h>
#include <stdatomic.h>

#include "merge/values.h"

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
    /* Of a merge: the inputs that take part, and their weights. One that has no
     * source takes part as zeros. */
    size_t *which;
    double *weights;
    size_t count;
    void *prepared; /* guarded by the view's lock until ready is set */
    atomic_bool ready;
};

struct bal_view {
    bal_model model;
    const bal_method *method;
    bal_values values;
    bool strict;
    bool whole; /* inputs are whole things, not differences */
    int dtype;
    bal_model **inputs;
    double *weights;
    size_t count;
    bal_view_row *rows;
    size_t row_count, row_room;
    bal_map names[2];     /* of tensors, of files: name to row */
    pthread_mutex_t lock; /* guards preparing */
};

/* Fill in model entries and rows, refuse what cannot be. */
BAL_CHECK int bal_view_plan(bal_view *self, bal_error *err);
/* Tensors and files; see view_tensor.c, view_file.c. */
BAL_CHECK int bal_plan_tensor(bal_view *self, size_t row, bal_error *err);
BAL_CHECK int bal_plan_file(bal_view *self, size_t row, bal_error *err);
/* An input's entry for a row, NULL: it has none. */
const bal_tensor *bal_view_source(const bal_view *self, const bal_view_row *row,
                                  size_t input);
/* What messages call an input: "input 2 ('3f0a…')" needs number and name. */
const char *bal_view_input_name(const bal_view *self, size_t input);

/* The ways to read. */
bal_view_read_fn bal_view_pass;    /* one input's bytes */
bal_view_read_fn bal_view_compare; /* the same, once all agree */
bal_view_read_fn bal_view_merge;   /* the method */
bal_view_read_fn bal_view_zeros;   /* -0.0: x + -0.0 is x for every x */

#endif
