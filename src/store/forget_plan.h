/* A plan while it is made: the JSON, and what its parts share. */
#ifndef STORE_FORGET_PLAN_H
#define STORE_FORGET_PLAN_H

#include "core/map.h"
#include "store/forget.h"

typedef struct bal_planning {
    bal_tenant *tenant;
    bal_graph *graph;
    const bal_id *commit; /* NULL: the whole tenant */
    json_t *plan;
    bal_id manifest; /* of commit */
    bal_id parent;
    bool has_parent;
    bool view; /* commit is one */
    bool manifest_goes;
    uint64_t bytes;
    uint64_t broken_elsewhere, cache_elsewhere;
    bal_buf *anew; /* ids of blocks that stay and are coded by some that go, to
                      be stored anew; or that were: then it is not empty */
    bal_map grantees; /* who may be told of */
    bal_map seen;     /* views that are in the plan */
    bal_arena arena;  /* the maps' keys */
} bal_planning;

/* Append a value to one of the plan's arrays; NULL is no memory. */
BAL_CHECK int bal_plan_add(bal_planning *self, const char *member,
                           json_t *value, bal_error *err);
BAL_CHECK int bal_plan_id(bal_planning *self, const char *member,
                          const bal_id *id, bal_error *err);
/* Are the rows by which it is planned what the manifests say? Of those that go;
 * of all of the tenant where a block has no user. ECORRUPT, with a hint. */
BAL_CHECK int bal_plan_facts(bal_planning *self, bal_error *err);
/* Refs, grants, exports, and views that will not resolve any more. */
BAL_CHECK int bal_plan_names(bal_planning *self, bal_error *err);
BAL_CHECK int bal_plan_views(bal_planning *self, bal_error *err);
/* The blocks that go, by id: those that no other manifest uses, and those that
 * no row names. */
BAL_CHECK int bal_plan_blocks(bal_planning *self, bal_error *err);

#endif
