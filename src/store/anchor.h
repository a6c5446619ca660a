/* What a model is stored by its distance from: an earlier commit's tensors of
 * the same names and shapes. It decides how many bytes a block takes at rest
 * and nothing else: ids are of decoded bytes. */
#ifndef STORE_ANCHOR_H
#define STORE_ANCHOR_H

#include "core/map.h"
#include "store/manifest.h"
#include "store/store.h"

/* Commits that are looked at for one, and of those that fit, how many are
 * compared by a sample of their bytes. */
#define BAL_ANCHOR_LOOKED_AT 64
#define BAL_ANCHOR_SAMPLED   20
/* Of them, so many are the oldest, which bases are. */
#define BAL_ANCHOR_OLDEST 4

typedef struct bal_anchor {
    bool there;
    bal_id manifest, commit;
    bal_leaf leaf;
    bal_map names; /* tensors, to their places in the leaf */
    bal_model *model;
} bal_anchor;

/* What to look at first, if anything. */
typedef struct bal_anchor_wish {
    const bal_id *base;   /* a commit that was named; NULL: none */
    const bal_id *parent; /* the ref's head; NULL: none */
} bal_anchor_wish;

/* The commit of the tenant that the model is nearest to in bits: the named base
 * or the parent if these have its tensors, else the nearest of the latest
 * commits that do (of a delta: of the commits of weights that hold the very
 * base it was taken from, too). Nearness is the mean length of the integer
 * difference of 16 runs of elements. out->there is false if nothing is near.
 * Nothing here is an error but ENOMEM: a commit that cannot be read is passed
 * over. */
BAL_CHECK int bal_anchor_find(bal_anchor *out, const bal_tenant *tenant,
                              bal_model *model, const bal_anchor_wish *wish,
                              bal_error *err);
void bal_anchor_done(bal_anchor *self);
/* The same among these manifests alone, the last one first. */
BAL_CHECK int bal_anchor_among(bal_anchor *out, const bal_tenant *tenant,
                               bal_model *model, const bal_id *manifests,
                               size_t count, bal_error *err);

/* Bytes of an entry. */
typedef struct bal_anchor_run {
    const bal_tensor *entry;
    uint64_t offset, len;
} bal_anchor_run;
/* Where the base's elements are for a run: appends bal_block_spans to `to`, and
 * says in *kind what the bytes are, and the base's. False: it has none for
 * them, and `to` is as before. */
BAL_CHECK int bal_anchor_spans(bool *found, bal_buf *to, bal_block_kind *kind,
                               const bal_anchor *self,
                               const bal_anchor_run *run, bal_error *err);
/* What the bytes of an entry are. */
bal_block_kind bal_anchor_kind(const bal_tensor *entry);

/* ---- for anchor_find.c -------------------------------------------------- */

/* Read what self->manifest names. */
BAL_CHECK int bal_anchor_open(bal_anchor *self, const bal_tenant *tenant,
                              bal_error *err);
/* The anchor's tensor of that name, NULL: none. */
const bal_tensor *bal_anchor_entry(const bal_anchor *self,
                                   const bal_tensor *entry);
/* Can the entry's numbers be told by the anchor's? Values by values,
 * differences by differences or by the values that they are to. */
bool bal_anchor_told(bal_block_kind *kind, const bal_tensor *entry,
                     const bal_tensor *base);

#endif
