/* Commits from one store into another: planned, then one after the other, what
 * a commit stands on first. The lock of the store that is written to is shared
 * from before it is looked at until the refs have moved, so that nothing is
 * taken from under what is planned. The store that is read is not locked; what
 * is forgotten there meanwhile is not found. */
#ifndef STORE_TRANSFER_H
#define STORE_TRANSFER_H

#include "store/manifest.h"
#include "store/store.h"

/* What a spec named. */
typedef struct bal_tip {
    bal_id id;
    const char *ref; /* NULL: no ref, but a commit */
} bal_tip;

typedef struct bal_transfer_run {
    bal_tenant *from, *to;
    const bal_push_options *what;
    bal_push_report *report;
    bal_tip *tips;
    size_t tip_count;
    bal_buf order; /* ids of what is to be transferred */
} bal_transfer_run;

/* ---- transfer_plan.c ---------------------------------------------------- */

/* Fill run->order. Everything that can be refused is refused here. */
BAL_CHECK int bal_transfer_plan(bal_transfer_run *run, bal_error *err);
/* Is the commit there? */
BAL_CHECK int bal_transfer_has(const bal_tenant *tenant, const bal_id *id,
                               bool *there, bal_error *err);
/* A commit's row if it gives its id, its texts in the arena. ENOTFOUND,
 * ECORRUPT. */
BAL_CHECK int bal_transfer_row(bal_commit_row *out, bal_arena *texts,
                               const bal_tenant *tenant, const bal_id *id,
                               bal_error *err);
/* The nearest of id and its ancestors that run->to has; *there: there is
 * one. */
BAL_CHECK int bal_transfer_ground(const bal_transfer_run *run, bal_id *out,
                                  bool *there, const bal_id *id,
                                  bal_error *err);
/* Where the history of a commit of run->from goes on in run->to. */
BAL_CHECK int bal_transfer_parent(const bal_transfer_run *run, bal_id *out,
                                  bool *there, const bal_commit_row *row,
                                  bal_error *err);

/* ---- transfer_commit.c -------------------------------------------------- */

/* One commit, whose parent and inputs are there. */
BAL_CHECK int bal_transfer_commit(const bal_transfer_run *run, const bal_id *id,
                                  bal_error *err);

/* ---- transfer_blocks.c -------------------------------------------------- */

/* The blocks of a leaf. The batch holds those that are staged, and what rows
 * say of their bases. */
typedef struct bal_transfer_blocks {
    bal_batch batch;
    bal_block_row *rows; /* of those that are put */
    size_t row_count;
    bal_id *ids; /* of all, sorted, without repetition */
    size_t id_count;
    uint64_t bytes, stored; /* of those that are put */
} bal_transfer_blocks;

/* Stage what run->to lacks. */
BAL_CHECK int bal_transfer_stage(bal_transfer_blocks *out,
                                 const bal_transfer_run *run,
                                 const bal_leaf *leaf, bal_error *err);
/* Publish it; then rows say how it is at rest. */
BAL_CHECK int bal_transfer_settle(bal_transfer_blocks *self, bal_work *work,
                                  bal_error *err);
void bal_transfer_blocks_done(bal_transfer_blocks *self);

#endif
