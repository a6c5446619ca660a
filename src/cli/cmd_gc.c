/* ballast gc: remove blocks that no commit uses. */
#include "cli/commands.h"

struct gc_opts {
    bool dry_run, recompress;
};

static const bal_opt opts[] = {
    { 'n', "dry-run", BAL_OPT_FLAG, offsetof(struct gc_opts, dry_run), NULL,
      "only tell what would be freed" },
    { 0, "recompress", BAL_OPT_FLAG, offsetof(struct gc_opts, recompress), NULL,
      "and store every block anew, by the store's present compression" },
    { 0 },
};

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct gc_opts *given = values;
    bal_gc_report report = { 0 };
    bal_json json;

    int rc = bal_gc(cli->store, cli->tenant,
                    (given->dry_run ? BAL_GC_DRY_RUN : 0) |
                        (given->recompress ? BAL_GC_RECOMPRESS : 0),
                    &report, err);
    if (rc)
        return rc;
    if (!cli->out.json) {
        bal_out_text(&cli->out, "freed %llu bytes%s\n",
                     (unsigned long long)report.bytes_freed,
                     given->dry_run ? " (dry run: nothing was removed)" : "");
        if (report.recompressed)
            bal_out_text(&cli->out,
                         "stored %llu blocks anew: %llu bytes, "
                         "%llu before\n",
                         (unsigned long long)report.recompressed,
                         (unsigned long long)report.bytes_after,
                         (unsigned long long)report.bytes_before);
        return 0;
    }
    bal_doc_open(&json, &cli->out, cli->command->name);
    bal_json_key(&json, "bytes_freed");
    bal_json_u64(&json, report.bytes_freed);
    bal_json_key(&json, "blocks");
    bal_json_u64(&json, report.blocks);
    if (given->recompress) {
        bal_json_key(&json, "recompressed");
        bal_json_u64(&json, report.recompressed);
        bal_json_key(&json, "bytes_before");
        bal_json_u64(&json, report.bytes_before);
        bal_json_key(&json, "bytes_after");
        bal_json_u64(&json, report.bytes_after);
    }
    bal_doc_close(&json, &cli->out);
    return 0;
}

const bal_command bal_cmd_gc = {
    .name = "gc",
    .synopsis = "[--dry-run] [--recompress]",
    .summary = "remove blocks that no commit uses",
    .about = "Every commit keeps its blocks, whether a ref leads to it or "
             "not. What is left over comes from commits that did not end.\n\n"
             "--recompress: after 'ballast config compression best', or once "
             "the base of what was committed before is there. Ids stay.",
    .needs = BAL_NEEDS_TENANT,
    .opts = opts,
    .opts_size = sizeof(struct gc_opts),
    .run = run,
};
