/* ballast export-mergekit: a view's recipe as a configuration of mergekit. */
#include "cli/commands.h"
#include "core/error.h"
#include "core/file.h"

struct export_opts {
    bal_opt_list map;
    const char *out;
};

static const bal_opt opts[] = {
    { 'o', "out", BAL_OPT_STRING, offsetof(struct export_opts, out), "FILE",
      "the file to write, instead of the output" },
    { 0, "map", BAL_OPT_LIST, offsetof(struct export_opts, map), "MODEL=SPEC",
      "what mergekit is to call a commit, tenant:id if not told" },
    { 0 },
};

static int report(bal_cli *cli, const bal_id *id, const char *file,
                  const char *text)
{
    bal_out *out = &cli->out;
    bal_json json;

    if (!out->json) {
        if (!file)
            bal_out_puts(out, text);
        return 0;
    }
    bal_doc_open(&json, out, cli->command->name);
    bal_json_key(&json, "commit");
    bal_json_id(&json, id);
    bal_json_key(&json, "out");
    bal_json_string(&json, file);
    bal_json_key(&json, "recipe");
    bal_json_string(&json, text);
    bal_doc_close(&json, out);
    return 0;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct export_opts *given = values;
    bal_id id;
    char *text = NULL;
    int rc = bal_cli_spec(&id, cli, cli->args[0], err);

    if (!rc)
        rc = bal_export_mergekit(&text, cli->tenant, &id, given->map.items,
                                 given->map.count, err);
    if (!rc && given->out)
        rc = bal_file_replace(given->out, text, strlen(text), err);
    if (!rc)
        rc = report(cli, &id, given->out, text);
    bal_text_free(text);
    return rc;
}

const bal_command bal_cmd_export_mergekit = {
    .name = "export-mergekit",
    .synopsis = "SPEC [-o FILE] [--map MODEL=SPEC]...",
    .summary = "write a view's recipe as a mergekit configuration",
    .about = "mergekit 0.1.5 runs it once each model is a folder of the name "
             "that it has there: 'ballast checkout' writes one. What mergekit "
             "has nothing for is refused by name; where it computes otherwise, "
             "a comment says so.",
    .examples = "ballast export-mergekit blend --map ./chat=chat "
                "--map ./code=code -o blend.yml\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .min_args = 1,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct export_opts),
    .run = run,
};
