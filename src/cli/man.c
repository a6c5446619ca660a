/* Man pages, in the man macros of roff, from the tables. */
#include "cli/commands.h"
#include "cli/help.h"

/* A page being written: the first failure is kept. */
typedef struct page {
    bal_buf *to;
    int rc;
    bal_error *err;
} page;

static void put(page *self, const char *text)
{
    if (!self->rc)
        self->rc = bal_buf_text(self->to, text, self->err);
}

/* Text of ours as roff shows it: '-' must not become a hyphen, a line must not
 * begin with a request. */
static void say(page *self, const char *text)
{
    char out[3] = "";

    for (const char *at = text; *at; at++) {
        bool first = at == text || at[-1] == '\n';
        if (*at == '\n' && at[1] == '\n') {
            put(self, "\n.PP\n");
            at++;
            continue;
        }
        if (first && (*at == '.' || *at == '\''))
            put(self, "\\&");
        if (*at == '-')
            put(self, "\\-");
        else if (*at == '\\')
            put(self, "\\e");
        else {
            out[0] = *at;
            put(self, out);
        }
    }
}

static void section(page *self, const char *name)
{
    put(self, ".SH ");
    put(self, name);
    put(self, "\n");
}

static void title(page *self, const char *name, const char *summary)
{
    put(self, ".TH \"");
    say(self, name);
    put(self, "\" 1 \"\" \"ballast ");
    put(self, bal_version());
    put(self, "\" \"ballast manual\"\n");
    section(self, "NAME");
    say(self, name);
    put(self, " \\- ");
    say(self, summary);
    put(self, "\n");
}

static void options(page *self, const char *name, bal_opt_set set)
{
    bal_opt row;
    char usage[160];
    bool any = false;

    for (size_t i = 0; bal_opt_at(&row, &set, i); i++) {
        if (row.flags & BAL_OPT_HIDDEN)
            continue;
        if (!any)
            section(self, name);
        any = true;
        bal_opt_usage(usage, &row);
        put(self, ".TP\n.B ");
        say(self, usage + strspn(usage, " "));
        put(self, "\n");
        say(self, row.help ? row.help : "");
        put(self, row.flags & BAL_OPT_REQUIRED ? " (required)" : "");
        if (row.env) {
            put(self, " (environment: ");
            say(self, row.env);
            put(self, ")");
        }
        put(self, "\n");
    }
}

static void exits(page *self)
{
    char number[16];

    section(self, "EXIT STATUS");
    for (const bal_exit_row *row = bal_exits; row->when; row++) {
        snprintf(number, sizeof(number), "%d", row->status);
        put(self, ".TP\n.B ");
        put(self, number);
        put(self, "\n");
        if (row->word[0]) {
            say(self, row->word);
            put(self, ": ");
        }
        say(self, row->when);
        put(self, "\n");
    }
}

int bal_man_command(bal_buf *to, const bal_command *command, bal_error *err)
{
    page self = { to, 0, err };
    char name[64];

    snprintf(name, sizeof(name), "ballast-%s", command->name);
    title(&self, name, command->summary);
    section(&self, "SYNOPSIS");
    put(&self, ".B ballast ");
    say(&self, command->name);
    put(&self, "\n");
    say(&self, command->synopsis);
    put(&self, command->synopsis[0] ? "\n" : "");
    section(&self, "DESCRIPTION");
    say(&self, command->about);
    put(&self, "\n");
    options(&self, "OPTIONS", bal_own_options(command));
    if (command->examples) {
        section(&self, "EXAMPLES");
        put(&self, ".nf\n");
        say(&self, command->examples);
        put(&self, ".fi\n");
    }
    section(&self, "SEE ALSO");
    put(&self, ".BR ballast (1)\n");
    return self.rc;
}

int bal_man_program(bal_buf *to, bal_error *err)
{
    page self = { to, 0, err };

    title(&self, "ballast", "version control for what a model has learned");
    section(&self, "SYNOPSIS");
    put(&self, ".B ballast\n");
    say(&self, "[GLOBAL...] COMMAND [GLOBAL...] [OPTIONS] [ARGS]\n");
    section(&self, "COMMANDS");
    for (size_t i = 0; i < bal_commands_count; i++) {
        const bal_command *command = bal_commands[i];
        if (command->hidden)
            continue;
        put(&self, ".TP\n.BR ballast\\-");
        say(&self, command->name);
        put(&self, " (1)\n");
        say(&self, command->summary);
        put(&self, "\n");
    }
    options(&self, "GLOBAL OPTIONS", bal_global_options());
    exits(&self);
    return self.rc;
}
