/* Who answers, from the command line. */
#include "cli/asking.h"

#include <sys/stat.h>

#include "core/error.h"

static const bal_opt rows[] = {
    { 0, "runner", BAL_OPT_ENUM, offsetof(bal_asking, runner),
      "process|http|peft|fake",
      "who answers; process with --command, http with --url, else peft" },
    { 0, "command", BAL_OPT_STRING, offsetof(bal_asking, command), "CMD",
      "process: for sh -c, with the model in the folder BALLAST_MODEL" },
    { 0, "stream", BAL_OPT_FLAG, offsetof(bal_asking, stream), NULL,
      "process: tensors through the descriptor BALLAST_MODEL_FD, not a file" },
    { 0, "url", BAL_OPT_STRING, offsetof(bal_asking, url), "U",
      "http: a server that speaks OpenAI's API" },
    { 0, "model", BAL_OPT_STRING, offsetof(bal_asking, model), "M",
      "http: the name that the model is served by; fake: a glob of the tensors "
      "that count" },
    { 0, "base", BAL_OPT_STRING, offsetof(bal_asking, base), "DIR|FILE|SPEC",
      "the base model of a delta or an adapter" },
    { 0, "timeout", BAL_OPT_DOUBLE, offsetof(bal_asking, timeout), "S",
      "seconds for all answers, 600 if not told" },
    { 0, "max-tokens", BAL_OPT_U64, offsetof(bal_asking, max_tokens), "N",
      "of an answer, 32 if not told" },
    { 0, "repeat", BAL_OPT_U64, offsetof(bal_asking, repeat), "N",
      "times that each probe is asked: tells change from noise" },
    { 0, "top", BAL_OPT_U64, offsetof(bal_asking, top), "K",
      "likely tokens to record at each step, 20 if not told" },
    { 0, "concurrency", BAL_OPT_U64, offsetof(bal_asking, parallel), "N",
      "http: requests at once, 8 if not told" },
};

bool bal_asking_opt(bal_opt *out, size_t i)
{
    if (i >= sizeof(rows) / sizeof(rows[0]))
        return false;
    *out = rows[i];
    return true;
}

static const char *runner_of(const bal_asking *given)
{
    if (given->runner)
        return given->runner;
    if (given->command)
        return "process";
    return given->url ? "http" : "peft";
}

/* A number that may be left out; not one that an unsigned cannot hold. */
static int small(unsigned *out, const bal_opt_u64 *given, const char *name,
                 bal_error *err)
{
    if (!given->given)
        return 0;
    if (!given->value || given->value > 65536)
        return bal_fail(err, BAL_EINVAL, "--%s must be from 1 to 65536", name);
    *out = (unsigned)given->value;
    return 0;
}

static bool is_folder(const char *path)
{
    struct stat info;

    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

static int find_base(bal_ask_options *out, bal_named *base, bal_cli *cli,
                     const char *text, bal_error *err)
{
    if (!text)
        return 0;
    if (is_folder(text)) {
        out->base = text;
        return 0;
    }
    int rc = bal_cli_model(base, cli, text, err);
    out->base_model = base->model;
    return rc;
}

int bal_asking_fill(bal_ask_options *out, bal_named *base, bal_cli *cli,
                    const bal_asking *given, bal_error *err)
{
    unsigned max_tokens = 0;
    *out = (bal_ask_options){
        .runner = runner_of(given),
        .command = given->command,
        .url = given->url,
        .model = given->model,
        .timeout = given->timeout.value,
        .flags = given->stream ? BAL_ASK_STREAM : 0,
    };
    int rc = 0;

    if (given->timeout.given && !(given->timeout.value > 0))
        rc = bal_fail(err, BAL_EINVAL, "--timeout must be above 0");
    if (!rc)
        rc = small(&max_tokens, &given->max_tokens, "max-tokens", err);
    if (!rc)
        rc = small(&out->repeat, &given->repeat, "repeat", err);
    if (!rc)
        rc = small(&out->top, &given->top, "top", err);
    if (!rc)
        rc = small(&out->parallel, &given->parallel, "concurrency", err);
    out->max_tokens = max_tokens;
    return rc ? rc : find_base(out, base, cli, given->base, err);
}

int bal_asking_probes(bal_probes **out, bal_cli *cli,
                      const bal_asking_file *file, bal_error *err)
{
    const bal_probes_options options = {
        .pattern = file->pattern,
        .flags = file->escapes ? BAL_PROBES_ESCAPES : 0,
    };
    int rc = bal_probes_open(out, file->path, &options, err);
    if (rc || cli->globals.quiet)
        return rc;

    for (const char *at = bal_probes_unused(*out); *at;) {
        size_t len = strcspn(at, "\n");
        bal_warn("probes", "'%.*s' in '%s' is not used", (int)len, at,
                 file->path);
        at += len + (at[len] == '\n');
    }
    return 0;
}
