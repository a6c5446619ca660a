/* docs/cli.md, from the tables. */
#include "cli/commands.h"
#include "cli/help.h"

/* A document being written: the first failure is kept. */
typedef struct document {
    bal_buf *to;
    int rc;
    bal_error *err;
} document;

static void put(document *self, const char *text)
{
    if (!self->rc)
        self->rc = bal_buf_text(self->to, text, self->err);
}

/* Text in a cell of a table. */
static void cell(document *self, const char *text)
{
    char out[2] = "";

    for (; *text; text++) {
        if (*text == '|' || *text == '<' || *text == '*')
            put(self, "\\");
        out[0] = *text;
        put(self, out);
    }
}

static void options(document *self, bal_opt_set set)
{
    bal_opt row;
    char usage[160];
    bool any = false;

    for (size_t i = 0; bal_opt_at(&row, &set, i); i++) {
        if (row.flags & BAL_OPT_HIDDEN)
            continue;
        put(self, any ? "" : "\n| option | |\n|---|---|\n");
        any = true;
        bal_opt_usage(usage, &row);
        put(self, "| `");
        cell(self, usage + strspn(usage, " "));
        put(self, "` | ");
        cell(self, row.help ? row.help : "");
        put(self, row.flags & BAL_OPT_REQUIRED ? " (required)" : "");
        if (row.env) {
            put(self, " (`");
            put(self, row.env);
            put(self, "`)");
        }
        put(self, " |\n");
    }
}

static void command_part(document *self, const bal_command *command)
{
    put(self, "\n## ballast ");
    put(self, command->name);
    put(self, "\n\n```\nballast ");
    put(self, command->name);
    put(self, command->synopsis[0] ? " " : "");
    put(self, command->synopsis);
    put(self, "\n```\n\n");
    put(self, command->about);
    put(self, "\n");
    options(self, bal_own_options(command));
    if (!command->examples)
        return;
    put(self, "\n```sh\n");
    put(self, command->examples);
    put(self, "```\n");
}

static void exits(document *self)
{
    char number[16];

    put(self, "\n## Exit status\n\n| status | word | when |\n|---|---|---|\n");
    for (const bal_exit_row *row = bal_exits; row->when; row++) {
        snprintf(number, sizeof(number), "| %d | ", row->status);
        put(self, number);
        cell(self, row->word);
        put(self, " | ");
        cell(self, row->when);
        put(self, " |\n");
    }
}

int bal_docs_write(bal_buf *to, bal_error *err)
{
    document self = { to, 0, err };

    put(&self,
        "# Commands\n\n<!-- Made by `make docs` from the tables in src/cli. "
        "-->\n\n```\nballast [GLOBAL...] COMMAND [GLOBAL...] [OPTIONS] "
        "[ARGS]\n```\n\n| command | |\n|---|---|\n");
    for (size_t i = 0; i < bal_commands_count; i++) {
        if (bal_commands[i]->hidden)
            continue;
        put(&self, "| [");
        put(&self, bal_commands[i]->name);
        put(&self, "](#ballast-");
        put(&self, bal_commands[i]->name);
        put(&self, ") | ");
        cell(&self, bal_commands[i]->summary);
        put(&self, " |\n");
    }
    put(&self, "\n## Global options\n\nBefore or after the command.\n");
    options(&self, bal_global_options());
    exits(&self);
    for (size_t i = 0; i < bal_commands_count; i++) {
        if (!bal_commands[i]->hidden)
            command_part(&self, bal_commands[i]);
    }
    return self.rc;
}
