/* ballast ls: the tensors of a commit. */
#include "cli/commands.h"
#include "core/str.h"

static void show(bal_cli *cli, const bal_tensor *tensor)
{
    bal_out *out = &cli->out;
    bal_json json;

    if (out->json) {
        bal_line_open(&json, out, cli->command->name);
        bal_cli_tensor_json(&json, tensor);
        bal_doc_close(&json, out);
        return;
    }
    bal_out_safe(out, tensor->name);
    bal_out_text(out, "  %s  ", bal_dtype_name(tensor->dtype));
    bal_cli_shape(out, tensor);
    bal_out_text(out, "  %llu\n", (unsigned long long)tensor->size);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const char *pattern = cli->arg_count > 1 ? cli->args[1] : "*";
    BAL_OWN(bal_model) model = NULL;
    bal_id id;

    (void)values;
    int rc = bal_cli_spec(&id, cli, cli->args[0], err);
    if (rc)
        return rc;
    rc = bal_model_from_commit(&model, cli->tenant, &id, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *tensor = bal_model_at(model, i);
        if (bal_out_stopped(&cli->out))
            break;
        if (bal_cli_listed(tensor) && bal_glob(pattern, tensor->name))
            show(cli, tensor);
    }
    return 0;
}

const bal_command bal_cmd_ls = {
    .name = "ls",
    .synopsis = "SPEC [PATTERN]",
    .summary = "list the tensors of a commit",
    .about = "One tensor a line: name, dtype, shape, bytes. PATTERN has * and "
             "?, and must fit the whole name. Of a delta: the tensors that "
             "it changes. With --json one object a line.",
    .examples = "ballast ls support '*.layers.0.*'\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .min_args = 1,
    .max_args = 2,
    .run = run,
};
