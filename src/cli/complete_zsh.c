/* Completion for zsh, by _arguments. */
#include "cli/commands.h"
#include "cli/complete.h"
#include "cli/help.h"

static const char *const actions[BAL_VALUE_KINDS] = {
    [BAL_VALUE_TEXT] = " ",
    [BAL_VALUE_DIR] = "_files -/",
    [BAL_VALUE_FILE] = "_files",
    [BAL_VALUE_REF] = "_ballast_refs",
    [BAL_VALUE_MODEL] = "_ballast_models",
};

static const char head[] =
    "#compdef ballast\n"
    "# zsh completion for ballast: save as _ballast in a folder of $fpath\n"
    "_ballast_refs() {\n"
    "    local -a refs\n"
    "    refs=(${(f)\"$(ballast refs 2>/dev/null | cut -c15-)\"})\n"
    "    _describe ref refs\n"
    "}\n\n"
    "_ballast_models() {\n"
    "    _alternative 'paths:path:_files' 'refs:ref:_ballast_refs'\n"
    "}\n\n"
    "_ballast() {\n"
    "    local context state state_descr line\n"
    "    typeset -A opt_args\n"
    "    local -a commands globals\n"
    "    commands=(\n";

static void action(bal_script *script, const char *value)
{
    BAL_LOCAL(bal_buf) words = { 0 };
    bal_value_kind kind;

    if (script->rc)
        return;
    script->rc = bal_value_kind_of(&kind, &words, value, script->err);
    if (kind == BAL_VALUE_WORDS)
        bal_script_put(script, "(%s)", bal_buf_string(&words));
    else
        bal_script_put(script, "%s", actions[kind]);
}

/* "'--ref=[help]:REF:_ballast_refs' \". */
static void option(bal_script *script, const bal_opt *row, const char *spelling)
{
    bool valued = bal_opt_valued(row);

    bal_script_put(script, "'%s%s%s[", row->type == BAL_OPT_LIST ? "*" : "",
                   spelling, valued && spelling[1] == '-' ? "=" : "");
    bal_script_quoted(script, row->help ? row->help : "", "[]:\\");
    bal_script_put(script, "]");
    if (valued) {
        bal_script_put(script, ":");
        bal_script_quoted(script, row->value, ":");
        bal_script_put(script, ":");
        action(script, row->value);
    }
    bal_script_put(script, "' ");
}

static void options(bal_script *script, bal_opt_set set)
{
    char letter[] = "-x";
    char spelling[80];
    char name[64];
    bal_opt row;

    for (size_t i = 0; bal_opt_at(&row, &set, i); i++) {
        if (row.flags & BAL_OPT_HIDDEN)
            continue;
        bal_opt_spell(name, row.name);
        snprintf(spelling, sizeof(spelling), "--%s", name);
        option(script, &row, spelling);
        letter[1] = row.letter;
        if (row.letter)
            option(script, &row, letter);
        if (bal_opt_negatable(&row)) {
            snprintf(spelling, sizeof(spelling), "--no-%s", name);
            option(script, &row, spelling);
        }
    }
}

static void command_words(bal_script *script, const bal_command *command)
{
    bal_script_put(script, "        '%s:", command->name);
    bal_script_quoted(script, command->summary, ":");
    bal_script_put(script, "'\n");
}

/* "'*:SPEC:_ballast_refs' ", which is the first for "1". */
static void argument(bal_script *script, const char *which, const char *value)
{
    if (!value)
        return;
    bal_script_put(script, "'%s:", which);
    bal_script_quoted(script, value, ":");
    bal_script_put(script, ":");
    action(script, value);
    bal_script_put(script, "' ");
}

static void command_case(bal_script *script, const bal_command *command)
{
    bal_script_put(script, "    %s) _arguments $globals ", command->name);
    options(script, bal_own_options(command));
    argument(script, "1", command->words);
    argument(script, "*", command->arg);
    bal_script_put(script, ";;\n");
}

static void each_command(bal_script *script,
                         void (*write)(bal_script *, const bal_command *))
{
    for (size_t i = 0; i < bal_commands_count; i++) {
        if (!bal_commands[i]->hidden)
            write(script, bal_commands[i]);
    }
}

int bal_complete_zsh(bal_buf *to, bal_error *err)
{
    bal_script script = { to, 0, err };

    bal_script_put(&script, "%s", head);
    each_command(&script, command_words);
    bal_script_put(&script, "    )\n    globals=(");
    options(&script, bal_global_options());
    bal_script_put(&script, ")\n"
                            "    _arguments -C $globals '1:command:->command' "
                            "'*::argument:->argument' && return\n"
                            "    if [[ $state == command ]]; then\n"
                            "        _describe command commands\n"
                            "        return\n    fi\n"
                            "    case $words[1] in\n");
    each_command(&script, command_case);
    bal_script_put(&script, "    esac\n}\n\n"
                            "if [[ $zsh_eval_context[-1] == loadautofunc ]]; "
                            "then _ballast \"$@\"; "
                            "else compdef _ballast ballast; fi\n");
    return script.rc;
}
