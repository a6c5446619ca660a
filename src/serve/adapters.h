/* What is asked of an adapter's model. */
#ifndef SERVE_ADAPTERS_H
#define SERVE_ADAPTERS_H

#include "core/buf.h"

/* The highest rank of its modules; 0: it has none. */
BAL_CHECK int bal_adapter_rank(uint64_t *out, bal_model *model, bal_error *err);
/* A side file, appended. ENOTFOUND: it has none of that name; EUNSUPPORTED:
 * larger than 16 MiB. */
BAL_CHECK int bal_adapter_file(bal_buf *to, bal_model *model, const char *name,
                               bal_error *err);

#endif
