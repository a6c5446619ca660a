/* ballast completion: what a shell reads to complete our words. */
#include "cli/commands.h"
#include "cli/help.h"
#include "core/error.h"

static const bal_shell *find(const char *name)
{
    for (const bal_shell *shell = bal_shells; shell->name; shell++) {
        if (!strcmp(shell->name, name))
            return shell;
    }
    return NULL;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const bal_shell *shell = find(cli->args[0]);
    BAL_LOCAL(bal_buf) script = { 0 };
    bal_json json;

    (void)values;
    if (!shell) {
        return bal_fail(err, BAL_EINVAL, "'%s' is not one of bash, zsh, fish",
                        cli->args[0]);
    }
    int rc = shell->write(&script, err);
    if (rc)
        return rc;
    if (!cli->out.json) {
        bal_out_puts(&cli->out, script.data);
        return 0;
    }
    bal_doc_open(&json, &cli->out, cli->command->name);
    bal_json_key(&json, "shell");
    bal_json_string(&json, shell->name);
    bal_json_key(&json, "script");
    bal_json_string(&json, script.data);
    bal_doc_close(&json, &cli->out);
    return 0;
}

const bal_command bal_cmd_completion = {
    .name = "completion",
    .synopsis = "bash|zsh|fish",
    .summary = "print a shell's completion script",
    .about = "It knows commands, options, choices and refs.",
    .examples = "source <(ballast completion bash)\n"
                "ballast completion fish | source\n",
    .arg = "bash|zsh|fish",
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
