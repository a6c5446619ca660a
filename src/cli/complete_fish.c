/* Completion for fish: one `complete` line an option. */
#include "cli/commands.h"
#include "cli/complete.h"
#include "cli/help.h"

static const char *const actions[BAL_VALUE_KINDS] = {
    [BAL_VALUE_TEXT] = " -x",
    [BAL_VALUE_DIR] = " -x -a '(__fish_complete_directories)'",
    [BAL_VALUE_FILE] = " -r -F",
    [BAL_VALUE_REF] = " -x -a '(__ballast_refs)'",
    [BAL_VALUE_MODEL] = " -r -F -a '(__ballast_refs)'",
};

static const char head[] =
    "# fish completion for ballast: ballast completion fish | source\n"
    "function __ballast_refs\n"
    "    ballast refs 2>/dev/null | cut -c15-\n"
    "end\n\n"
    "complete -c ballast -f\n";

static void action(bal_script *script, const char *value)
{
    BAL_LOCAL(bal_buf) words = { 0 };
    bal_value_kind kind;

    if (script->rc)
        return;
    script->rc = bal_value_kind_of(&kind, &words, value, script->err);
    if (kind == BAL_VALUE_WORDS)
        bal_script_put(script, " -x -a '%s'", bal_buf_string(&words));
    else
        bal_script_put(script, "%s", actions[kind]);
}

static void begin(bal_script *script, const char *command)
{
    bal_script_put(script, "complete -c ballast");
    if (command)
        bal_script_put(script, " -n '__fish_seen_subcommand_from %s'", command);
}

static void help(bal_script *script, const char *text)
{
    bal_script_put(script, " -d '");
    bal_script_quoted(script, text, "\\");
    bal_script_put(script, "'\n");
}

static void options(bal_script *script, const char *command, bal_opt_set set)
{
    char name[64];
    bal_opt row;

    for (size_t i = 0; bal_opt_at(&row, &set, i); i++) {
        const char *text = row.help ? row.help : "";
        if (row.flags & BAL_OPT_HIDDEN)
            continue;
        bal_opt_spell(name, row.name);
        begin(script, command);
        bal_script_put(script, " -l %s", name);
        if (row.letter)
            bal_script_put(script, " -s %c", row.letter);
        if (bal_opt_valued(&row))
            action(script, row.value);
        help(script, text);
        if (!bal_opt_negatable(&row))
            continue;
        begin(script, command);
        bal_script_put(script, " -l no-%s", name);
        help(script, text);
    }
}

static void argument(bal_script *script, const bal_command *command)
{
    begin(script, command->name);
    action(script, command->arg);
    bal_script_put(script, "\n");
}

/* First one of the words and no file, then what arguments are. */
static void worded(bal_script *script, const bal_command *command)
{
    static const char seen[] = "__fish_seen_subcommand_from";
    BAL_LOCAL(bal_buf) words = { 0 };
    bal_value_kind kind;

    if (script->rc)
        return;
    script->rc = bal_value_kind_of(&kind, &words, command->words, script->err);
    bal_script_put(script,
                   "complete -c ballast -n '%s %s; and not %s %s' -x -a '%s'\n",
                   seen, command->name, seen, bal_buf_string(&words),
                   bal_buf_string(&words));
    if (!command->arg)
        return;
    bal_script_put(script, "complete -c ballast -n '%s %s; and %s %s'", seen,
                   command->name, seen, bal_buf_string(&words));
    action(script, command->arg);
    bal_script_put(script, "\n");
}

int bal_complete_fish(bal_buf *to, bal_error *err)
{
    bal_script script = { to, 0, err };

    bal_script_put(&script, "%s", head);
    options(&script, NULL, bal_global_options());
    for (size_t i = 0; i < bal_commands_count; i++) {
        const bal_command *command = bal_commands[i];
        if (command->hidden)
            continue;
        bal_script_put(&script,
                       "complete -c ballast -n __fish_use_subcommand -a %s",
                       command->name);
        help(&script, command->summary);
        options(&script, command->name, bal_own_options(command));
        if (command->words)
            worded(&script, command);
        else if (command->arg)
            argument(&script, command);
    }
    return script.rc;
}
