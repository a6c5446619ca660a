/* ballast help: all commands, or one. */
#include "cli/commands.h"
#include "cli/help.h"

/* Machines get the table itself. */
static void show_json(bal_cli *cli, const bal_command *only)
{
    bal_json json;

    bal_doc_open(&json, &cli->out, "help");
    bal_json_key(&json, "commands");
    bal_json_array(&json);
    for (size_t i = 0; i < bal_commands_count; i++) {
        const bal_command *command = bal_commands[i];
        if (command->hidden || (only && only != command))
            continue;
        bal_json_object(&json);
        bal_json_key(&json, "name");
        bal_json_string(&json, command->name);
        bal_json_key(&json, "synopsis");
        bal_json_string(&json, command->synopsis);
        bal_json_key(&json, "summary");
        bal_json_string(&json, command->summary);
        bal_json_close(&json);
    }
    bal_json_close(&json);
    bal_doc_close(&json, &cli->out);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const bal_command *only = NULL;

    (void)values;
    if (cli->arg_count) {
        only = bal_command_find(cli->args[0]);
        if (!only)
            return bal_command_unknown(cli->args[0], err);
    }
    if (cli->out.json)
        show_json(cli, only);
    else if (only)
        bal_help_command(&cli->out, only);
    else
        bal_help_all(&cli->out);
    return 0;
}

const bal_command bal_cmd_help = {
    .name = "help",
    .synopsis = "[COMMAND]",
    .summary = "tell about all commands, or about one",
    .about = "'ballast COMMAND --help' is the same.",
    .arg = "COMMAND",
    .max_args = 1,
    .run = run,
};
