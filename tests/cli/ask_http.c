/* The runner http by argv.
 *
 *   ask-http URL PROBES MODEL COMMIT [OPTIONS]
 *
 * PROBES: a file; MODEL: a folder, of which the kind is looked at; OPTIONS:
 * {"model", "timeout", "max_tokens", "repeat", "top", "parallel"}. Each answer
 * is a line {"id", "output", "tokens": [{"token", "logprob", "top": [[token,
 * logprob]]}]}; then {"about", "terms"}, or {"error", "text", "hint"} and exit
 * status 1. Warnings are lines {"warning"}. SIGINT cancels. */
#include <stdio.h>
#include <string.h>

#include "core/pool.h"
#include "core/signals.h"
#include "probe/runner.h"

static int stop(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    return bal_signals_pending();
}

static void print(json_t *row)
{
    json_dumpf(row, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
    puts("");
    fflush(stdout);
    json_decref(row);
}

static void on_log(void *ctx, bal_level level, const char *area,
                   const char *line)
{
    (void)ctx;
    (void)area;
    if (level == BAL_WARNING)
        print(json_pack("{s:s}", "warning", line));
}

static json_t *said_json(const bal_said *said)
{
    json_t *top = json_array();

    for (size_t i = 0; i < said->top_count; i++)
        json_array_append_new(
            top, json_pack("[s,f]", said->top[i].token, said->top[i].logprob));
    return json_pack("{s:s,s:f,s:o}", "token", said->token, "logprob",
                     said->logprob, "top", top);
}

static int on_answer(void *ctx, size_t probe, const bal_answer *answer,
                     bal_error *err)
{
    const bal_probes *probes = ctx;
    json_t *tokens = json_array();

    (void)err;
    for (size_t i = 0; i < answer->token_count; i++)
        json_array_append_new(tokens, said_json(&answer->tokens[i]));
    print(json_pack("{s:s,s:s,s:o}", "id", bal_probes_at(probes, probe)->id,
                    "output", answer->output, "tokens", tokens));
    return 0;
}

static json_int_t number(const json_t *options, const char *name,
                         json_int_t fallback)
{
    const json_t *value = json_object_get(options, name);

    return value ? json_integer_value(value) : fallback;
}

static int ask(const bal_question *question, json_t *about, json_t *terms,
               bal_error *err)
{
    int rc = bal_runner_http.check(question->options, err);

    if (!rc)
        rc = bal_runner_http.terms(terms, question->options, err);
    if (rc)
        return rc;
    /* What a fingerprint is given, it is only given to read. */
    return bal_runner_http.ask(question, on_answer,
                               (void *)(uintptr_t)question->probes, about, err);
}

static int run(char **argv, const json_t *given, bal_work *work, bal_error *err)
{
    BAL_OWN(bal_probes) probes = NULL;
    BAL_OWN(bal_model) model = NULL;
    BAL_OWN(json_t) about = json_object();
    BAL_OWN(json_t) terms = json_object();
    bal_id commit;
    const bal_ask_options options = {
        .runner = "http",
        .url = argv[1],
        .model = json_string_value(json_object_get(given, "model")),
        .timeout = json_number_value(json_object_get(given, "timeout")),
        .max_tokens = (uint64_t)number(given, "max_tokens", 8),
        .repeat = (unsigned)number(given, "repeat", 1),
        .top = (unsigned)number(given, "top", 20),
        .parallel = (unsigned)number(given, "parallel", 4),
    };
    int rc = bal_probes_open(&probes, argv[2], NULL, err);

    if (!rc)
        rc = bal_model_from_path(&model, argv[3], err);
    if (!rc)
        rc = bal_id_parse(&commit, argv[4], err);
    if (rc)
        return rc;
    const bal_question question = {
        .probes = probes,
        .options = &options,
        .model = model,
        .commit = &commit,
        .tenant = "acme",
        .work = work,
    };
    rc = ask(&question, about, terms, err);
    if (!rc)
        print(json_pack("{s:O,s:O}", "about", about, "terms", terms));
    return rc;
}

int main(int argc, char **argv)
{
    BAL_OWN(bal_work) work = NULL;
    BAL_OWN(json_t) options = json_loads(argc > 5 ? argv[5] : "{}", 0, NULL);
    bal_error err = { 0 };

    if (argc < 5 || !options || bal_work_new(&work, 1, &err))
        return 2;
    bal_signals_watch();
    bal_work_watch(work, stop, NULL);
    bal_log_to(on_log, NULL);
    int rc = run(argv, options, work, &err);
    if (rc)
        print(json_pack("{s:s,s:s,s:s}", "error", bal_code_find(rc)->word,
                        "text", err.text, "hint", err.hint));
    return rc != 0;
}
