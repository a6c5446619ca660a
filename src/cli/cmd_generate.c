/* ballast generate: for the build, the man pages and what docs/ has of the
 * tables. Not told of in help: it makes the help. */
#include <string.h>

#include "cli/commands.h"
#include "cli/help.h"
#include "core/error.h"
#include "core/file.h"
#include "serve/openapi.h"

static int save_page(const char *dir, const char *name, const bal_buf *page,
                     bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };

    int rc = bal_buf_format(&path, err, "%s/%s.1", dir, name);
    if (rc)
        return rc;
    return bal_file_replace(path.data, page->data, page->len, err);
}

static int command_page(const char *dir, const bal_command *command,
                        bal_error *err)
{
    BAL_LOCAL(bal_buf) page = { 0 };
    char name[64];

    int rc = bal_man_command(&page, command, err);
    if (rc)
        return rc;
    snprintf(name, sizeof(name), "ballast-%s", command->name);
    return save_page(dir, name, &page, err);
}

static int man(const char *dir, bal_error *err)
{
    BAL_LOCAL(bal_buf) page = { 0 };

    int rc = bal_make_dirs(dir, err);
    if (rc)
        return rc;
    rc = bal_man_program(&page, err);
    if (rc)
        return rc;
    rc = save_page(dir, "ballast", &page, err);
    for (size_t i = 0; !rc && i < bal_commands_count; i++) {
        if (!bal_commands[i]->hidden)
            rc = command_page(dir, bal_commands[i], err);
    }
    return rc;
}

static int docs(const char *file, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    int rc = bal_docs_write(&text, err);
    if (rc)
        return rc;
    return bal_file_replace(file, text.data, text.len, err);
}

static int methods(const char *file, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    int rc = bal_docs_methods(&text, err);
    if (rc)
        return rc;
    return bal_file_replace(file, text.data, text.len, err);
}

static int http(const char *file, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    int rc = bal_docs_http(&text, err);
    if (rc)
        return rc;
    return bal_file_replace(file, text.data, text.len, err);
}

static int openapi(const char *file, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    int rc = bal_openapi_write(&text, 2, err);
    if (!rc)
        rc = bal_buf_text(&text, "\n", err);
    if (rc)
        return rc;
    return bal_file_replace(file, text.data, text.len, err);
}

static const struct {
    const char *name;
    int (*write)(const char *path, bal_error *err);
} kinds[] = {
    { "man", man },   { "docs", docs },       { "methods", methods },
    { "http", http }, { "openapi", openapi },
};

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    (void)values;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!strcmp(kinds[i].name, cli->args[0]))
            return kinds[i].write(cli->args[1], err);
    }
    return bal_fail(err, BAL_EINVAL,
                    "'%s' is not one of man, docs, methods, http, openapi",
                    cli->args[0]);
}

const bal_command bal_cmd_generate = {
    .name = "generate",
    .synopsis = "man DIR | docs FILE | methods FILE | http FILE | openapi FILE",
    .summary = "write the man pages or a document of docs/",
    .about = "For the build.",
    .hidden = true,
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
