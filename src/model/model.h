/* A model is anything whose tensors can be listed and read by range. One
 * vtable; every implementation has bal_model as its first member, and every
 * caller goes through the bal_model_verb doors of ballast.h. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdatomic.h>

#include "ballast.h"

#include "core/buf.h"
#include "core/map.h"
#include "core/own.h"
#include "core/pool.h"

/* What bytes a range has, without reading them: two ranges of one length whose
 * idents are equal have equal bytes. Others may. */
typedef struct bal_ident {
    bal_id id;      /* of blocks; zeros where it is told by place: */
    const void *of; /* a model, */
    uint64_t entry; /* its entry; of blocks: the size they are cut at, 0: one */
    uint64_t offset; /* in the entry, or in the first block */
} bal_ident;

typedef struct bal_model_ops {
    /* Bytes [offset, offset + len) of entry i; the door has checked that they
     * are in it. Any number of threads at once. */
    int (*read)(bal_model *self, size_t i, uint64_t offset, void *to,
                size_t len, bal_error *err);
    /* Fails if nothing may be read any more; NULL: it never does. */
    int (*ask)(bal_model *self, bal_error *err);
    /* Called once, after the last reference went. Frees all but the base. */
    void (*free)(bal_model *self);
    /* bal_model_pass; NULL: it keeps nothing. */
    void (*pass)(bal_model *self, size_t i, uint64_t offset, uint64_t len);
    /* Whose bytes entry *i has, as they are: another model, and *i becomes the
     * entry there. NULL, as result too: nobody else's. */
    bal_model *(*source)(bal_model *self, size_t *i);
    /* bal_model_ident and bal_model_squares, of entries that are nobody else's.
     * NULL: as false, nothing is known unread. */
    bool (*ident)(bal_model *self, size_t i, uint64_t offset, uint64_t len,
                  bal_ident *out);
    bool (*squares)(bal_model *self, size_t i, uint64_t offset, uint64_t len,
                    double *out);
} bal_model_ops;

/* The entries are built before a model is given out and do not change. */
struct bal_model {
    const bal_model_ops *ops;
    atomic_uint refs;
    bal_facts facts; /* texts in the arena */
    bal_tensor *entries;
    size_t *tags;   /* beside entries */
    size_t *places; /* where the entry that was added n-th is now */
    size_t count, room;
    bal_map names[3]; /* by bal_part: name to n, RESIDUAL left out */
    bal_arena arena;  /* names, shapes, digests, texts */
};

BAL_OWNABLE(bal_model)

/* ---- for implementations ------------------------------------------------ */

/* size bytes, zeroed, one reference. NULL: no memory. */
void *bal_model_alloc(size_t size, const bal_model_ops *ops);
/* Add a copy of entry (its texts and arrays copied into the arena; size is
 * filled in from dtype and shape for a TENSOR that is WHOLE, DIFFERENCE or
 * RESIDUAL, 0 for SAME and REMOVED). ECORRUPT: a name twice. Entries may come
 * in any order; bal_model_ready sorts them: tensors, files, headers, each by
 * name bytewise, a RESIDUAL right behind its DIFFERENCE. `tag` comes back from
 * bal_model_tag after sorting: what the implementation knows the entry by. */
BAL_CHECK int bal_model_add(bal_model *self, const bal_tensor *entry,
                            size_t tag, bal_error *err);
BAL_CHECK int bal_model_ready(bal_model *self, bal_error *err);
/* The facts and entries of another model, each at the other's index, for one
 * that stands in front of it; ready. */
BAL_CHECK int bal_model_mirror(bal_model *self, const bal_model *of,
                               bal_error *err);
size_t bal_model_tag(const bal_model *self, size_t i);
/* Copies of the texts, in the arena. */
BAL_CHECK int bal_model_tell(bal_model *self, const bal_facts *facts,
                             bal_error *err);

/* ---- for callers below the store ---------------------------------------- */

/* Those bytes of an entry will not be read again before long, so that what was
 * kept for it may go. A help for who reads an entry several times over. */
void bal_model_pass(bal_model *self, size_t i, uint64_t offset, uint64_t len);

/* Where the bytes of entry *i come from unchanged, through however many models,
 * and *i there; self itself where they are its own. What is found is valid as
 * long as self is. */
bal_model *bal_model_source(bal_model *self, size_t *i);
/* Of an entry of a model that bal_model_source gave. */
void bal_model_ident(bal_ident *out, bal_model *self, size_t i, uint64_t offset,
                     uint64_t len);
/* True if ranges of blocks are what is read: a tile at once costs less than its
 * parts do. Of a model as above. */
bool bal_model_in_blocks(const bal_model *self);
bool bal_ident_equal(const bal_ident *a, const bal_ident *b);
/* The sum of the squares of a range of floats, as reading them would give it
 * (model/sums.h); false: it is not known, or not all of them are finite. Of an
 * entry as above. */
bool bal_model_squares(double *out, bal_model *self, size_t i, uint64_t offset,
                       uint64_t len);

/* Pieces that a tensor is read, hashed and computed in: the unit of digests, of
 * work items, of memory. A multiple of every element size. */
#define BAL_TILE ((uint64_t)4 << 20)
/* Tiles of `size` bytes; at least 1, so that an empty tensor is looked at. */
size_t bal_tiles(uint64_t size);
/* True for a TENSOR of BF16 F16 F32 F64. */
bool bal_tensor_float(const bal_tensor *tensor);
/* Same rank and dimensions. */
bool bal_tensor_same_shape(const bal_tensor *a, const bal_tensor *b);
/* Names `tensor 'w'`, `file 'config.json'` for messages. */
const char *bal_part_name(bal_part part);

#endif
