/* What servers were told to load: rows by tenant, server and name there. */
#ifndef GRAPH_LOADS_H
#define GRAPH_LOADS_H

#include "graph/graph.h"

/* The same server and name again: replaced. */
BAL_CHECK int bal_graph_load_put(bal_graph *self, int64_t tenant,
                                 const bal_loaded *row, bal_error *err);
/* commit NULL: of any. By server and name. */
typedef int bal_graph_load_fn(void *ctx, const bal_loaded *row, bal_error *err);
BAL_CHECK int bal_graph_loads(bal_graph *self, int64_t tenant,
                              const bal_id *commit, bal_graph_load_fn *fn,
                              void *ctx, bal_error *err);
/* One that is not there is fine. */
BAL_CHECK int bal_graph_load_drop(bal_graph *self, int64_t tenant,
                                  const char *server, const char *name,
                                  bal_error *err);
/* Of a commit, or with NULL of all. */
BAL_CHECK int bal_graph_loads_forget(bal_graph *self, int64_t tenant,
                                     const bal_id *commit, bal_error *err);

#endif
