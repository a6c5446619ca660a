/* Graphs for tests, of things with names: the id of "c1" is the hash of those
 * two letters. A failure aborts. */
#ifndef SUPPORT_GRAPHS_H
#define SUPPORT_GRAPHS_H

#include "graph/graph.h"

/* The database <name>.db below check_dir(), made if it is not there. */
bal_graph *graphs_open(const char *name);
/* Its path; good until the next call. */
const char *graphs_path(const char *name);
/* What somebody else does to it, without keys and checks. */
void graphs_meddle(const char *name, const char *sql);
/* Its log copied into it, so that the file alone is the database. */
void graphs_settle(const char *name);

bal_id graphs_id(const char *label);
/* What the id is of; "?" if nothing was asked for by that name. */
const char *graphs_label(const bal_id *id);

/* The number, made if it is not there. */
int64_t graphs_tenant(bal_graph *graph, const char *tenant);
/* A leaf that uses blocks: "b1 b2". */
void graphs_leaf(bal_graph *graph, const char *tenant, const char *manifest,
                 const char *blocks);
/* A view over inputs: "acme/c1/m1 beta/c2/m2". */
void graphs_view(bal_graph *graph, const char *tenant, const char *manifest,
                 const char *inputs);
/* The body that such a view has. */
void graphs_view_body(bal_buf *to, const char *inputs);
/* parent NULL: none. Its message is "about <commit>". */
void graphs_commit(bal_graph *graph, const char *tenant, const char *commit,
                   const char *manifest, const char *parent);
/* from or to NULL: the ref is made or removed. */
int graphs_move(bal_graph *graph, const char *tenant, const char *ref,
                const char *from, const char *to, const char *message);
/* Everything that bal_graph_check tells, a line each: kind, what, detail. */
void graphs_faults(bal_buf *to, bal_graph *graph);

#endif
