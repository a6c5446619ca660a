/* Blocks stored anew: the same ids, other bytes at rest. */
#ifndef STORE_RECODE_H
#define STORE_RECODE_H

#include "store/store.h"

/* Each of these blocks, by the store's present compression and without a base:
 * afterwards no other block is needed to read it. Durable, and noted in the
 * graph, when it returns; cut short, every block can be read as before. The
 * caller holds the store's lock alone. *stored: bytes at rest now. */
BAL_CHECK int bal_recode(const bal_tenant *tenant, const bal_id *ids,
                         size_t count, uint64_t *stored, bal_error *err);

/* All blocks that the tenant's leaves have, by the store's present compression:
 * leaf by leaf in the order of their first commits, each by its distance from
 * an earlier one, so that none is coded by what is coded by it. As above.
 * Counts are added to report's. */
BAL_CHECK int bal_recompress(bal_tenant *tenant, bal_gc_report *report,
                             bal_error *err);

#endif
