/* Help on the terminal. */
#include "cli/help.h"

#include "cli/commands.h"
#include "core/arith.h"

enum { COLUMN = 30, WIDTH = 79 };

const bal_exit_row bal_exits[] = {
    { 0, "", "done" },
    { 1, "negative", "asked a question, and the answer is no" },
    { 2, "usage", "options, arguments, names, parameters, recipes" },
    { 3, "not-found", "no such store, spec, tensor or file; or no grant" },
    { 4, "partial", "done in part: each thing skipped is named" },
    { 5, "conflict",
      "a ref moved meanwhile, the target exists, the store was "
      "made with other settings" },
    { 6, "corrupt",
      "bytes do not match their hash, a file is malformed, the "
      "base is another one" },
    { 7, "io", "disk, network, permission, database" },
    { 8, "busy", "a lock was not free in time" },
    { 9, "unsupported", "understood, but cannot be done" },
    { 130, "cancelled", "interrupted; 143 when terminated" },
    { 0 },
};

bal_opt_set bal_own_options(const bal_command *command)
{
    return (bal_opt_set){ .rows = command->opts, .more = command->more };
}

bal_opt_set bal_global_options(void)
{
    return (bal_opt_set){ .rows = bal_global_opts };
}

void bal_opt_usage(char out[160], const bal_opt *row)
{
    char name[64];
    char letter[] = "-x, ";

    bal_opt_spell(name, row->name);
    letter[1] = row->letter;
    const char *lead = row->letter ? letter : "    ";
    if (bal_opt_negatable(row))
        snprintf(out, 160, "%s--%s, --no-%s", lead, name, name);
    else if (bal_opt_valued(row))
        snprintf(out, 160, "%s--%s %s", lead, name, row->value);
    else
        snprintf(out, 160, "%s--%s", lead, name);
}

/* Text folded at WIDTH, each line behind indent spaces; the first line begins
 * at column at. */
static void fold(bal_out *out, const char *text, int indent, int at)
{
    int column = at;

    while (*text) {
        int len = (int)strcspn(text, " \n");
        bool full = column > indent && column + 1 + len > WIDTH;
        const char *gap = column > indent ? " " : "";

        if (full)
            bal_out_text(out, "\n%*s", indent, "");
        else
            bal_out_text(out, "%s", gap);
        column = full ? indent : column + (int)strlen(gap);
        bal_out_again(out, text, (size_t)len);
        column += len;
        text += len;
        if (*text == ' ')
            text++;
        for (; *text == '\n'; text++) {
            bal_out_text(out, "\n%*s", text[1] == '\n' ? 0 : indent, "");
            column = indent;
        }
    }
    bal_out_text(out, "\n");
}

static void help_option(bal_out *out, const bal_opt *row)
{
    BAL_LOCAL(bal_buf) help = { 0 };
    char usage[160];

    if (row->flags & BAL_OPT_HIDDEN)
        return;
    bal_opt_usage(usage, row);
    bal_out_text(out, "  %s", usage);
    int column = 2 + (int)strlen(usage);
    if (column + 2 > COLUMN)
        bal_out_text(out, "\n%*s", COLUMN, "");
    else
        bal_out_text(out, "%*s", COLUMN - column, "");
    if (bal_buf_text(&help, row->help ? row->help : "", NULL))
        return;
    int rc = row->flags & BAL_OPT_REQUIRED
                 ? bal_buf_text(&help, " (required)", NULL)
                 : 0;
    if (!rc && row->env)
        rc = bal_buf_format(&help, NULL, " [%s]", row->env);
    if (!rc)
        fold(out, help.data, COLUMN, COLUMN);
}

static void help_options(bal_out *out, const char *title, bal_opt_set set)
{
    bal_opt row;

    for (size_t i = 0; bal_opt_at(&row, &set, i); i++) {
        if (!i)
            bal_out_text(out, "\n%s\n", title);
        help_option(out, &row);
    }
}

void bal_help_command(bal_out *out, const bal_command *command)
{
    bal_out_text(out, "usage: ballast %s%s%s\n\n", command->name,
                 command->synopsis[0] ? " " : "", command->synopsis);
    fold(out, command->summary, 0, 0);
    bal_out_text(out, "\n");
    fold(out, command->about, 0, 0);
    help_options(out, "options:", bal_own_options(command));
    if (command->examples) {
        bal_out_text(out, "\nexamples:\n");
        bal_out_lines(out, "  ", command->examples);
    }
    bal_out_text(out, "\n'ballast help' lists the options that every command "
                      "has.\n");
}

/* Of the longest name. */
static int names_width(void)
{
    size_t width = 0;

    for (size_t i = 0; i < bal_commands_count; i++)
        width = bal_max(width, strlen(bal_commands[i]->name));
    return (int)width;
}

void bal_help_all(bal_out *out)
{
    int width = names_width();

    bal_out_text(out,
                 "usage: ballast [GLOBAL...] COMMAND [GLOBAL...] [OPTIONS] "
                 "[ARGS]\n\n"
                 "version control for what a model has learned\n\n"
                 "commands:\n");
    for (size_t i = 0; i < bal_commands_count; i++) {
        const bal_command *command = bal_commands[i];
        if (!command->hidden)
            bal_out_text(out, "  %-*s  %s\n", width, command->name,
                         command->summary);
    }
    help_options(out, "global options, before or after the command:",
                 bal_global_options());
    bal_out_text(out, "\nexit status:\n");
    for (const bal_exit_row *row = bal_exits; row->when; row++) {
        bal_out_text(out, "  %-4d%-13s", row->status, row->word);
        fold(out, row->when, 19, 19);
    }
    bal_out_text(out, "\n'ballast help COMMAND' tells about one command.\n");
}
