/* ballast serve: the store over HTTP. */
#include "cli/commands.h"
#include "core/error.h"
#include "serve/serve.h"

struct serve_opts {
    const char *host, *tokens, *cert, *key, *log;
    bal_opt_u64 port, max_body, spool, rate, streams, workers;
    bal_opt_f64 deadline;
    bool open;
};

#define AT(field) offsetof(struct serve_opts, field)

static const bal_opt opts[] = {
    { 0, "host", BAL_OPT_STRING, AT(host), "ADDRESS",
      "where to listen (127.0.0.1)" },
    { 0, "port", BAL_OPT_U64, AT(port), "N", "0: any that is free (8080)" },
    { 0, "tokens", BAL_OPT_STRING, AT(tokens), "FILE",
      "who may do what; SIGHUP reads it again" },
    { 0, "tls_cert", BAL_OPT_STRING, AT(cert), "FILE", "PEM, with the chain" },
    { 0, "tls_key", BAL_OPT_STRING, AT(key), "FILE", "PEM" },
    { 0, "open", BAL_OPT_FLAG, AT(open), NULL,
      "let everybody read, beyond this machine too" },
    { 0, "max_body", BAL_OPT_SIZE, AT(max_body), "SIZE", "of an upload (8G)" },
    { 0, "deadline", BAL_OPT_DOUBLE, AT(deadline), "SECONDS",
      "for a request to arrive (600)" },
    { 0, "rate", BAL_OPT_U64, AT(rate), "N",
      "requests a second and token (any)" },
    { 0, "streams", BAL_OPT_U64, AT(streams), "N",
      "requests at once and token (256)" },
    { 0, "spool", BAL_OPT_SIZE, AT(spool), "SIZE",
      "adapters kept ready on disk (4G)" },
    { 0, "workers", BAL_OPT_U64, AT(workers), "N",
      "threads for what takes time (the cores, 4 at least)" },
    { 0, "access_log", BAL_OPT_ENUM, AT(log), "text|json|off",
      "a line a request on stderr (text)" },
    { 0 },
};

/* Seconds that a request waits for a lock: its client waits, too. */
static const double patience = 5;

enum { PORT = 8080, PORT_MAX = 65535, WORKERS_MAX = 256 };

static int check(const struct serve_opts *given, bal_error *err)
{
    if (given->port.value > PORT_MAX)
        return bal_fail(err, BAL_EINVAL, "--port is 65535 at most");
    if (given->workers.value > WORKERS_MAX)
        return bal_fail(err, BAL_EINVAL, "--workers is %d at most",
                        WORKERS_MAX);
    if (given->deadline.given && !(given->deadline.value > 0))
        return bal_fail(err, BAL_EINVAL, "--deadline is above 0");
    return 0;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct serve_opts *given = values;
    bal_serve_options options = {
        .store = bal_cli_store_options(&cli->globals),
        .host = given->host,
        .port = (uint16_t)(given->port.given ? given->port.value : PORT),
        .tokens = given->tokens,
        .cert = given->cert,
        .key = given->key,
        .open = given->open,
        .max_body = given->max_body.value,
        .deadline = given->deadline.value,
        .spool = given->spool.value,
        .rate = given->rate.value,
        .streams = given->streams.value,
        .workers = (unsigned)given->workers.value,
        .log = given->log,
    };
    if (!cli->globals.wait.given)
        options.store.wait = patience;

    int rc = check(given, err);
    if (!rc)
        rc = bal_cli_root(&options.store.root, cli, err);
    if (rc)
        return rc;
    return bal_serve(&options, err);
}

const bal_command bal_cmd_serve = {
    .name = "serve",
    .synopsis = "[--host ADDRESS] [--port N] [--tokens FILE]",
    .summary = "serve the store over HTTP",
    .about =
        "Every tenant, by the routes of docs/http.md. Without --tokens "
        "everybody on this machine may read, nobody may write, and another "
        "address is refused unless --open is given. Says 'listening on URL' on "
        "stderr when it does.\n\n"
        "SIGTERM and SIGINT end it when what was begun is finished, 30 seconds "
        "later at most; SIGHUP reads the tokens again. Takes a socket from "
        "systemd, and tells it when it is ready. Nothing in it needs root.",
    .examples = "ballast serve --tokens tokens.json\n"
                "ballast serve --host :: --tokens tokens.json --tls-cert "
                "cert.pem --tls-key key.pem",
    .needs = BAL_NEEDS_NOTHING,
    .logs = true,
    .opts = opts,
    .opts_size = sizeof(struct serve_opts),
    .run = run,
};
