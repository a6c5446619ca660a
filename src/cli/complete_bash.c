/* Completion for bash: one function that looks at the words before the cursor.
 */
#include "cli/commands.h"
#include "cli/complete.h"
#include "cli/help.h"

static const char *const actions[BAL_VALUE_KINDS] = {
    [BAL_VALUE_TEXT] = "COMPREPLY=()",
    [BAL_VALUE_DIR] = "COMPREPLY=($(compgen -d -- \"$cur\"))",
    [BAL_VALUE_FILE] = "COMPREPLY=($(compgen -f -- \"$cur\"))",
    [BAL_VALUE_REF] =
        "COMPREPLY=($(compgen -W \"$(_ballast_refs)\" -- \"$cur\"))",
    [BAL_VALUE_MODEL] =
        "COMPREPLY=($(compgen -f -W \"$(_ballast_refs)\" -- \"$cur\"))",
};

static const char head[] =
    "# bash completion for ballast: source <(ballast completion bash)\n"
    "_ballast_refs() {\n"
    "    local i where=()\n"
    "    for ((i = 1; i < COMP_CWORD - 1; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        --root|--tenant|--backend|--db)\n"
    "            where+=(\"${COMP_WORDS[i]}\")\n"
    "            [[ ${COMP_WORDS[i+1]} == = ]] && ((i++))\n"
    "            where+=(\"${COMP_WORDS[i+1]}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    ballast \"${where[@]}\" --color never refs 2>/dev/null | cut -c15-\n"
    "}\n\n"
    "_ballast() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local command= i\n"
    "    if [[ $cur == = ]]; then cur=\n"
    "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n";

static const char tail[] =
    "}\n\n"
    "complete -o filenames -o bashdefault -F _ballast ballast\n";

static void action(bal_script *script, const char *value)
{
    BAL_LOCAL(bal_buf) words = { 0 };
    bal_value_kind kind;

    if (script->rc)
        return;
    script->rc = bal_value_kind_of(&kind, &words, value, script->err);
    if (kind == BAL_VALUE_WORDS)
        bal_script_put(script, "COMPREPLY=($(compgen -W '%s' -- \"$cur\"))",
                       bal_buf_string(&words));
    else
        bal_script_put(script, "%s", actions[kind]);
}

/* "--root|--tenant|…) ((i++)) ;;": globals whose value is the next word. */
static void valued_globals(bal_script *script)
{
    bal_opt_set set = bal_global_options();
    const char *bar = "";
    bal_opt row;

    bal_script_put(script, "        ");
    for (size_t i = 0; bal_opt_at(&row, &set, i); i++) {
        if (!bal_opt_valued(&row))
            continue;
        bal_script_put(script, "%s--%s", bar, row.name);
        bar = "|";
        if (row.letter)
            bal_script_put(script, "|-%c", row.letter);
    }
    bal_script_put(script,
                   ")\n"
                   "            [[ ${COMP_WORDS[i+1]} == = ]] && ((i++))\n"
                   "            ((i++)) ;;\n");
}

/* What comes behind an option, one case each. */
static void values(bal_script *script, const char *command, bal_opt_set set)
{
    char name[64];
    bal_opt row;

    for (size_t i = 0; bal_opt_at(&row, &set, i); i++) {
        if (!bal_opt_valued(&row))
            continue;
        bal_opt_spell(name, row.name);
        bal_script_put(script, "    %s:--%s", command, name);
        if (row.letter)
            bal_script_put(script, "|%s:-%c", command, row.letter);
        bal_script_put(script, ") ");
        action(script, row.value);
        bal_script_put(script, "; return ;;\n");
    }
}

static void option_words(bal_script *script, bal_opt_set set)
{
    char name[64];
    bal_opt row;

    for (size_t i = 0; bal_opt_at(&row, &set, i); i++) {
        if (row.flags & BAL_OPT_HIDDEN)
            continue;
        bal_opt_spell(name, row.name);
        bal_script_put(script, " --%s", name);
        if (bal_opt_negatable(&row))
            bal_script_put(script, " --no-%s", name);
    }
}

static void each_command(bal_script *script,
                         void (*write)(bal_script *, const bal_command *))
{
    for (size_t i = 0; i < bal_commands_count; i++) {
        if (!bal_commands[i]->hidden)
            write(script, bal_commands[i]);
    }
}

static void command_values(bal_script *script, const bal_command *command)
{
    values(script, command->name, bal_own_options(command));
}

static void command_options(bal_script *script, const bal_command *command)
{
    bal_script_put(script, "        %s) options+='", command->name);
    option_words(script, bal_own_options(command));
    bal_script_put(script, "' ;;\n");
}

static void command_args(bal_script *script, const bal_command *command)
{
    if (!command->words && !command->arg)
        return;
    bal_script_put(script, "    %s) ", command->name);
    if (command->words) {
        bal_script_put(script, "if ((COMP_CWORD == i + 1)); then ");
        action(script, command->words);
        bal_script_put(script, "; else ");
    }
    action(script, command->arg ? command->arg : "");
    bal_script_put(script, "%s ;;\n", command->words ? "; fi" : "");
}

int bal_complete_bash(bal_buf *to, bal_error *err)
{
    bal_script script = { to, 0, err };

    bal_script_put(&script, "%s", head);
    valued_globals(&script);
    bal_script_put(&script, "        -*) ;;\n"
                            "        *) command=${COMP_WORDS[i]}; break ;;\n"
                            "        esac\n    done\n"
                            "    case $command:$prev in\n");
    values(&script, "*", bal_global_options());
    each_command(&script, command_values);
    bal_script_put(&script, "    esac\n    if [[ $cur == -* ]]; then\n"
                            "        local options='");
    option_words(&script, bal_global_options());
    bal_script_put(&script, "'\n        case $command in\n");
    each_command(&script, command_options);
    bal_script_put(
        &script, "        esac\n"
                 "        COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
                 "        return\n    fi\n    case $command in\n    '') ");
    action(&script, "COMMAND");
    bal_script_put(&script, " ;;\n");
    each_command(&script, command_args);
    bal_script_put(&script, "    esac\n%s", tail);
    return script.rc;
}
