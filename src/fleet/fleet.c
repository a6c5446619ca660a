/* One run: servers asked what they have, exports made, then one server after
 * the other made what it should be, and folders removed last. */
#include "fleet/fleet.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "fleet/run.h"

static const char lock_name[] = ".ballast-sync.lock";

static void bal_fleet_run_done(bal_fleet_run *self)
{
    for (size_t i = 0; i < self->server_count; i++)
        bal_fleet_server_done(&self->servers[i]);
    bal_fleet_state_done(&self->state);
    free(self->gone);
    bal_arena_done(&self->arena);
}

void bal_fleet_tell(bal_fleet_run *self, bal_fate fate, const char *name,
                    const char *server, const char *why)
{
    const bal_fleet_row row = { fate, name, server, why };

    self->report->counts[fate]++;
    if (!self->quiet && self->fn(self->ctx, &row))
        self->quiet = true;
}

const char *bal_fleet_copy(bal_fleet_run *self, const char *text)
{
    return bal_arena_copy(&self->arena, text, strlen(text));
}

/* ---- what is asked for -------------------------------------------------- */

static int check(const bal_fleet_options *options, bal_error *err)
{
    static const char *const engines[] = { "vllm", "sglang" };
    bool known = !options->engine;

    for (size_t i = 0; !known && i < sizeof(engines) / sizeof(engines[0]); i++)
        known = !strcmp(options->engine, engines[i]);
    if (!known)
        return bal_fail(err, BAL_EINVAL,
                        "'%s' is no engine that loads at run time: vllm, "
                        "sglang",
                        options->engine);
    if (!options->url_count)
        return bal_fail(err, BAL_EINVAL, "no server is given");
    if (!options->dir || !options->dir[0])
        return bal_fail(err, BAL_EINVAL, "no folder for exports is given");
    return 0;
}

static int open_servers(bal_fleet_run *self, bal_error *err)
{
    const bal_fleet_options *options = self->options;

    self->servers = bal_arena_alloc(&self->arena, options->url_count *
                                                      sizeof(*self->servers));
    if (!self->servers)
        return bal_fail_memory(err, "servers");
    for (size_t i = 0; i < options->url_count; i++) {
        bool there = false;
        char *url = NULL;
        int rc =
            bal_fleet_server_name(&url, options->urls[i], &self->arena, err);
        if (rc)
            return rc;
        for (size_t k = 0; k < self->server_count; k++)
            there |= !strcmp(self->servers[k].url, url);
        if (there)
            continue;
        rc = bal_fleet_server_open(&self->servers[self->server_count++], url,
                                   options, self->work, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Engines read what we send as a path of their own: so it is absolute, without
 * links, and text that JSON can hold. */
static int find_place(bal_fleet_run *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) place = { 0 };
    char *real = NULL;
    int rc = bal_path_real(&real, self->options->dir, err);

    if (rc)
        return rc;
    self->dir = bal_fleet_copy(self, real);
    bal_str_free(real);
    if (!self->dir)
        return bal_fail_memory(err, "a folder");
    if (!bal_utf8_valid(self->dir, strlen(self->dir)))
        return bal_fail(err, BAL_EINVAL,
                        "'%s' is not UTF-8, which servers are told in",
                        self->dir);
    rc = bal_buf_format(&place, err, "%s/%s", self->dir,
                        bal_tenant_name(self->tenant));
    if (rc)
        return rc;
    self->place = bal_fleet_copy(self, place.data);
    return self->place ? 0 : bal_fail_memory(err, "a folder");
}

/* ---- the run ------------------------------------------------------------ */

/* The lists of all, and the engine that they are. */
static int ask_all(bal_fleet_run *self, const char **engine, bal_error *err)
{
    *engine = self->options->engine;
    for (size_t i = 0; i < self->server_count; i++) {
        bal_fleet_server *server = &self->servers[i];
        int rc = bal_fleet_server_list(server, err);
        if (rc)
            return rc;
        if (server->why)
            continue;
        if (*engine && strcmp(*engine, server->engine) != 0)
            return bal_fail(err, BAL_EINVAL,
                            "servers of different engines, '%s' and '%s': "
                            "each takes a run and a folder of its own",
                            *engine, server->engine);
        *engine = server->engine;
    }
    return 0;
}

/* A server that gave no list: nothing that it should have is there. */
static void tell_failed(bal_fleet_run *self, const bal_fleet_server *server)
{
    for (size_t i = 0; i < self->want_count; i++)
        bal_fleet_tell(self, BAL_FATE_FAILED, self->wants[i].name, server->url,
                       server->why);
    if (!self->want_count)
        bal_fleet_tell(self, BAL_FATE_FAILED, server->url, NULL, server->why);
}

/* What was noted, if it was this store that did. */
static int read_state(bal_fleet_run *self, bal_error *err)
{
    char store[BAL_STORE_ID_ROOM];
    int rc = bal_fleet_state_read(&self->state, self->dir, err);

    if (!rc)
        rc = bal_tenant_store_id(store, self->tenant, err);
    return rc ? rc : bal_fleet_state_claim(&self->state, store, err);
}

static int run_all(bal_fleet_run *self, bal_error *err)
{
    const char *engine;
    int rc = read_state(self, err);

    if (!rc)
        rc = ask_all(self, &engine, err);
    if (!rc)
        rc = bal_fleet_wants(self, engine, err);
    for (size_t i = 0; !rc && i < self->server_count; i++) {
        bal_fleet_server *server = &self->servers[i];
        if (server->why)
            tell_failed(self, server);
        else
            rc = bal_fleet_reconcile(self, server, err);
        self->failed |= server->why != NULL;
        self->report->unreached |= server->unreached;
    }
    return rc ? rc : bal_fleet_prune(self, err);
}

/* A state that a killed run was writing. */
static int sweep_one(void *ctx, const char *name, bal_error *err)
{
    static const char start[] = BAL_FLEET_STATE ".tmp-";
    const bal_fleet_run *self = ctx;

    if (strncmp(name, start, sizeof(start) - 1) != 0)
        return 0;
    char *path = bal_path_join(self->dir, name);
    if (!path)
        return bal_fail_memory(err, "a folder");
    unlink(path);
    bal_str_free(path);
    return 0;
}

static int take_lock(bal_lock **out, bal_fleet_run *self, bal_error *err)
{
    char *path = NULL;

    if (self->options->flags & BAL_FLEET_DRY_RUN)
        return 0;
    int rc = bal_make_dirs(self->dir, err);
    if (rc)
        return rc;
    path = bal_path_join(self->dir, lock_name);
    if (!path)
        return bal_fail_memory(err, "a lock");
    rc = bal_lock_take(out, path, BAL_LOCK_EXCLUSIVE, self->options->wait, err);
    bal_str_free(path);
    return rc ? rc : bal_dir_each(self->dir, sweep_one, self, err);
}

int bal_fleet_sync(bal_tenant *tenant, const bal_fleet_options *options,
                   bal_fleet_fn *fn, void *ctx, bal_fleet_report *report,
                   bal_work *work, bal_error *err)
{
    BAL_OWN(bal_lock) lock = NULL;
    BAL_LOCAL(bal_fleet_run)
    run = {
        .tenant = tenant,
        .options = options,
        .fn = fn,
        .ctx = ctx,
        .report = report,
        .work = work,
    };

    *report = (bal_fleet_report){ 0 };
    int rc = check(options, err);
    if (!rc)
        rc = open_servers(&run, err);
    if (!rc)
        rc = find_place(&run, err);
    if (!rc)
        rc = take_lock(&lock, &run, err);
    return rc ? rc : run_all(&run, err);
}
