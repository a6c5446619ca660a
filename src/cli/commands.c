/* The table of commands: dispatch, help, man pages, completions and docs/cli.md
 * come from it. A command is a file and a line here. */
#include "cli/commands.h"

#include "core/error.h"

const bal_command *const bal_commands[] = {
    &bal_cmd_init,
    &bal_cmd_commit,
    &bal_cmd_delta,
    &bal_cmd_apply,
    &bal_cmd_checkout,
    &bal_cmd_merge,
    &bal_cmd_lora,
    &bal_cmd_extract_lora,
    &bal_cmd_import_lora,
    &bal_cmd_methods,
    &bal_cmd_import_mergekit,
    &bal_cmd_export_mergekit,
    &bal_cmd_log,
    &bal_cmd_reflog,
    &bal_cmd_refs,
    &bal_cmd_reset,
    &bal_cmd_show,
    &bal_cmd_ls,
    &bal_cmd_cat,
    &bal_cmd_diff,
    &bal_cmd_fingerprint,
    &bal_cmd_probes,
    &bal_cmd_bisect,
    &bal_cmd_wdelta,
    &bal_cmd_serve_export,
    &bal_cmd_sync_vllm,
    &bal_cmd_serve,
    &bal_cmd_grant,
    &bal_cmd_revoke,
    &bal_cmd_grants,
    &bal_cmd_push,
    &bal_cmd_pull,
    &bal_cmd_copy,
    &bal_cmd_forget,
    &bal_cmd_verify,
    &bal_cmd_proofs,
    &bal_cmd_fsck,
    &bal_cmd_gc,
    &bal_cmd_stats,
    &bal_cmd_key,
    &bal_cmd_config,
    &bal_cmd_tenants,
    &bal_cmd_completion,
    &bal_cmd_help,
    &bal_cmd_generate,
};
const size_t bal_commands_count =
    sizeof(bal_commands) / sizeof(bal_commands[0]);

const bal_command *bal_command_find(const char *name)
{
    for (size_t i = 0; i < bal_commands_count; i++) {
        if (!strcmp(bal_commands[i]->name, name))
            return bal_commands[i];
    }
    return NULL;
}

int bal_command_unknown(const char *name, bal_error *err)
{
    bal_nearest nearest;
    int rc = bal_fail(err, BAL_EINVAL, "unknown command '%s'", name);

    bal_nearest_begin(&nearest, name);
    for (size_t i = 0; i < bal_commands_count; i++) {
        if (!bal_commands[i]->hidden)
            bal_nearest_offer(&nearest, bal_commands[i]->name);
    }
    if (nearest.best[0])
        return bal_hint(err, rc, "did you mean '%s'?", nearest.best);
    return bal_hint(err, rc, "'ballast help' lists the commands");
}
