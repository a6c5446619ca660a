/* An adapter whose factors are computed when they are read: what shrink.c and
 * extract.c have in common. */
#ifndef MERGE_FACTORED_H
#define MERGE_FACTORED_H

#include <pthread.h>

#include "merge/concat.h"
#include "merge/lowrank.h"

#define BAL_FACTORED_SLOTS 4

typedef struct bal_factored bal_factored;

/* b and a of module i, of its rank. */
typedef int bal_factored_compute_fn(bal_lowrank *out, bal_factored *self,
                                    size_t i, bal_error *err);

/* The first member of its implementations. */
struct bal_factored {
    bal_model model;
    bal_factored_compute_fn *compute;
    void (*drop)(bal_factored *self); /* frees what is around this */
    bal_joined *modules;              /* without shares */
    size_t count;
    bal_dtype dtype;
    bal_buf config;
    bal_model *others; /* an adapter whose files come along, NULL: none */
    /* Factors as they are read. The lock guards the others, and is held while
     * they are computed, so that nobody computes them twice. */
    struct bal_factored_slot {
        pthread_mutex_t lock;
        size_t module;    /* BAL_NONE: none yet */
        char *factors[2]; /* A, B */
    } slots[BAL_FACTORED_SLOTS];
};

/* size bytes, zeroed. NULL: no memory. */
void *bal_factored_alloc(size_t size, bal_factored_compute_fn *compute_fn,
                         void (*drop)(bal_factored *self));
/* Once modules, count, dtype and others are there: the config, made of those
 * of other adapters, and the entries. */
BAL_CHECK int bal_factored_list(bal_factored *self, const bal_loras *like,
                                size_t like_count, bal_error *err);

#endif
