/* What a scenario works on, and the walk: its first allocation fails, its
 * second, and so on, until there was none left to fail. */
#ifndef TORTURE_ALLOC_WALK_H
#define TORTURE_ALLOC_WALK_H

#include "support/check.h"
#include "torture/alloc.h"

typedef struct place {
    char dir[64], root[128], base[128], tuned[128], out[128];
} place;

/* Set by walk_main. */
extern place here;

/* What a scenario opens; all of it is freed at its end. */
typedef struct session {
    bal_work *work;
    bal_store *store;
    bal_tenant *tenant;
    bal_model *a, *b, *c;
    bal_commit *commit;
    bal_recipe *recipe;
    bal_key *key;
    bal_proof *proof;
    bal_error err;
} session;

typedef int scenario_fn(session *self);

/* A pool, the store, made if need be, and tenant acme. */
int session_begin(session *self);
int commit_model(session *self, bal_model *model, const char *ref);
int open_ref(session *self, bal_model **out, const char *spec);
/* A scenario: fsck finds nothing. */
int walk_fsck(session *self);

/* Once, allocation n failing, and with all every later one. *failed: one did.
 * It has to free all that it took. */
int run_once(scenario_fn *fn, long n, bool all, bool *failed);
/* Once, and nothing fails. */
void run_well(scenario_fn *fn);
/* All of them, one and from there on; the store is as it should be in between.
 * fresh: each run begins without a store. */
void walk(scenario_fn *fn, bool fresh);

/* The tests, in a folder of their own. */
int walk_main(const check_test *tests, size_t count);

#endif
