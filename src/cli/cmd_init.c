/* ballast init: make a store, or see that it is as asked for. */
#include "cli/commands.h"
#include "core/error.h"
#include "core/str.h"

struct init_opts {
    bal_opt_u64 block_size;
    const char *compression;
    bal_opt_u64 default_jobs;
};

static const bal_opt opts[] = {
    { 0, "block-size", BAL_OPT_SIZE, offsetof(struct init_opts, block_size),
      "SIZE", "bytes at which large tensors are cut, 4M if not told" },
    { 0, "compression", BAL_OPT_ENUM, offsetof(struct init_opts, compression),
      "auto|none|fast|best|raw|zstd",
      "how blocks are stored; raw is none, zstd is auto" },
    { 0, "default-jobs", BAL_OPT_U64, offsetof(struct init_opts, default_jobs),
      "N", "threads where neither -j nor BALLAST_JOBS says" },
    { 0 },
};

static const struct {
    const char *key;
    bool number;
} shown[] = {
    { "block_size", true }, { "compression", false }, { "backend", false },
    { "db", false },        { "format", true },
};

static void show_json(bal_cli *cli)
{
    bal_json json;

    bal_doc_open(&json, &cli->out, cli->command->name);
    bal_json_key(&json, "root");
    bal_json_string(&json, bal_store_root(cli->store));
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        const char *text = bal_setting_get(cli->store, shown[i].key);
        uint64_t number;

        bal_json_key(&json, shown[i].key);
        if (shown[i].number && text && !bal_parse_u64(&number, text, NULL))
            bal_json_u64(&json, number);
        else
            bal_json_string(&json, text);
    }
    bal_doc_close(&json, &cli->out);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct init_opts *given = values;
    bal_store_options options = {
        .backend = cli->globals.backend,
        .db = cli->globals.db,
        .tenant = cli->globals.tenant,
        .block_size = given->block_size.value,
        .compression = given->compression,
        .default_jobs = (unsigned)given->default_jobs.value,
        .wait = cli->globals.wait.value,
        .flags = BAL_OPEN_INIT,
    };
    if (given->block_size.given && !given->block_size.value)
        return bal_fail(err, BAL_EINVAL, "--block-size: not 0");
    if (given->default_jobs.value > 4096)
        return bal_fail(err, BAL_EINVAL, "--default-jobs: at most 4096");
    int rc = bal_cli_root(&options.root, cli, err);
    if (rc)
        return rc;
    rc = bal_cli_work(cli, err);
    if (rc)
        return rc;
    options.work = cli->work;
    rc = bal_store_open(&cli->store, &options, err);
    if (rc)
        return rc;
    if (cli->out.json) {
        show_json(cli);
        return 0;
    }
    bal_out_text(&cli->out, "initialised ");
    bal_out_safe(&cli->out, bal_store_root(cli->store));
    bal_out_text(&cli->out, "\n");
    return 0;
}

const bal_command bal_cmd_init = {
    .name = "init",
    .synopsis = "[OPTIONS]",
    .summary = "make a store, or see that it is as asked for",
    .about = "Makes a store at --root and records its settings. With --tenant "
             "that tenant becomes the store's own: commands that name none "
             "use it. On a store that is there this succeeds if its settings "
             "are the ones asked for, and is a conflict otherwise. There is "
             "no need to call it: the first commit makes a store too.",
    .examples = "ballast init --tenant acme\n"
                "ballast --root /srv/models init --block-size 8M\n",
    .opts = opts,
    .opts_size = sizeof(struct init_opts),
    .run = run,
};
