/* Stores with tenants that share, for tests: one root that several handles are
 * open on, as of several processes. */
#ifndef SUPPORT_SHARED_H
#define SUPPORT_SHARED_H

#include "merge/merge.h"
#include "store/store.h"
#include "support/check.h"

/* The root of a new test: an empty folder's path. */
const char *shared_root(void);
/* One more handle on root, blocks of 4 KiB; all share one pool. */
bal_store *shared_store(const char *root, unsigned flags);
/* A commit of one F32 tensor `w` of n elements: value, value + 1, … */
bal_id shared_commit(bal_store *store, const char *tenant, float value,
                     uint64_t n, const char *ref);
/* A linear view of one or two inputs (b may be NULL), as bal_recipe_input takes
 * them. */
bal_id shared_view(bal_store *store, const char *tenant, const char *a,
                   const char *b, const char *ref);
bal_model *shared_model(bal_store *store, const char *tenant, const bal_id *id);
void shared_grant(bal_store *store, const char *owner, const bal_id *id,
                  const char *grantee);
void shared_revoke(bal_store *store, const char *owner, const bal_id *id,
                   const char *grantee);

#endif
