/* ballast copy: the store's blocks and database to other places. */
#include <string.h>

#include "cli/commands.h"

struct copy_opts {
    const char *to_backend, *to_db;
};

static const bal_opt opts[] = {
    { 0, "to-backend", BAL_OPT_STRING, offsetof(struct copy_opts, to_backend),
      "URL", "where blocks are to be, as s3://bucket/prefix" },
    { 0, "to-db", BAL_OPT_STRING, offsetof(struct copy_opts, to_db), "URL",
      "where facts are to be, as postgresql://host/database" },
    { 0 },
};

/* Where something was is what the store recorded, without a password. */
static void tell_old(bal_cli *cli, const char *now, const char *setting)
{
    const char *old = bal_setting_get(cli->store, setting);

    if (now && old && strcmp(now, old) != 0)
        bal_out_text(&cli->out, "left for you to remove: %s\n", old);
}

static void tell_text(bal_cli *cli, const struct copy_opts *given,
                      const bal_copy_report *report)
{
    bal_out_text(&cli->out, "%llu blocks, %llu bytes",
                 (unsigned long long)report->blocks,
                 (unsigned long long)report->bytes);
    if (report->present)
        bal_out_text(&cli->out, " (%llu were there)",
                     (unsigned long long)report->present);
    bal_out_text(&cli->out, "; %llu rows\n", (unsigned long long)report->rows);
    tell_old(cli, given->to_backend, "backend");
    tell_old(cli, given->to_db, "db");
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct copy_opts *given = values;
    bal_copy_report report;
    bal_json json;

    int rc = bal_store_copy(cli->store, given->to_backend, given->to_db,
                            &report, err);
    if (rc)
        return rc;
    if (!cli->out.json) {
        tell_text(cli, given, &report);
        return 0;
    }
    bal_doc_open(&json, &cli->out, cli->command->name);
    bal_json_key(&json, "blocks");
    bal_json_u64(&json, report.blocks);
    bal_json_key(&json, "bytes");
    bal_json_u64(&json, report.bytes);
    bal_json_key(&json, "present");
    bal_json_u64(&json, report.present);
    bal_json_key(&json, "rows");
    bal_json_u64(&json, report.rows);
    bal_doc_close(&json, &cli->out);
    return 0;
}

const bal_command bal_cmd_copy = {
    .name = "copy",
    .synopsis = "[--to-backend URL] [--to-db URL]",
    .summary = "move the store to another backend or database",
    .about =
        "Copies every block and every row, checks what arrived, and then the "
        "store is at the new place: ids, history, grants and proofs are the "
        "same, and whoever opens the old one is led there. Cut short, the "
        "store is where it was, and the same command goes on.\n\n"
        "What is at the old place is left there, for you to remove. A "
        "password in --to-db is not recorded: give it with PGPASSWORD or "
        "~/.pgpass.",
    .needs = BAL_NEEDS_STORE,
    .opts = opts,
    .opts_size = sizeof(struct copy_opts),
    .run = run,
};
