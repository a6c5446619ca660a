/* ballast fingerprint: ask a commit's model, record the answers. */
#include "cli/asking.h"
#include "cli/commands.h"
#include "core/error.h"

BAL_OWNABLE(bal_probes)
BAL_OWNABLE(bal_fingerprint)

enum { PARTLY = 4 };

struct fingerprint_opts {
    bal_asking asking; /* first: see bal_asking_opt */
    const char *probes, *probe_set, *pattern;
    bool escapes, partial, reuse;
};

static const bal_opt opts[] = {
    { 0, "probes", BAL_OPT_STRING, offsetof(struct fingerprint_opts, probes),
      "FILE",
      "one probe a line, or JSON Lines; CSV and JSON Lines of promptfoo, "
      "samples of lm-eval" },
    { 0, "probe-set", BAL_OPT_STRING,
      offsetof(struct fingerprint_opts, probe_set), "ID",
      "probes that are recorded, instead of a file" },
    { 0, "template", BAL_OPT_STRING, offsetof(struct fingerprint_opts, pattern),
      "TEXT", "the prompt, with {{variables}}, for files that hold these" },
    { 0, "escapes", BAL_OPT_FLAG, offsetof(struct fingerprint_opts, escapes),
      NULL, "read \\n, \\t and \\\\ in lines of plain text" },
    { 0, "keep-partial", BAL_OPT_FLAG,
      offsetof(struct fingerprint_opts, partial), NULL,
      "record the answers that came, if some did not" },
    { 0, "reuse", BAL_OPT_FLAG, offsetof(struct fingerprint_opts, reuse), NULL,
      "do not ask what is recorded" },
    { 0 },
};

static int open_probes(bal_probes **out, bal_cli *cli,
                       const struct fingerprint_opts *given, bal_error *err)
{
    const bal_asking_file file = {
        .path = given->probes,
        .pattern = given->pattern,
        .escapes = given->escapes,
    };

    if ((given->probes != NULL) == (given->probe_set != NULL))
        return bal_fail(err, BAL_EINVAL,
                        "fingerprint: either --probes FILE or --probe-set ID "
                        "is needed");
    if (given->probe_set)
        return bal_probes_load(out, cli->tenant, given->probe_set, err);
    return bal_asking_probes(out, cli, &file, err);
}

static void json_tokens(bal_json *json, const bal_answer *answer)
{
    if (!answer->token_count)
        return;
    bal_json_key(json, "tokens");
    bal_json_array(json);
    for (size_t i = 0; i < answer->token_count; i++) {
        bal_json_object(json);
        bal_json_key(json, "token");
        bal_json_string(json, answer->tokens[i].token);
        bal_json_key(json, "logprob");
        bal_json_f64(json, answer->tokens[i].logprob);
        bal_json_close(json);
    }
    bal_json_close(json);
}

/* "missing", the ids of probes without an answer, where there are any. */
static void json_missing(bal_json *json, const bal_fingerprint *got)
{
    const bal_probes *probes = bal_fingerprint_probes(got);

    if (bal_fingerprint_count(got) == bal_probes_count(probes))
        return;
    bal_json_key(json, "missing");
    bal_json_array(json);
    for (size_t i = 0; i < bal_probes_count(probes); i++) {
        if (!bal_fingerprint_at(got, i))
            bal_json_string(json, bal_probes_at(probes, i)->id);
    }
    bal_json_close(json);
}

static void document(bal_cli *cli, const bal_id *commit,
                     const bal_fingerprint *got, const char *runner)
{
    const bal_probes *probes = bal_fingerprint_probes(got);
    bal_out *out = &cli->out;
    bal_json json;

    bal_doc_open(&json, out, cli->command->name);
    bal_json_key(&json, "commit");
    bal_json_id(&json, commit);
    bal_json_key(&json, "probe_set");
    bal_json_id(&json, bal_probes_id(probes));
    bal_json_key(&json, "runner");
    bal_json_string(&json, runner);
    bal_json_key(&json, "outputs");
    bal_json_array(&json);
    for (size_t i = 0; i < bal_probes_count(probes); i++) {
        const bal_answer *answer = bal_fingerprint_at(got, i);
        if (!answer)
            continue;
        bal_json_object(&json);
        bal_json_key(&json, "id");
        bal_json_string(&json, bal_probes_at(probes, i)->id);
        bal_json_key(&json, "output");
        bal_json_string(&json, answer->output);
        json_tokens(&json, answer);
        bal_json_close(&json);
    }
    bal_json_close(&json);
    json_missing(&json, got);
    bal_json_key(&json, "terms");
    bal_json_raw(&json, bal_fingerprint_terms(got));
    bal_json_key(&json, "about");
    bal_json_raw(&json, bal_fingerprint_facts(got));
    bal_doc_close(&json, out);
}

/* Probes that did not get the same answer each time. */
static size_t unsure(const bal_fingerprint *got)
{
    size_t count = 0;

    for (size_t i = 0; i < bal_probes_count(bal_fingerprint_probes(got)); i++)
        count += bal_fingerprint_distinct(got, i) > 1;
    return count;
}

static void text(bal_cli *cli, const bal_fingerprint *got, bool asked)
{
    bal_out *out = &cli->out;
    size_t noisy = unsure(got);

    bal_out_text(out, "probe set ");
    bal_out_id(out, bal_probes_id(bal_fingerprint_probes(got)));
    bal_out_text(out, ": %zu outputs %s\n", bal_fingerprint_count(got),
                 asked ? "recorded" : "recorded before");
    if (noisy)
        bal_out_text(out, "  %zu answered in several ways when asked again\n",
                     noisy);
}

/* Each probe that has no answer is named. */
static void tell_missing(bal_cli *cli, const bal_fingerprint *got)
{
    const bal_probes *probes = bal_fingerprint_probes(got);

    for (size_t i = 0; i < bal_probes_count(probes); i++) {
        if (bal_fingerprint_at(got, i))
            continue;
        bal_warn("fingerprint", "no answer to '%.200s'",
                 bal_probes_at(probes, i)->id);
        cli->status = PARTLY;
    }
}

/* Not as often as was asked, if not at all. */
static bool came_in_part(const bal_fingerprint *got)
{
    json_t *about = json_loads(bal_fingerprint_facts(got), 0, NULL);
    bool part = json_object_get(about, "partial") != NULL;

    json_decref(about);
    return part;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct fingerprint_opts *given = values;
    BAL_OWN(bal_probes) probes = NULL;
    BAL_OWN(bal_fingerprint) got = NULL;
    BAL_LOCAL(bal_named) base = { 0 };
    bal_ask_options options;
    bool asked = true;
    bal_id commit;

    int rc = bal_cli_spec(&commit, cli, cli->args[0], err);
    if (!rc)
        rc = open_probes(&probes, cli, given, err);
    if (!rc)
        rc = bal_asking_fill(&options, &base, cli, &given->asking, err);
    if (rc)
        return rc;
    options.flags |= (given->partial ? BAL_ASK_PARTIAL : 0) |
                     (given->reuse ? BAL_ASK_REUSE : 0);
    rc = bal_ask(&got, &asked, cli->tenant, &commit, probes, &options, err);
    if (rc)
        return rc;
    if (cli->out.json)
        document(cli, &commit, got, options.runner);
    else
        text(cli, got, asked);
    tell_missing(cli, got);
    if (came_in_part(got))
        cli->status = PARTLY;
    return 0;
}

const bal_command bal_cmd_fingerprint = {
    .name = "fingerprint",
    .synopsis = "SPEC --probes FILE [OPTIONS]",
    .summary = "ask a commit's model, and record its answers",
    .about =
        "Greedy answers to a set of probes, with log-probabilities where the "
        "runner has them; 'ballast diff' compares what two commits answered. "
        "Runners: 'process' is any command that reads probes and writes "
        "answers as JSON Lines; 'http' a server of vLLM, SGLang or llama.cpp "
        "that serves the model already; 'peft' transformers and PEFT in the "
        "Python that BALLAST_PYTHON names; 'fake' a stand-in for tests, whose "
        "answers are digests of the tensors.\n\n"
        "A delta is asked with its base under it. Nothing is recorded if an "
        "answer is missing, unless --keep-partial; then the exit status is 4. "
        "Probes and answers are the tenant's, and go when it is forgotten.",
    .examples = "ballast fingerprint support --probes probes.jsonl "
                "--base ./llama-8b\n"
                "ballast fingerprint support --probes probes.jsonl "
                "--url http://127.0.0.1:8000\n"
                "ballast fingerprint main --probes probes.txt "
                "--command 'python ask.py' --repeat 2\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .min_args = 1,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct fingerprint_opts),
    .more = bal_asking_opt,
    .run = run,
};
