/* All rows of one database into another, of whatever driver. */
#ifndef GRAPH_MOVING_H
#define GRAPH_MOVING_H

#include "graph/graph.h"

/* Every row of every table, as it is, seals and numbers included, in the
 * transaction that the caller has begun in `to`, which has the tables and no
 * store in them (ECONFLICT), unless it has the setting `unfinished`, and that
 * is `whose`: then that one goes first. Nobody writes to `from` meanwhile;
 * deletions that are not done yet are ECONFLICT. *rows: how many there are in
 * `to` now, counted there. ECORRUPT: not as many as in `from`. */
BAL_CHECK int bal_graph_copy_rows(bal_graph *from, bal_graph *to,
                                  const char *unfinished, const char *whose,
                                  uint64_t *rows, bal_error *err);

#endif
