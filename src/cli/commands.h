/* The commands: one row each, in cmd_<name>.c. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

/* In the order of help. */
extern const bal_command *const bal_commands[];
extern const size_t bal_commands_count;

/* NULL: no such command. */
const bal_command *bal_command_find(const char *name);
/* EINVAL "unknown command 'x'", with the nearest one as hint. */
int bal_command_unknown(const char *name, bal_error *err);

extern const bal_command bal_cmd_init;
extern const bal_command bal_cmd_commit;
extern const bal_command bal_cmd_delta;
extern const bal_command bal_cmd_apply;
extern const bal_command bal_cmd_checkout;
extern const bal_command bal_cmd_merge;
extern const bal_command bal_cmd_lora;
extern const bal_command bal_cmd_extract_lora;
extern const bal_command bal_cmd_import_lora;
extern const bal_command bal_cmd_methods;
extern const bal_command bal_cmd_import_mergekit;
extern const bal_command bal_cmd_export_mergekit;
extern const bal_command bal_cmd_serve;
extern const bal_command bal_cmd_grant;
extern const bal_command bal_cmd_revoke;
extern const bal_command bal_cmd_grants;
extern const bal_command bal_cmd_log;
extern const bal_command bal_cmd_reflog;
extern const bal_command bal_cmd_refs;
extern const bal_command bal_cmd_reset;
extern const bal_command bal_cmd_show;
extern const bal_command bal_cmd_ls;
extern const bal_command bal_cmd_cat;
extern const bal_command bal_cmd_diff;
extern const bal_command bal_cmd_fingerprint;
extern const bal_command bal_cmd_probes;
extern const bal_command bal_cmd_bisect;
extern const bal_command bal_cmd_wdelta;
extern const bal_command bal_cmd_serve_export;
extern const bal_command bal_cmd_sync_vllm;
extern const bal_command bal_cmd_push;
extern const bal_command bal_cmd_pull;
extern const bal_command bal_cmd_copy;
extern const bal_command bal_cmd_forget;
extern const bal_command bal_cmd_verify;
extern const bal_command bal_cmd_proofs;
extern const bal_command bal_cmd_fsck;
extern const bal_command bal_cmd_gc;
extern const bal_command bal_cmd_stats;
extern const bal_command bal_cmd_key;
extern const bal_command bal_cmd_config;
extern const bal_command bal_cmd_tenants;
extern const bal_command bal_cmd_completion;

extern const bal_command bal_cmd_help;
extern const bal_command bal_cmd_generate;

#endif
