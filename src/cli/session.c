/* From options to an open store and tenant. */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/error.h"
#include "core/str.h"

static const char store_name[] = ".ballast";

/* True if dir, of length len, holds a store; path is filled with its name. */
static bool holds_store(char path[PATH_MAX], const char *dir, size_t len)
{
    struct stat info;
    int n = snprintf(path, PATH_MAX, "%.*s/%s", (int)len, dir, store_name);

    return n < PATH_MAX && !stat(path, &info) && S_ISDIR(info.st_mode);
}

int bal_cli_root(const char **out, bal_cli *cli, bal_error *err)
{
    char here[PATH_MAX];
    char path[PATH_MAX];

    if (cli->globals.root) {
        *out = cli->globals.root;
        return 0;
    }
    if (!getcwd(here, sizeof(here)))
        return bal_fail_errno(err, "finding the working directory");
    for (size_t len = strlen(here); len; len--) {
        bool end = here[len] == '\0' || here[len] == '/';
        if (!end || !holds_store(path, here, len))
            continue;
        *out = bal_arena_copy(&cli->arena, path, strlen(path));
        return *out ? 0 : bal_fail_memory(err, "root");
    }
    size_t len = holds_store(path, "", 0) || !here[1] ? 0 : strlen(here);
    int n = snprintf(path, sizeof(path), "%.*s/%s", (int)len, here, store_name);
    if (n >= (int)sizeof(path))
        return bal_fail(err, BAL_EINVAL,
                        "the working directory's name is too "
                        "long; say --root");
    *out = bal_arena_copy(&cli->arena, path, strlen(path));
    return *out ? 0 : bal_fail_memory(err, "root");
}

int bal_cli_work(bal_cli *cli, bal_error *err)
{
    if (cli->work)
        return 0;
    int rc = bal_work_new(&cli->work, (unsigned)cli->globals.jobs.value, err);
    if (rc)
        return rc;
    bal_work_watch(cli->work, bal_progress_watch, &cli->progress);
    return 0;
}

/* How many threads the store records, where nothing else says so. */
static unsigned recorded_jobs(bal_cli *cli)
{
    const char *text = bal_setting_get(cli->store, "default_jobs");
    uint64_t jobs = 0;

    if (cli->globals.jobs.given || !text || bal_parse_u64(&jobs, text, NULL))
        return 0;
    return jobs <= UINT_MAX ? (unsigned)jobs : 0;
}

bal_store_options bal_cli_store_options(const bal_globals *globals)
{
    return (bal_store_options){
        .backend = globals->backend,
        .db = globals->db,
        .wait = globals->wait.value,
        .flags = globals->no_cache ? BAL_OPEN_NO_CACHE : 0,
        .cache = globals->cache,
        .cache_size = globals->cache_size.value,
    };
}

static int open_once(bal_cli *cli, const char *root, unsigned flags,
                     bal_error *err)
{
    bal_store_options options = bal_cli_store_options(&cli->globals);

    options.root = root;
    options.flags |= flags;
    int rc = bal_cli_work(cli, err);
    if (rc)
        return rc;
    options.work = cli->work;
    rc = bal_store_open(&cli->store, &options, err);
    if (rc == BAL_ENOTFOUND && err && !err->hint[0])
        bal_hint(err, rc, "'ballast init' makes one, as does the first commit");
    return rc;
}

int bal_cli_store(bal_cli *cli, unsigned flags, bal_error *err)
{
    const char *root;

    if (cli->store)
        return 0;
    int rc = bal_cli_root(&root, cli, err);
    if (rc)
        return rc;
    rc = open_once(cli, root, flags, err);
    if (rc)
        return rc;
    unsigned jobs = recorded_jobs(cli);
    if (!jobs || jobs == bal_work_jobs(cli->work))
        return 0;
    /* The store borrows the threads, so it is opened again with the others. */
    bal_store_free(BAL_TAKE(cli->store));
    bal_work_free(BAL_TAKE(cli->work));
    cli->globals.jobs = (bal_opt_u64){ true, jobs };
    return open_once(cli, root, flags, err);
}

static int no_tenant(bal_error *err)
{
    int rc = bal_fail(err, BAL_EINVAL, "no tenant is named");

    return bal_hint(err, rc,
                    "--tenant T, or BALLAST_TENANT=T, or once and for all: "
                    "ballast config tenant T");
}

int bal_cli_tenant(bal_cli *cli, unsigned flags, bal_error *err)
{
    bool named = cli->globals.tenant != NULL;

    if (cli->tenant)
        return 0;
    int rc = bal_cli_store(cli, named ? flags : 0, err);
    if (rc == BAL_ENOTFOUND && !named && (flags & BAL_OPEN_CREATE))
        return no_tenant(err);
    if (rc)
        return rc;
    if (!named && !bal_setting_get(cli->store, "tenant"))
        return no_tenant(err);
    return bal_tenant_open(&cli->tenant, cli->store, cli->globals.tenant, err);
}

void bal_cli_close(bal_cli *cli)
{
    bal_tenant_free(BAL_TAKE(cli->tenant));
    bal_store_free(BAL_TAKE(cli->store));
    bal_work_free(BAL_TAKE(cli->work));
}
