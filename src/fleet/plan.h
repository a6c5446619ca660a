/* What is to be done on one server: a pure function from what is wanted, what
 * the server lists and what is known of it to steps. */
#ifndef FLEET_PLAN_H
#define FLEET_PLAN_H

#include "core/buf.h"

/* An adapter that every server is to have. */
typedef struct bal_want {
    const char *name;
    const char *ref; /* NULL: the spec was no ref */
    const char *path;
    bal_id commit;
} bal_want;

/* A row of a server's list of models. */
typedef struct bal_listed {
    const char *name;
    const char *root; /* where it was loaded from, NULL: not told */
    bool base;        /* no adapter */
} bal_listed;

/* What we told a server to load, or were about to when we were stopped. */
typedef struct bal_known {
    const char *server, *name;
    const char *tenant;
    const char *ref; /* NULL: the spec was no ref */
    const char *path;
    bal_id commit;
    int64_t loaded_at; /* 0: not seen in the server's list yet */
    bool refused; /* the server did not take it when there was room for it */
} bal_known;

typedef enum bal_step_kind {
    BAL_STEP_LOAD,
    BAL_STEP_UNLOAD,
    BAL_STEP_SAME,  /* it is there */
    BAL_STEP_TAKEN, /* something else has its name */
    BAL_STEP_GONE,  /* known, not wanted, and not there */
} bal_step_kind;

typedef enum bal_step_state {
    BAL_STEP_OPEN,
    BAL_STEP_ASKED, /* the server was told, and has yet to show it */
    BAL_STEP_DONE,
    BAL_STEP_FAILED,
    BAL_STEP_KEPT, /* an unload that is left out after all */
} bal_step_state;

typedef struct bal_step {
    bal_step_kind kind;
    bal_want what;
    bool known;        /* it is in the state */
    bool refused;      /* it was refused before, when there was room */
    bool early;        /* an unload that a load of the same name waits for */
    const char *other; /* TAKEN: the root of what has the name, or NULL */
    /* Of who carries it out: */
    bal_step_state state;
    bool back;  /* an unload that was in vain, to be taken back */
    bool turn;  /* it is among those that are carried out now */
    int status; /* that the server answered with, 0: none */
    const char *why;
} bal_step;

typedef struct bal_fleet_plan {
    bal_step *steps; /* as wanted, then as listed, then as known */
    size_t count;
    bool full; /* there is no room for what is to be loaded */
} bal_fleet_plan;

/* May a commit no longer be served, as a view whose grant was revoked? */
typedef bool bal_lost_fn(void *ctx, const bal_id *commit);

typedef struct bal_fleet_aims {
    const char *tenant;
    const char *place; /* where its exports are: <place>/<commit> */
    const bal_want *wants;
    size_t want_count;
    const bal_listed *listed;
    size_t listed_count;
    const bal_known *known; /* of this server, any tenant's */
    size_t known_count;
    bool whole;               /* else only what these refs had is unloaded: */
    const char *const *scope; /* names of refs */
    size_t scope_count;
    const char *const *held; /* refs whose older versions stay, unless lost */
    size_t held_count;
    bal_lost_fn *lost;
    void *ctx;
    uint64_t slots; /* of the server, 0: not known */
    bool no_prune;
} bal_fleet_aims;

/* Unloaded is only what is known with its path, or lies in our place under the
 * name that we give that commit; never what has no more than a likely name.
 * Steps are the arena's. ENOMEM. */
BAL_CHECK int bal_fleet_plan_make(bal_fleet_plan *out, const bal_fleet_aims *in,
                                  bal_arena *arena, bal_error *err);
/* The commit of "<place>/<64 hex>". */
bool bal_fleet_commit_of(bal_id *out, const char *place, const char *path);

#endif
