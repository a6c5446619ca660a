/* The program: words to a command, a result to an exit status. */
#include <signal.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/help.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/signals.h"
#include "core/str.h"

/* Is an area named in BAL_TRACE=blocks,merge? */
static bool traced(const char *area)
{
    const char *names = getenv("BAL_TRACE");
    size_t len = strlen(area);

    while (names) {
        size_t span = strcspn(names, ",");
        if (span == len && !memcmp(names, area, len))
            return true;
        names = names[span] ? names + span + 1 : NULL;
    }
    return false;
}

/* The library's log: warnings, unless only results and errors are wanted; a
 * program that reads JSON errors gets them with -v only. */
static void log_line(void *ctx, bal_level level, const char *area,
                     const char *text)
{
    bal_cli *cli = ctx;
    bool wanted = traced(area);

    if (level == BAL_WARNING) {
        wanted |= cli->globals.verbose ||
                  (!cli->globals.quiet && !cli->globals.json) ||
                  (cli->command && cli->command->logs);
    }
    if (!wanted)
        return;
    BAL_LOCAL(bal_buf) line = { 0 };
    const char *word = level == BAL_WARNING ? "warning" : area;
    if (bal_buf_format(&line, NULL, "ballast: %s: ", word) ||
        bal_printable(&line, text, strlen(text), false, NULL) ||
        bal_buf_text(&line, "\n", NULL))
        return;
    bal_progress_clear(&cli->progress);
    ssize_t n = write(STDERR_FILENO, line.data, line.len);
    (void)n; /* said for information only */
}

static void show_version(bal_cli *cli)
{
    bal_json json;

    if (!cli->out.json) {
        bal_out_text(&cli->out, "ballast %s\n", bal_version());
        if (cli->globals.verbose)
            bal_out_lines(&cli->out, "", bal_version_details());
        return;
    }
    bal_doc_open(&json, &cli->out, "version");
    bal_json_key(&json, "version");
    bal_json_string(&json, bal_version());
    if (cli->globals.verbose) {
        bal_json_key(&json, "details");
        bal_json_string(&json, bal_version_details());
    }
    bal_doc_close(&json, &cli->out);
}

/* Both sets of options from all words; finds the command on the way. */
static int parse(bal_cli *cli, int argc, char **argv, bal_error *err)
{
    bal_parser parser = {
        .sets = { { bal_global_opts, NULL, &cli->globals } },
        .arena = &cli->arena,
        .words = argv + 1,
        .count = argc > 1 ? (size_t)argc - 1 : 0,
        .flags = BAL_PARSE_HEAD,
    };

    int rc = bal_opt_parse(&parser, err);
    if (rc)
        return rc;
    if (cli->globals.generate) {
        cli->command = &bal_cmd_generate;
    } else if (parser.at < parser.count) {
        const char *name = parser.words[parser.at++];
        cli->command = bal_command_find(name);
        if (!cli->command)
            return bal_command_unknown(name, err);
    } else {
        return 0;
    }
    void *opts = bal_arena_alloc(&cli->arena, cli->command->opts_size + 1);
    if (!opts)
        return bal_fail_memory(err, "options");
    parser.sets[1] = bal_own_options(cli->command);
    parser.sets[1].values = opts;
    parser.unknown = cli->command->unknown;
    parser.flags = 0;
    cli->opts = opts;
    rc = bal_opt_parse(&parser, err);
    cli->args = parser.args;
    cli->arg_count = parser.arg_count;
    return rc;
}

static int check_args(const bal_cli *cli, bal_error *err)
{
    const bal_command *command = cli->command;
    int rc = 0;

    if (cli->arg_count < command->min_args)
        rc = bal_fail(err, BAL_EINVAL, "%s: an argument is missing",
                      command->name);
    else if (cli->arg_count > command->max_args)
        rc = bal_fail(err, BAL_EINVAL, "%s: '%s' is one argument too many",
                      command->name, cli->args[command->max_args]);
    const char *gap = command->synopsis[0] ? " " : "";
    return rc ? bal_hint(err, rc, "usage: ballast %s%s%s", command->name, gap,
                         command->synopsis)
              : 0;
}

static int run_command(bal_cli *cli, bal_error *err)
{
    const bal_command *command = cli->command;
    bal_opt_set own = bal_own_options(command);

    own.values = (void *)(uintptr_t)cli->opts;
    int rc = check_args(cli, err);
    if (rc)
        return rc;
    rc = bal_opt_required(&own, err);
    if (rc)
        return rc;
    if (command->needs == BAL_NEEDS_STORE)
        rc = bal_cli_store(cli, 0, err);
    if (command->needs == BAL_NEEDS_TENANT)
        rc = bal_cli_tenant(cli, 0, err);
    if (rc)
        return rc;
    return command->run(cli, cli->opts, err);
}

/* Everything between the words and the result in the buffer. */
static int run(bal_cli *cli, int argc, char **argv, bal_error *err)
{
    bal_globals *globals = &cli->globals;
    const bal_opt_set set = { bal_global_opts, NULL, globals };

    int rc = parse(cli, argc, argv, err);
    if (rc)
        return rc;
    rc = bal_opt_environment(&set, &cli->arena, err);
    if (rc)
        return rc;
    rc = bal_globals_check(globals, err);
    if (rc)
        return rc;
    bal_out_init(&cli->out, globals->color, globals->json);
    bal_progress_init(&cli->progress, globals->progress, globals->quiet,
                      cli->command ? cli->command->name : "ballast");
    bal_log_to(log_line, cli);
    if (globals->version) {
        show_version(cli);
        return 0;
    }
    if (globals->help && cli->command) {
        bal_help_command(&cli->out, cli->command);
        return 0;
    }
    if (globals->help) {
        bal_help_all(&cli->out);
        return 0;
    }
    if (!cli->command) {
        rc = bal_fail(err, BAL_EINVAL, "no command is given");
        return bal_hint(err, rc, "'ballast help' lists the commands");
    }
    return run_command(cli, err);
}

/* Was JSON asked for, though the words could not be understood? */
static bool wants_json(const bal_cli *cli, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (!strcmp(argv[i], "--json"))
            return true;
    }
    return cli->globals.json;
}

/* A failure is told and becomes an exit status. */
static int fail(const bal_cli *cli, int rc, bal_error *err, int argc,
                char **argv)
{
    const bal_code_row *row = bal_code_find(rc);
    int signal = bal_signals_pending();
    int status = row->exit;

    if (rc == BAL_ECANCELLED && signal) {
        status = 128 + signal;
        bal_fail(err, rc, signal == SIGINT ? "interrupted" : "terminated");
    }
    if (rc == BAL_EBUSY && !err->hint[0])
        bal_hint(err, rc, "--wait SECONDS waits longer than the usual 30");
    bal_error_print(err, status, row->word, wants_json(cli, argc, argv),
                    bal_color_wanted(cli->globals.color, STDERR_FILENO));
    return status;
}

/* As if SIGPIPE had its default effect, now that all is put away. */
static int reader_gone(void)
{
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
    return 128 + SIGPIPE;
}

int main(int argc, char **argv)
{
    bal_cli cli = { 0 };
    bal_error err = { 0 };
    double began = bal_clock_ticks();

    bal_signals_watch();
    int rc = run(&cli, argc, argv, &err);
    bal_progress_clear(&cli.progress);
    if (!rc)
        rc = bal_out_end(&cli.out, &err);
    else
        bal_out_unpage(&cli.out);
    bool gone = cli.out.gone;
    if (!rc && !gone && cli.out.cut)
        rc = BAL_ECANCELLED;
    bal_cli_close(&cli);
    int status = rc ? fail(&cli, rc, &err, argc, argv) : cli.status;
    if (cli.globals.verbose && cli.command && !rc)
        bal_cli_took(&cli, bal_clock_ticks() - began);
    bal_out_done(&cli.out);
    bal_arena_done(&cli.arena);
    return gone && !rc ? reader_gone() : status;
}
