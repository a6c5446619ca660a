/* What the parts of fsck share. */
#ifndef STORE_FSCK_H
#define STORE_FSCK_H

#include "core/map.h"
#include "store/store.h"

typedef struct bal_fsck_run {
    bal_store *store;
    bal_tenant *tenant; /* being looked at */
    unsigned flags;
    bal_problem_fn *fn;
    void *ctx;
    bal_fsck_report *report;
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
/* Commits and manifests: ids recomputed, manifests parsed, uses compared. */
BAL_CHECK int bal_fsck_facts(bal_fsck_run *self, bal_error *err);
/* Blocks: rows against what the backend lists, and every byte. */
BAL_CHECK int bal_fsck_blocks(bal_fsck_run *self, bal_error *err);

#endif
