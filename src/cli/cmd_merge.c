/* ballast merge: record a view over commits. Its parameters are options made
 * from the table of methods, so that a new method needs no change here. */
#include "cli/commands.h"
#include "cli/lora.h"
#include "core/error.h"

struct merge_opts {
    const char *method, *message, *ref, *metadata, *author, *base_model;
    const char *parent;
    const char *base, *space, *dtype, *out_dtype, *seed, *arithmetic, *stream;
    const char *rank, *energy;
    bool strict, unite;
    bal_opt_list params; /* name, value, name, value … */
};

static const bal_opt opts[] = {
    { 0, "method", BAL_OPT_STRING, offsetof(struct merge_opts, method),
      "METHOD", "how, linear if not told; see ballast methods" },
    { 'm', "message", BAL_OPT_STRING, offsetof(struct merge_opts, message),
      "MSG", "what is merged and why", BAL_OPT_REQUIRED },
    { 0, "ref", BAL_OPT_STRING, offsetof(struct merge_opts, ref), "REF",
      "the ref to move, main if not told" },
    { 0, "base", BAL_OPT_STRING, offsetof(struct merge_opts, base), "SPEC",
      "what whole models are differences to, where the method needs it; "
      "what inputs of several kinds are made differences to" },
    { 0, "space", BAL_OPT_ENUM, offsetof(struct merge_opts, space),
      "delta|weights|product|factors",
      "what inputs are read as, if not what they are" },
    { 0, "rank", BAL_OPT_STRING, offsetof(struct merge_opts, rank), "R",
      "of adapters: the rank that every module gets, at most its shape's, by "
      "singular values; else ranks add up" },
    { 0, "energy", BAL_OPT_STRING, offsetof(struct merge_opts, energy), "F",
      "the same, of each module the least rank that keeps this share, up to 1, "
      "of the sum of squares" },
    { 0, "strict", BAL_OPT_FLAG, offsetof(struct merge_opts, strict), NULL,
      "refuse inputs that lack a tensor of another" },
    { 0, "union", BAL_OPT_FLAG, offsetof(struct merge_opts, unite), NULL,
      "merge every tensor that any input has (the default)" },
    { 0, "dtype", BAL_OPT_STRING, offsetof(struct merge_opts, dtype), "DTYPE",
      "of the result, if not the inputs' own" },
    { 0, "out-dtype", BAL_OPT_STRING, offsetof(struct merge_opts, out_dtype),
      "DTYPE",
      "of the result of arithmetic mergekit, whose inputs are cast to "
      "--dtype" },
    { 0, "seed", BAL_OPT_STRING, offsetof(struct merge_opts, seed), "N",
      "for methods that draw random numbers; drawn if not told" },
    { 0, "arithmetic", BAL_OPT_ENUM, offsetof(struct merge_opts, arithmetic),
      "precise|mergekit", "precise if not told" },
    { 0, "mergekit-stream", BAL_OPT_STRING, offsetof(struct merge_opts, stream),
      "SEED", "draw the numbers that mergekit draws for --random-seed SEED" },
    { 0, "parent", BAL_OPT_STRING, offsetof(struct merge_opts, parent), "SPEC",
      "the commit that the ref must be at, else it is a conflict" },
    { 0, "base-model", BAL_OPT_STRING, offsetof(struct merge_opts, base_model),
      "NAME", "what it is made for, if the inputs do not tell" },
    { 0, "metadata", BAL_OPT_STRING, offsetof(struct merge_opts, metadata),
      "JSON", "an object of your own, covered by the id" },
    { 0, "author", BAL_OPT_STRING, offsetof(struct merge_opts, author), "A",
      "who made it, if not you" },
    { 0 },
};

static const char *param_value(const bal_param *param)
{
    return param->choices ? param->choices : "VALUE";
}

/* NULL: the method has no such parameter. */
static const bal_param *param_of(size_t method, const char *name)
{
    const bal_param *param = bal_method_at(method)->params;

    for (; param && param->name; param++) {
        if (!strcmp(param->name, name))
            return param;
    }
    return NULL;
}

/* Has an option of its own, or an earlier method has it? */
static bool seen_before(const char *name, size_t method)
{
    for (size_t i = 0; opts[i].name; i++) {
        if (!strcmp(opts[i].name, name))
            return true;
    }
    for (size_t m = 0; m < method; m++) {
        if (param_of(m, name))
            return true;
    }
    return false;
}

/* Do most methods that have this parameter say the same of it? */
static bool common(const bal_param *param)
{
    size_t same = 0;
    size_t all = 0;

    for (size_t m = 0; m < bal_method_count(); m++) {
        const bal_param *other = param_of(m, param->name);
        all += other != NULL;
        same += other && !strcmp(other->help, param->help);
    }
    return 2 * same > all;
}

/* What most methods say of a parameter: it can mean something else to each. */
static const char *common_help(const char *name)
{
    for (size_t m = 0; m < bal_method_count(); m++) {
        const bal_param *param = param_of(m, name);
        if (param && common(param))
            return param->help;
    }
    return "its meaning is up to the method, see ballast methods METHOD";
}

/* Parameter i of all methods, each name once, as a row. */
static bool more(bal_opt *out, size_t i)
{
    for (size_t m = 0; m < bal_method_count(); m++) {
        const bal_param *param = bal_method_at(m)->params;
        for (; param && param->name; param++) {
            if (seen_before(param->name, m) || i--)
                continue;
            *out = (bal_opt){
                .name = param->name,
                .type = param->type == BAL_PARAM_BOOL ? BAL_OPT_PARAM_SWITCH
                                                      : BAL_OPT_PARAM,
                .offset = offsetof(struct merge_opts, params),
                .value = param_value(param),
                .help = common_help(param->name),
            };
            return true;
        }
    }
    return false;
}

/* The method that the words name, wherever they do. */
static const bal_method_info *asked_for(const bal_parser *parser)
{
    static const char option[] = "--method";
    const size_t len = sizeof(option) - 1;
    const char *name = "linear";

    for (size_t i = 0; i < parser->count; i++) {
        const char *word = parser->words[i];
        if (strncmp(word, option, len) != 0)
            continue;
        if (word[len] == '=')
            name = word + len + 1;
        else if (!word[len] && i + 1 < parser->count)
            name = parser->words[i + 1];
    }
    return bal_method_find(name);
}

/* An option that no method has: say which parameters this one has. */
static int unknown(const bal_parser *parser, const char *option, bal_error *err)
{
    const bal_method_info *method = asked_for(parser);
    BAL_LOCAL(bal_buf) names = { 0 };
    char spelt[64];
    int rc = bal_opt_unknown(parser, option, err);

    if (!method || (err && err->hint[0]))
        return rc;
    for (const bal_param *p = method->params; p && p->name; p++) {
        bal_opt_spell(spelt, p->name);
        if (bal_buf_format(&names, NULL, " --%s", spelt))
            return rc;
    }
    return bal_hint(err, rc, "method '%s' has%s", method->name,
                    names.len ? names.data : " no parameters");
}

static int set(bal_recipe *recipe, const char *name, const char *value,
               bal_error *err)
{
    return value ? bal_recipe_set(recipe, name, value, err) : 0;
}

static int fill(bal_recipe *recipe, const struct merge_opts *given,
                bal_error *err)
{
    const char *const named[][2] = {
        { "space", given->space },
        { "rank", given->rank },
        { "energy", given->energy },
        { "dtype", given->dtype },
        { "out_dtype", given->out_dtype },
        { "seed", given->seed },
        { "arithmetic", given->arithmetic },
        { "mergekit_stream", given->stream },
        { "strict", given->strict ? "true" : NULL },
    };

    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        int rc = set(recipe, named[i][0], named[i][1], err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i + 1 < given->params.count; i += 2) {
        int rc = set(recipe, given->params.items[i], given->params.items[i + 1],
                     err);
        if (rc)
            return rc;
    }
    return 0;
}

static void report(bal_cli *cli, const bal_commit *commit,
                   const bal_recipe *recipe, const char *method,
                   const char *ref, const bal_commit_report *counts)
{
    bal_out *out = &cli->out;
    bal_json json;

    if (out->json) {
        bal_cli_commit_open(&json, cli, commit, ref);
        if (counts->lossy)
            bal_residual_json(&json, &counts->residual);
        bal_doc_close(&json, out);
        return;
    }
    bal_out_id(out, &bal_commit_info_of(commit)->id);
    bal_out_text(out, "  %s of %zu inputs", method, bal_recipe_inputs(recipe));
    if (counts->lossy)
        bal_residual_text(out, &counts->residual);
    bal_out_text(out, "  ref ");
    bal_out_safe(out, ref);
    bal_out_text(out, "\n");
}

static int record(bal_cli *cli, bal_recipe *recipe, const char *method,
                  const struct merge_opts *given, bal_error *err)
{
    BAL_OWN(bal_commit) commit = NULL;
    bal_commit_report counts = { 0 };
    bal_id parent;
    bal_draft draft = {
        .ref = given->ref ? given->ref : "main",
        .message = given->message,
        .author = given->author,
        .base_model = given->base_model,
        .metadata = given->metadata,
    };

    if (given->parent) {
        int rc = bal_cli_spec(&parent, cli, given->parent, err);
        if (rc)
            return rc;
        draft.parent = &parent;
    }
    int rc =
        bal_commit_view(&commit, cli->tenant, recipe, &draft, &counts, err);
    if (rc)
        return rc;
    report(cli, commit, recipe, method, draft.ref, &counts);
    return 0;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct merge_opts *given = values;
    const bal_method_info *method;
    BAL_OWN(bal_recipe) recipe = NULL;

    if (given->strict && given->unite)
        return bal_fail(err, BAL_EINVAL, "--strict or --union, not both");
    int rc =
        bal_cli_method(&method, given->method ? given->method : "linear", err);
    if (rc)
        return rc;
    rc = bal_cli_metadata(given->metadata, err);
    if (rc)
        return rc;
    rc = bal_recipe_new(&recipe, method->name, err);
    if (rc)
        return rc;
    rc = fill(recipe, given, err);
    if (rc)
        return rc;
    rc = bal_cli_tenant(cli, 0, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < cli->arg_count; i++) {
        rc = bal_recipe_input(recipe, cli->tenant, cli->args[i], err);
        if (rc)
            return rc;
    }
    rc = given->base ? bal_recipe_base(recipe, cli->tenant, given->base, err)
                     : 0;
    if (rc)
        return rc;
    return record(cli, recipe, method->name, given, err);
}

const bal_command bal_cmd_merge = {
    .name = "merge",
    .synopsis = "INPUT... -m MSG [--method METHOD] [PARAMETERS] [OPTIONS]",
    .summary = "record a merge of commits as a view; nothing is computed",
    .about = "An input is [tenant:]SPEC[@WEIGHT][,NAME=VALUE]...: a commit, "
             "its weight (1 if not told), and parameters of its own where "
             "the method has such. A view is resolved when it is read: by "
             "checkout, apply, diff, or another merge.\n\n"
             "A value may be a gradient over the layers, 0,0.5,1, and be for "
             "some tensors: FILTER:VALUE for those whose name contains FILTER; "
             "several with ';' between them, of which the first that fits "
             "holds.\n\n"
             "Parameters are the method's own; 'ballast methods METHOD' tells "
             "types, defaults and bounds.",
    .examples = "ballast merge support@0.6 finance@0.4 -m blend --ref blend\n"
                "ballast merge a b --no-normalize -m \"a + b\"\n"
                "ballast merge chat code --method ties --base llama "
                "--density 0.3 -m ties\n"
                "ballast merge lora@0.5 fullft@0.5 --base llama -m mixed\n"
                "ballast merge chat-lora code-lora --method ties --density 0.3 "
                "--rank 32 -m ties\n"
                "ballast merge chat code --method slerp "
                "--t 'self_attn:0,0.5,1;mlp:1,0;0.5' -m slerp\n",
    .arg = "SPEC",
    .min_args = 1,
    .max_args = BAL_ANY_ARGS,
    .opts = opts,
    .opts_size = sizeof(struct merge_opts),
    .more = more,
    .unknown = unknown,
    .run = run,
};
