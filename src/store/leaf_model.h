/* What a leaf manifest holds, as a model. */
#ifndef STORE_LEAF_MODEL_H
#define STORE_LEAF_MODEL_H

#include "store/manifest.h"
#include "store/store.h"

/* text: the manifest; name: what to call it in messages. The tenant's store
 * must outlive the model. */
BAL_CHECK int bal_leaf_model(bal_model **out, const bal_tenant *tenant,
                             bal_bytes text, const char *name, bal_error *err);

#endif
