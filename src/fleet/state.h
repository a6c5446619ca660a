/* What we had servers load: <dir>/.ballast-sync.json. It is written before a
 * server is told anything, so that whoever comes after one that was killed
 * knows what may have been loaded. */
#ifndef FLEET_STATE_H
#define FLEET_STATE_H

#include "core/buf.h"
#include "fleet/plan.h"

#define BAL_FLEET_STATE ".ballast-sync.json"

typedef struct bal_fleet_state {
    char *path;
    const char *store; /* whose it is; NULL: not told */
    bal_known *rows;   /* by server, then by name */
    size_t count, room;
    bal_arena arena; /* of their texts */
    bool changed;
} bal_fleet_state;

/* A file that is not there is an empty state. ECORRUPT, EUNSUPPORTED (a newer
 * format) name it: what it says is not to be guessed. */
BAL_CHECK int bal_fleet_state_read(bal_fleet_state *self, const char *dir,
                                   bal_error *err);
/* It is that store's. ECONFLICT: it is another's, whose adapters would be taken
 * for this one's where tenants have one name. */
BAL_CHECK int bal_fleet_state_claim(bal_fleet_state *self, const char *store,
                                    bal_error *err);
/* Whole and durable; nothing where nothing has changed. */
BAL_CHECK int bal_fleet_state_save(bal_fleet_state *self, bal_error *err);
void bal_fleet_state_done(bal_fleet_state *self);

/* Rows of a server: the first, and how many in *count. */
bal_known *bal_fleet_state_of(bal_fleet_state *self, const char *server,
                              size_t *count);
/* NULL: none. Borrowed until the next put or drop. */
bal_known *bal_fleet_state_find(bal_fleet_state *self, const char *server,
                                const char *name);
/* Copies it; server and name again: replaced. */
BAL_CHECK int bal_fleet_state_put(bal_fleet_state *self, const bal_known *row,
                                  bal_error *err);
void bal_fleet_state_drop(bal_fleet_state *self, const char *server,
                          const char *name);

#endif
