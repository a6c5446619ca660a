/* One server: what it lists, and telling it to load and to unload. Whether it
 * did is decided by status and list alone: the words of its answers differ
 * between versions and are for people. */
#ifndef FLEET_SERVER_H
#define FLEET_SERVER_H

#include "core/http.h"
#include "fleet/fleet.h"
#include "fleet/plan.h"

typedef struct bal_loader bal_loader;

typedef struct bal_fleet_server {
    const char *url; /* no slash at its end */
    const char *key; /* never told, NULL: none */
    bal_http *http;
    bal_work *work;
    const bal_loader *loader; /* by engine, once it is known */
    const char *engine;       /* its name, NULL: not known */
    bal_listed *listed;       /* by the last list that it gave */
    size_t count;
    const char *why; /* it is of no use (any more); NULL: it is */
    bool unreached;  /* since it did not answer */
    bal_arena arena; /* of the lists and texts */
} bal_fleet_server;

/* A URL as servers are known by: without slashes, or "/v1", at its end. EINVAL:
 * not one of a server. NULL in *out never. */
BAL_CHECK int bal_fleet_server_name(char **out, const char *url,
                                    bal_arena *arena, bal_error *err);
/* Under that URL, which is borrowed. EINVAL: a key that no header can hold. */
BAL_CHECK int bal_fleet_server_open(bal_fleet_server *self, const char *url,
                                    const bal_fleet_options *options,
                                    bal_work *work, bal_error *err);
void bal_fleet_server_done(bal_fleet_server *self);

/* Asks what it serves. A server that gives no list is success, with `why` set.
 * ENOMEM, ECANCELLED. */
BAL_CHECK int bal_fleet_server_list(bal_fleet_server *self, bal_error *err);
/* By name, NULL: it is not listed. */
const bal_listed *bal_fleet_server_find(const bal_fleet_server *self,
                                        const char *name);

/* Tells it. *status 0: it did not answer, and is of no use any more; why (its
 * own words, made harmless, or NULL) is the server's. */
BAL_CHECK int bal_fleet_server_load(bal_fleet_server *self, const char *name,
                                    const char *path, int *status,
                                    const char **why, bal_error *err);
BAL_CHECK int bal_fleet_server_unload(bal_fleet_server *self, const char *name,
                                      int *status, const char **why,
                                      bal_error *err);

#endif
