/* A fleet of engines brought to what a store's refs say: exported, loaded,
 * confirmed, unloaded. */
#ifndef FLEET_FLEET_H
#define FLEET_FLEET_H

#include "ballast.h"

typedef enum bal_fate {
    BAL_FATE_LOADED,
    BAL_FATE_UNLOADED,
    BAL_FATE_UNCHANGED,
    BAL_FATE_SKIPPED, /* not to be exported: why */
    BAL_FATE_FAILED,  /* a server said no, or was not there: why */
    BAL_FATES,
} bal_fate;

typedef struct bal_fleet_row {
    bal_fate fate;
    const char *name;   /* of the adapter; of what was skipped: the spec */
    const char *server; /* NULL: of none in particular */
    const char *why;    /* NULL: nothing to say */
} bal_fleet_row;
typedef int bal_fleet_fn(void *ctx, const bal_fleet_row *row);

enum bal_fleet_flags {
    BAL_FLEET_DRY_RUN = 1, /* ask the servers, change nothing */
    BAL_FLEET_NO_PRUNE = 2,
    BAL_FLEET_ADAPT = 4,
};

typedef struct bal_fleet_options {
    const char *const *urls;
    size_t url_count;
    const char *engine; /* vllm sglang; NULL: what each server says it is */
    const char *token;  /* API key, NULL: none */
    const char *const *specs; /* none: every ref */
    size_t spec_count;
    const char *dir;          /* of exports, and of the state file in it */
    bal_model *base;          /* for the pre-flight, NULL: none */
    uint64_t max_rank, slots; /* of the servers; 0: not known */
    double timeout;           /* seconds of a request, 0: 30 */
    unsigned retries;         /* of a request, 0: 4 */
    double wait;              /* seconds for another one at the same folder */
    unsigned flags;
} bal_fleet_options;

typedef struct bal_fleet_report {
    uint64_t counts[BAL_FATES];
    bool unreached; /* some server could not be reached at all */
} bal_fleet_report;

/* Once. Success says that it went through; report what came of it. What is
 * loaded is what the specs say, adapters of the tenant that we loaded and that
 * they do not say (any more) are unloaded, and the folders of these removed
 * once no server lists them. With specs only older versions of these refs go;
 * where a ref cannot be exported for now, what it has loaded stays.
 *
 * Names of adapters never mean two contents, so what is late is never wrong.
 * An adapter is unloaded only where the state in dir has it with the path that
 * the server tells, or where it lies in dir under the name that its commit gets
 * there. fn is called for each adapter on each server, one server after the
 * other. EINVAL: a URL, an engine, an option, servers of different engines;
 * EBUSY: another one works on the same folder; ECORRUPT: the state there. */
BAL_CHECK int bal_fleet_sync(bal_tenant *tenant,
                             const bal_fleet_options *options, bal_fleet_fn *fn,
                             void *ctx, bal_fleet_report *report,
                             bal_work *work, bal_error *err);

/* A number that differs from an earlier one if a sync of these specs (none:
 * every ref) may want something else by now; syncs do not change it. */
BAL_CHECK int bal_fleet_facts(uint64_t *out, bal_tenant *tenant,
                              const char *const *specs, size_t spec_count,
                              bal_error *err);

#endif
