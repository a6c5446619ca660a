/* ballast bisect: which commit changed an answer. */
#include "cli/asking.h"
#include "cli/commands.h"
#include "core/error.h"

BAL_OWNABLE(bal_probes)

struct bisect_opts {
    bal_asking asking; /* first: see bal_asking_opt */
    const char *probe, *probes, *expect, *run;
};

static const bal_opt opts[] = {
    { 0, "probe", BAL_OPT_STRING, offsetof(struct bisect_opts, probe), "TEXT",
      "the prompt to be asked" },
    { 0, "probes", BAL_OPT_STRING, offsetof(struct bisect_opts, probes), "FILE",
      "several, in a file; all answers must match" },
    { 0, "expect", BAL_OPT_STRING, offsetof(struct bisect_opts, expect),
      "REGEX", "found in the answer of a good commit" },
    { 0, "run", BAL_OPT_STRING, offsetof(struct bisect_opts, run), "CMD",
      "instead of a probe: a command that ends with 0 if the model in the "
      "folder BALLAST_MODEL is good" },
    { 0 },
};

static int tell(void *ctx, const bal_id *commit, bool good, uint64_t left)
{
    const bal_cli *cli = ctx;
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, commit);
    if (cli->globals.verbose)
        fprintf(stderr, "%.12s is %s, %llu left\n", hex, good ? "good" : "bad",
                (unsigned long long)left);
    return 0;
}

static int open_probes(bal_probes **out, bal_cli *cli,
                       const struct bisect_opts *given, bal_error *err)
{
    const bal_asking_file file = { .path = given->probes };
    bool asks = given->expect && (!given->probe != !given->probes);

    if (given->run && !given->probe && !given->probes && !given->expect)
        return 0;
    if (given->run || !asks)
        return bal_fail(err, BAL_EINVAL,
                        "bisect: either --probe TEXT and --expect REGEX, or "
                        "--run CMD");
    if (given->probe)
        return bal_probes_of(out, &given->probe, 1, err);
    return bal_asking_probes(out, cli, &file, err);
}

static int report(bal_cli *cli, const bal_bisected *found, bal_error *err)
{
    BAL_OWN(bal_commit) commit = NULL;
    bal_out *out = &cli->out;
    bal_json json;
    int rc = bal_commit_open(&commit, cli->tenant, &found->commit, err);
    if (rc)
        return rc;

    if (!out->json) {
        bal_out_id(out, &found->commit);
        bal_out_text(out, "  ");
        bal_out_subject(out, bal_commit_info_of(commit)->message);
        bal_out_text(out, "\n");
        return 0;
    }
    bal_doc_open(&json, out, cli->command->name);
    bal_json_members(&json, bal_commit_json(commit));
    bal_json_key(&json, "asked");
    bal_json_u64(&json, found->asked);
    bal_json_key(&json, "between");
    bal_json_u64(&json, found->between);
    bal_doc_close(&json, out);
    return 0;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct bisect_opts *given = values;
    BAL_OWN(bal_probes) probes = NULL;
    BAL_LOCAL(bal_named) base = { 0 };
    bal_bisect_options options = {
        .expect = given->expect,
        .command = given->run,
        .fn = tell,
        .ctx = cli,
    };
    bal_bisected found;
    bal_id range[2];

    int rc = bal_cli_spec(&range[0], cli, cli->args[0], err);
    if (!rc)
        rc = bal_cli_spec(&range[1], cli, cli->args[1], err);
    if (!rc)
        rc = open_probes(&probes, cli, given, err);
    if (!rc)
        rc = bal_asking_fill(&options.ask, &base, cli, &given->asking, err);
    if (rc)
        return rc;
    options.probes = probes;
    rc = bal_bisect(&found, cli->tenant, range, &options, err);
    return rc ? rc : report(cli, &found, err);
}

const bal_command bal_cmd_bisect = {
    .name = "bisect",
    .synopsis = "GOOD BAD --probe TEXT --expect REGEX [OPTIONS]",
    .summary = "find the commit that changed an answer",
    .about =
        "Binary search over the history between two commits: told is the "
        "first commit whose answer no longer matches. GOOD must be an "
        "ancestor of BAD; both are asked first, and must be what they are "
        "called. Answers are recorded as fingerprints, and what is recorded "
        "on the same terms is not asked again.\n\n"
        "With --run, a command decides instead: exit status 0 is good, 125 "
        "cannot tell and ends the search, anything else is bad. Options of "
        "runners are those of 'ballast fingerprint'.",
    .examples =
        "ballast bisect main~63 main --probe 'The capital of France is' "
        "--expect Paris --base ./llama-8b\n"
        "ballast bisect v1 main --run './check.sh \"$BALLAST_MODEL\"'\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .min_args = 2,
    .max_args = 2,
    .opts = opts,
    .opts_size = sizeof(struct bisect_opts),
    .more = bal_asking_opt,
    .run = run,
};
