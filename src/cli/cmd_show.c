/* ballast show: everything about one commit. */
#include <inttypes.h>

#include "cli/commands.h"
#include "core/str.h"

static void line(bal_out *out, const char *label, const char *text)
{
    if (!text)
        return;
    bal_out_text(out, "%-10s ", label);
    bal_out_safe(out, text);
    bal_out_text(out, "\n");
}

static void id_line(bal_out *out, const char *label, const bal_id *id)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    bal_out_text(out, "%-10s ", label);
    bal_out_paint(out, BAL_PAINT_ID, hex);
    bal_out_text(out, "\n");
}

static void show_head(bal_out *out, const bal_commit_info *info)
{
    id_line(out, "commit", &info->id);
    line(out, "tenant", info->tenant);
    line(out, "kind", info->kind);
    if (info->has_parent)
        id_line(out, "parent", &info->parent);
    id_line(out, "manifest", &info->manifest);
    line(out, "base", info->base_model);
    line(out, "author", info->author);
    bal_out_text(out, "%-10s ", "date");
    bal_out_time(out, info->created_at);
    bal_out_text(out, "\n%-10s %" PRIu32 "\n", "int_id",
                 bal_id_serving(&info->id));
    if (info->metadata && strcmp(info->metadata, "{}") != 0)
        line(out, "metadata", info->metadata);
    bal_out_text(out, "\n");
    bal_out_lines(out, "    ", info->message);
    bal_out_text(out, "\n");
}

/* What else is said of an input; of the base no more than that it is. */
static void show_source(bal_out *out, const json_t *input, bool base)
{
    static const char *const more[] = { "slice", "layers", "onto", "parameters",
                                        "carrier" };
    const size_t count = sizeof(more) / sizeof(more[0]) - base;

    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(input, more[i]);
        char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY |
                                                   JSON_SORT_KEYS)
                           : NULL;
        if (text) {
            bal_out_text(out, "  %s ", more[i]);
            bal_out_safe(out, text);
        }
        free(text);
    }
}

/* A member of the recipe, where it is there. */
static void show_member(bal_out *out, const json_t *recipe, const char *name)
{
    const json_t *value = json_object_get(recipe, name);
    const char *plain = json_string_value(value);

    if (!value || json_is_null(value))
        return;
    if (plain) {
        line(out, name, plain);
        return;
    }
    char *text =
        json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    line(out, name, text);
    free(text);
}

/* Which input is the base: one that is merged, or what all others are made
 * differences to. */
static bool is_base(const json_t *recipe, size_t i)
{
    const char *space = json_string_value(json_object_get(recipe, "space"));
    const json_t *base = json_object_get(recipe, "base");
    const json_t *input = json_array_get(json_object_get(recipe, "inputs"), i);

    if (json_is_true(json_object_get(input, "carrier")))
        return space && !strcmp(space, "delta");
    return json_is_integer(base) && json_integer_value(base) == (json_int_t)i;
}

static void show_recipe(bal_out *out, const char *text)
{
    static const char *const members[] = {
        "parameters", "slices",    "space", "strict", "dtype",
        "out_dtype",  "tokenizer", "rank",  "energy",
    };
    BAL_OWN(json_t) recipe = NULL;
    const char *method;
    json_t *value;
    size_t i;

    if (!text || bal_json_parse(&recipe, text, strlen(text), "recipe", NULL))
        return;
    method = json_string_value(json_object_get(recipe, "method"));
    line(out, "method", method);
    const char *arithmetic =
        json_string_value(json_object_get(recipe, "arithmetic"));
    if (arithmetic && strcmp(arithmetic, "precise") != 0)
        line(out, "arithmetic", arithmetic);
    const char *seed = json_string_value(json_object_get(recipe, "seed"));
    if (seed)
        line(out, "seed", seed);
    const char *stream =
        json_string_value(json_object_get(recipe, "mergekit_stream"));
    if (stream)
        line(out, "stream", stream);
    json_array_foreach(json_object_get(recipe, "inputs"), i, value)
    {
        bool base = is_base(recipe, i);
        bal_out_text(out, "%-10s ", base ? "base" : "input");
        bal_cli_input(out, value);
        show_source(out, value, base);
        bal_out_text(out, "\n");
    }
    for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++)
        show_member(out, recipe, members[k]);
}

/* How many tensors of each dtype, and their bytes. */
static void show_tensors(bal_out *out, const bal_model *model)
{
    size_t counts[BAL_DTYPES] = { 0 };
    uint64_t bytes;
    size_t count = bal_cli_tensors(model, &bytes);
    const char *comma = "";
    char text[32];

    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *tensor = bal_model_at(model, i);
        if (bal_cli_listed(tensor))
            counts[tensor->dtype]++;
    }
    bal_thousands(text, bytes);
    bal_out_text(out, "%-10s %zu, %s bytes", "tensors", count, text);
    for (size_t d = 0; d < BAL_DTYPES; d++) {
        if (!counts[d])
            continue;
        bal_out_text(out, "%s%s %zu", comma[0] ? comma : " (",
                     bal_dtype_name((bal_dtype)d), counts[d]);
        comma = ", ";
    }
    bal_out_text(out, "%s\n", comma[0] ? ")" : "");
    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *tensor = bal_model_at(model, i);
        if (tensor->part == BAL_PART_FILE && tensor->form == BAL_FORM_WHOLE)
            line(out, "file", tensor->name);
    }
}

static void show_json(bal_cli *cli, const bal_commit *commit,
                      const bal_model *model)
{
    bal_json json;

    bal_doc_open(&json, &cli->out, cli->command->name);
    bal_json_members(&json, bal_commit_json(commit));
    bal_json_key(&json, "tensors");
    if (!model) {
        bal_json_null(&json);
        bal_doc_close(&json, &cli->out);
        return;
    }
    bal_json_array(&json);
    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *tensor = bal_model_at(model, i);
        if (!bal_cli_listed(tensor))
            continue;
        bal_json_object(&json);
        bal_cli_tensor_json(&json, tensor);
        bal_json_close(&json);
    }
    bal_json_close(&json);
    bal_doc_close(&json, &cli->out);
}

/* What it answered to. */
static int show_answers(void *ctx, const bal_fingerprint_info *info)
{
    bal_out *out = ctx;

    bal_out_text(out, "%-10s %" PRIu64 " to probe set ", "answers",
                 info->answers);
    bal_out_id(out, &info->probes);
    bal_out_text(out, "  ");
    bal_out_safe(out, info->terms);
    bal_out_text(out, "\n");
    return 0;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    BAL_OWN(bal_commit) commit = NULL;
    BAL_OWN(bal_model) model = NULL;
    bal_error broken = { 0 };
    bal_id id;

    (void)values;
    int rc = bal_cli_spec(&id, cli, cli->args[0], err);
    if (rc)
        return rc;
    rc = bal_commit_open(&commit, cli->tenant, &id, err);
    if (rc)
        return rc;
    /* A view that lost an input can still be looked at. */
    rc = bal_model_from_commit(&model, cli->tenant, &id, &broken);
    if (rc && rc != BAL_EBROKEN) {
        *err = broken;
        return rc;
    }
    if (cli->out.json) {
        show_json(cli, commit, model);
        return 0;
    }
    show_head(&cli->out, bal_commit_info_of(commit));
    show_recipe(&cli->out, bal_commit_info_of(commit)->recipe);
    if (model)
        show_tensors(&cli->out, model);
    else
        line(&cli->out, "broken", broken.text);
    return bal_fingerprint_each(cli->tenant, &id, show_answers, &cli->out, err);
}

const bal_command bal_cmd_show = {
    .name = "show",
    .synopsis = "SPEC",
    .summary = "show everything about one commit",
    .about =
        "What the commit records, a view's recipe, its tensors in sum "
        "('ballast ls' lists them), and what it answered. With --json the tensors are "
        "listed, null for a view that lost an input.",
    .examples = "ballast show main~2\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
