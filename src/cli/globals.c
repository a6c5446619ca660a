/* The options of every command, before or behind its name. Precedence: option,
 * environment, what the store records, default. */
#include "cli/cli.h"
#include "core/error.h"
#include "core/str.h"

const bal_opt bal_global_opts[] = {
    { 0, "root", BAL_OPT_STRING, offsetof(bal_globals, root), "DIR",
      "the store; else the nearest .ballast upwards, else ./.ballast", 0,
      "BALLAST_ROOT" },
    { 0, "tenant", BAL_OPT_STRING, offsetof(bal_globals, tenant), "T",
      "whose models; else the store's own tenant", 0, "BALLAST_TENANT" },
    { 0, "backend", BAL_OPT_STRING, offsetof(bal_globals, backend), "URL",
      "where blocks are; else what the store records", 0, "BALLAST_BACKEND" },
    { 0, "db", BAL_OPT_STRING, offsetof(bal_globals, db), "URL",
      "where facts are; else what the store records", 0, "BALLAST_DB" },
    { 0, "cache", BAL_OPT_STRING, offsetof(bal_globals, cache), "DIR",
      "keep copies of blocks that are read from afar", 0, "BALLAST_CACHE" },
    { 0, "cache-size", BAL_OPT_SIZE, offsetof(bal_globals, cache_size), "SIZE",
      "bytes of such copies at most; else 10G", 0, "BALLAST_CACHE_SIZE" },
    { 0, "json", BAL_OPT_FLAG, offsetof(bal_globals, json), NULL,
      "results as JSON on stdout, errors as JSON on stderr" },
    { 'j', "jobs", BAL_OPT_U64, offsetof(bal_globals, jobs), "N",
      "threads; else the usable cores", 0, "BALLAST_JOBS" },
    { 0, "wait", BAL_OPT_DOUBLE, offsetof(bal_globals, wait), "SECONDS",
      "how long to wait for a lock; else 30" },
    { 0, "no-cache", BAL_OPT_FLAG, offsetof(bal_globals, no_cache), NULL,
      "neither read nor fill the cache of resolved views" },
    { 'q', "quiet", BAL_OPT_FLAG, offsetof(bal_globals, quiet), NULL,
      "nothing but results and errors" },
    { 'v', "verbose", BAL_OPT_FLAG, offsetof(bal_globals, verbose), NULL,
      "what is done and how long it took" },
    { 0, "progress", BAL_OPT_ENUM, offsetof(bal_globals, progress),
      "auto|always|never",
      "a bar on stderr; auto: on a terminal, after a second" },
    { 0, "color", BAL_OPT_ENUM, offsetof(bal_globals, color),
      "auto|always|never", "colour; auto: on a terminal, without NO_COLOR" },
    { 'h', "help", BAL_OPT_FLAG, offsetof(bal_globals, help), NULL,
      "this text" },
    { 0, "version", BAL_OPT_FLAG, offsetof(bal_globals, version), NULL,
      "the version; with -v also of the libraries" },
    { 0, "generate", BAL_OPT_FLAG, offsetof(bal_globals, generate), NULL,
      "as the command generate", BAL_OPT_HIDDEN },
    { 0 },
};

enum { JOBS_MAX = 4096 };

int bal_globals_check(const bal_globals *self, bal_error *err)
{
    int rc = self->tenant ? bal_tenant_check(self->tenant, err) : 0;
    if (rc)
        return rc;

    if (self->jobs.given && (!self->jobs.value || self->jobs.value > JOBS_MAX))
        return bal_fail(err, BAL_EINVAL, "--jobs: 1 to %d, not %llu", JOBS_MAX,
                        (unsigned long long)self->jobs.value);
    if (self->cache_size.given && !self->cache)
        return bal_fail(err, BAL_EINVAL, "--cache-size: of which --cache?");
    if (self->wait.given && self->wait.value < 0)
        return bal_fail(err, BAL_EINVAL, "--wait: not less than 0");
    return 0;
}
