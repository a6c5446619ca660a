/* One run over a fleet: what all of it shares. */
#ifndef FLEET_RUN_H
#define FLEET_RUN_H

#include "core/own.h"
#include "fleet/fleet.h"
#include "fleet/plan.h"
#include "fleet/server.h"
#include "fleet/state.h"

typedef struct bal_fleet_run {
    bal_tenant *tenant;
    const bal_fleet_options *options;
    bal_fleet_fn *fn;
    void *ctx;
    bal_fleet_report *report;
    bal_work *work;
    bool quiet;  /* fn wants no more */
    bool failed; /* a server gave no list: who knows what it needs */

    const char *dir;   /* real path */
    const char *place; /* <dir>/<tenant> */
    bal_fleet_server *servers;
    size_t server_count;
    bal_fleet_state state;

    bal_want *wants; /* what there is to be loaded, without doubles */
    size_t want_count;
    const char **scope; /* refs that were named */
    size_t scope_count;
    const char **held; /* refs that cannot be exported for now */
    size_t held_count;
    bal_id *gone; /* commits that were unloaded */
    size_t gone_count, gone_room;
    bal_arena arena; /* of all this */
} bal_fleet_run;

BAL_OWNABLE(bal_model)

void bal_fleet_tell(bal_fleet_run *self, bal_fate fate, const char *name,
                    const char *server, const char *why);
/* A copy that lasts as long as the run; NULL: no memory. */
const char *bal_fleet_copy(bal_fleet_run *self, const char *text);
/* Must it no longer be served, by this code of an attempt to read it? */
bool bal_fleet_is_lost(int rc);

/* wants.c: fills wants, scope, held; tells what is skipped. Exports, unless it
 * is a dry run. */
BAL_CHECK int bal_fleet_wants(bal_fleet_run *self, const char *engine,
                              bal_error *err);
/* reconcile.c: makes one server that gave a list what it should be. */
BAL_CHECK int bal_fleet_reconcile(bal_fleet_run *self, bal_fleet_server *server,
                                  bal_error *err);
/* prune.c: removes folders that no server needs. */
BAL_CHECK int bal_fleet_prune(bal_fleet_run *self, bal_error *err);
/* A commit whose folder may be removed, where nothing else needs it. */
BAL_CHECK int bal_fleet_let_go(bal_fleet_run *self, const bal_id *commit,
                               bal_error *err);

#endif
