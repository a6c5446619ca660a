/* What becomes of each entry of a base that an adapter is folded onto. */
#ifndef MODEL_FOLD_EDITS_H
#define MODEL_FOLD_EDITS_H

#include "model/adapter.h"
#include "model/fold_fit.h"
#include "model/update.h"

/* A row of an embedding that is replaced by one of the adapter. */
typedef struct bal_token_row {
    uint64_t row, from;
} bal_token_row;

/* Bytes come from the base's entry, or from the adapter's (`whole`), or are
 * a text; then the change is made to them; then rows are replaced. */
typedef struct bal_edit {
    const char *name; /* NULL: the base's */
    size_t base;      /* entry of the base */
    size_t whole;     /* entry of the adapter, BAL_NONE: the base's */
    bal_update *change;
    bal_token_row *tokens; /* by row */
    size_t token_count;
    size_t token_entry;
    bool text;    /* the bytes are those of bal_edits.config */
    bool touched; /* the adapter speaks of it */
} bal_edit;

typedef struct bal_edits {
    bal_model *base, *adapter;
    bal_adapter parts;
    bal_fit fit;
    bal_edit *rows; /* the base's entries in order, then new ones */
    size_t count;
    bal_buf config;      /* config.json, where it changes */
    uint64_t vocabulary; /* rows of the new embedding, 0: as before */
    bool untied;
    bal_arena arena;
} bal_edits;

/* Of entry i of a model that bal_fold_open made. */
const bal_edit *bal_fold_edit(const bal_model *folded, size_t i);

/* Borrows both models. Errors are those of bal_fold_open. */
BAL_CHECK int bal_edits_make(bal_edits *out, bal_model *base,
                             bal_model *adapter, bal_error *err);
void bal_edits_done(bal_edits *self);
/* Steps of it. A module's change; heads and embeddings that come apart; what
 * config.json says then. */
BAL_CHECK int bal_edits_module(bal_edits *self, const bal_adapted *row,
                               bal_error *err);
BAL_CHECK int bal_edits_stack(bal_edits *self, const bal_adapted *row,
                              bal_error *err);
BAL_CHECK int bal_edits_ties(bal_edits *self, bal_error *err);
BAL_CHECK int bal_edits_config(bal_edits *self, bal_error *err);
/* The edit of a tensor that the adapter speaks of, which it may do only once.
 * A tied head is made if it is not there. */
BAL_CHECK int bal_edits_touch(bal_edits *self, bal_edit **out, size_t entry,
                              bal_error *err);
BAL_CHECK int bal_edits_weight(bal_edits *self, bal_edit **out,
                               const char *module, bal_error *err);
/* True if a tensor of the adapter is of the head, which is the embedding, and
 * says again what another says of that: so PEFT saves it where it is told to
 * keep both one (ensure_weight_tying), and trained rows of tokens. */
bool bal_edits_same(const bal_edits *self, const char *tensor, bool tokens);

#endif
