/* Manifests: what a commit holds, as canonical JSON (docs/format.md,
 * "Manifest"). A leaf lists entries and the blocks they are in; a view holds a
 * recipe. The id is the hash of the text. */
#ifndef STORE_MANIFEST_H
#define STORE_MANIFEST_H

#include <jansson.h>

#include "core/hash.h"
#include "model/model.h"

/* Where an entry's bytes are: in blocks of their own, all of block_size bytes
 * but the last, or in a part of one block that several entries share. */
typedef struct bal_place {
    size_t first;        /* index of the first id in the leaf's ids */
    size_t count;        /* ids; 0: no bytes */
    bool shared;         /* count is 1, and: */
    uint64_t offset;     /* in the block */
    uint64_t block_size; /* of the whole shared block */
} bal_place;

typedef struct bal_leaf {
    bal_kind kind;
    const char *base_model; /* NULL: not told */
    const char *revision;
    uint64_t block_size;
    bal_tensor *entries; /* in the order of a model */
    bal_place *places;
    size_t count;
    bal_id *ids; /* of blocks, by entry; an id may come again */
    size_t id_count;
    bal_arena arena;
} bal_leaf;

/* The words of parts and forms, as they stand in a manifest. */
enum {
    BAL_PARTS = BAL_PART_HEADER + 1,
    BAL_FORMS = BAL_FORM_REMOVED + 1,
};
extern const char *const bal_part_words[BAL_PARTS];
extern const char *const bal_form_words[BAL_FORMS];

/* The canonical text of a leaf. */
BAL_CHECK int bal_leaf_write(bal_buf *to, const bal_leaf *leaf, bal_error *err);
/* And back: ECORRUPT where it is not what bal_leaf_write writes. */
BAL_CHECK int bal_leaf_read(bal_leaf *out, bal_bytes text, bal_error *err);
void bal_leaf_done(bal_leaf *self);

/* The canonical text of a view; recipe as bal_recipe_json gives it. */
BAL_CHECK int bal_view_write(bal_buf *to, const json_t *recipe,
                             const char *base_model, bal_error *err);
/* The recipe of a view's text; ECORRUPT. */
BAL_CHECK int bal_view_read(json_t **recipe, bal_bytes text, bal_error *err);

#endif
