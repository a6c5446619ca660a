/* ballast gc: remove blocks that no commit uses. */
#include "cli/commands.h"

struct gc_opts {
    bool dry_run;
};

static const bal_opt opts[] = {
    { 'n', "dry-run", BAL_OPT_FLAG, offsetof(struct gc_opts, dry_run), NULL,
      "only tell what would be freed" },
    { 0 },
};

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct gc_opts *given = values;
    bal_gc_report report = { 0 };
    bal_json json;

    int rc = bal_gc(cli->store, cli->tenant,
                    given->dry_run ? BAL_GC_DRY_RUN : 0, &report, err);
    if (rc)
        return rc;
    if (!cli->out.json) {
        bal_out_text(&cli->out, "freed %llu bytes%s\n",
                     (unsigned long long)report.bytes_freed,
                     given->dry_run ? " (dry run: nothing was removed)" : "");
        return 0;
    }
    bal_doc_open(&json, &cli->out, cli->command->name);
    bal_json_key(&json, "bytes_freed");
    bal_json_u64(&json, report.bytes_freed);
    bal_json_key(&json, "blocks");
    bal_json_u64(&json, report.blocks);
    bal_doc_close(&json, &cli->out);
    return 0;
}

const bal_command bal_cmd_gc = {
    .name = "gc",
    .synopsis = "[--dry-run]",
    .summary = "remove blocks that no commit uses",
    .about = "Every commit keeps its blocks, whether a ref leads to it or "
             "not. What is left over comes from commits that did not end.",
    .needs = BAL_NEEDS_TENANT,
    .opts = opts,
    .opts_size = sizeof(struct gc_opts),
    .run = run,
};
