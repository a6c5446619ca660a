/* The modules of a base that adapters are compared with: which there are, and
 * their dimensions. */
#ifndef MODEL_KNOWN_H
#define MODEL_KNOWN_H

#include "model/fold_fit.h"

typedef struct bal_known {
    bal_fit fit;
    bal_map leaves;  /* last names of modules */
    uint64_t layers; /* 0: its names have none */
} bal_known;

typedef struct bal_known_module {
    bool there;
    bool matrix;      /* its weight has two dimensions */
    bool tied;        /* a head that is the embedding */
    uint64_t in, out; /* 0: not known, as of packed weights */
} bal_known_module;

/* Borrows base. */
BAL_CHECK int bal_known_open(bal_known *out, bal_model *base, bal_error *err);
void bal_known_done(bal_known *self);
/* Of an embedding, in is its rows. */
BAL_CHECK int bal_known_find(const bal_known *self, bal_known_module *out,
                             const char *module, bal_error *err);
/* True if any module of the base ends in that name. */
bool bal_known_leaf(const bal_known *self, const char *leaf);
/* A whole number of the base's config, or of its text_config; 0: not told. */
uint64_t bal_known_number(const bal_known *self, const char *key);
/* Rows that the embedding has, by the config or by its shape; 0: not known. */
BAL_CHECK int bal_known_vocabulary(const bal_known *self, uint64_t *out,
                                   bal_error *err);
/* The number behind "layers." in a module's name. */
bool bal_known_layer(uint64_t *out, const char *module);
/* True if that is what embeddings are called. */
bool bal_is_embedding(const char *module);

#endif
