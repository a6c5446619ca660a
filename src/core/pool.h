/* Threads: one pool with one verb, behind bal_work. */
#ifndef CORE_POOL_H
#define CORE_POOL_H

#include "ballast.h"

#include "core/own.h"

typedef int bal_item_fn(size_t i, void *ctx, bal_error *err);

/* Call fn(i) for each i in 0 … n-1 on the pool's threads, in rising order of
 * start; stop at the first failure and return that of the lowest index. Item i
 * writes slot i and nothing else, so the result has no order. The caller's
 * thread polls the watch function meanwhile (ECANCELLED). Nested calls run in
 * the calling worker, one after the other. */
BAL_CHECK int bal_pool_run(bal_work *work, size_t n, bal_item_fn *fn, void *ctx,
                           bal_error *err);
/* Memory of the calling thread, at least len bytes, kept between items and
 * at the start of a page. slot < BAL_SCRATCH_SLOTS tells uses apart. NULL: no
 * memory. */
#define BAL_SCRATCH_SLOTS 16
void *bal_pool_scratch(bal_work *work, unsigned slot, size_t len);
/* Progress: what is to be done in all, and that some of it is. */
void bal_work_expect(bal_work *work, uint64_t total);
void bal_work_advance(bal_work *work, uint64_t done);
/* At least so many jobs from now on, unless their number was asked for when it
 * was made: for work that waits more than it computes. */
void bal_work_widen(bal_work *work, unsigned jobs);
/* ECANCELLED if the watch function said stop; polls it (calling thread only).
 */
BAL_CHECK int bal_work_poll(bal_work *work, bal_error *err);
BAL_OWNABLE(bal_work)

#endif
