/* What the parts of fsck share. */
#ifndef STORE_FSCK_H
#define STORE_FSCK_H

#include "core/map.h"
#include "model/model.h"
#include "store/store.h"
#include "store/view_cache.h"

typedef struct bal_fsck_run {
    bal_store *store;
    bal_tenant *tenant; /* being looked at */
    unsigned flags;
    bal_problem_fn *fn;
    void *ctx;
    bal_fsck_report *report;
    bal_model *from; /* to heal from, NULL: nothing */
} bal_fsck_run;

/* Tell a problem; what is expected does not count. */
BAL_CHECK int bal_fsck_tell(bal_fsck_run *self, const bal_problem *problem,
                            bal_error *err);
/* Tell one of the tenant's objects, as "tenant:id"; problem->what is not looked
 * at. */
BAL_CHECK int bal_fsck_tell_id(bal_fsck_run *self, const bal_id *id,
                               const bal_problem *problem, bal_error *err);
/* What reading rows ended with: a row that cannot be read is told, and no
 * reason to stop looking; anything else is as it was. */
BAL_CHECK int bal_fsck_unreadable(bal_fsck_run *self, int rc, bal_error *err);

/* ---- blocks ------------------------------------------------------------- */

typedef enum bal_block_state {
    BAL_BLOCK_GOOD,
    BAL_BLOCK_MISSING,
    BAL_BLOCK_WRONG_SIZE, /* not as many bytes as its row says */
    BAL_BLOCK_CORRUPT,
    BAL_BLOCK_WRONG_ROW, /* the bytes are good, the row does not fit them */
    BAL_BLOCK_RENEWED,   /* was WRONG_ROW; its row fits now */
    BAL_BLOCK_HEALED,    /* its bytes were put again */
} bal_block_state;

typedef struct bal_fsck_block {
    bal_block_row row;
    bal_block_state state;
    bool seen;          /* by the listing */
    uint64_t size;      /* as listed */
    bal_block_row good; /* WRONG_ROW: what its row should be */
    bal_buf bases;      /* ids that it says it is coded by */
    char *detail;       /* NULL: what its state says */
    const char *reason; /* why it was not healed, NULL: nobody tried */
} bal_fsck_block;

/* A tenant's block rows, and what became of the bytes of each. */
typedef struct bal_inventory {
    bal_fsck_run *run;
    bal_fsck_block *blocks; /* by id */
    size_t count, room;
    bal_map by_id;
    bal_buf pairs;   /* of rows: a block's id, that of one it is coded by */
    bal_buf orphans; /* ids */
    bal_buf begun;   /* ids that writers at work have published, sorted */
} bal_inventory;

BAL_CHECK int bal_inventory_load(bal_inventory *self, bal_fsck_run *run,
                                 bal_error *err);
/* NULL: no row has the id. */
bal_fsck_block *bal_inventory_find(const bal_inventory *self, const bal_id *id);
void bal_inventory_done(bal_inventory *self);

/* Put blocks again whose bytes are lost, from run->from: those of entries of
 * form WHOLE that the folder has under the same name, with the same dtype and
 * shape, and that give the block's id. Their state becomes HEALED; of the
 * others the detail says why not. */
BAL_CHECK int bal_fsck_heal(bal_inventory *self, bal_error *err);

/* ---- the parts ---------------------------------------------------------- */

/* Commits and leaves: ids recomputed, manifests parsed, uses and the sizes of
 * block rows compared (rows NULL: those could not be read). */
BAL_CHECK int bal_fsck_facts(bal_fsck_run *self, const bal_inventory *rows,
                             bal_error *err);
/* Blocks: rows against what the backend lists, and every byte. */
BAL_CHECK int bal_fsck_blocks(bal_inventory *self, bal_error *err);
/* A view: can it be read, and if not, is there a reason? */
BAL_CHECK int bal_fsck_view(bal_fsck_run *self, const bal_id *id,
                            bal_bytes text, bal_error *err);
/* The view cache: what nobody will read is told, and with --repair removed. */
BAL_CHECK int bal_fsck_cache(bal_fsck_run *self, bal_error *err);

/* ---- what nobody will read of the view cache ---------------------------- */

/* Each entry whose view is no more or whose bytes are damaged, and what is no
 * entry. tenant NULL: of all. */
typedef int bal_stale_fn(void *ctx, const bal_cache_entry *entry,
                         const char *why, bal_error *err);
BAL_CHECK int bal_stale_cache_each(bal_store *store, const char *tenant,
                                   bal_stale_fn *fn, void *ctx, bal_error *err);
/* Paths below the root, one behind the other, a NUL behind each; the store's
 * lock is held alone. */
BAL_CHECK int bal_stale_cache_remove(const bal_store *store,
                                     const bal_buf *paths, bal_error *err);

#endif
