/* ballast cat: the bytes of one tensor. */
#include "cli/commands.h"
#include "core/error.h"

enum { PIECE = 4 * 1024 * 1024 };

/* The entry by its name: a tensor, else a side file. */
static int find(size_t *out, const bal_model *model, const char *name,
                const char *spec, bal_error *err)
{
    bal_nearest nearest;

    *out = bal_model_find(model, BAL_PART_TENSOR, name);
    if (*out == BAL_NONE)
        *out = bal_model_find(model, BAL_PART_FILE, name);
    if (*out != BAL_NONE && bal_model_at(model, *out)->form < BAL_FORM_SAME)
        return 0;
    int rc = bal_fail(err, BAL_ENOTFOUND, "no tensor '%s' in '%s'", name, spec);
    if (*out != BAL_NONE) {
        return bal_hint(err, rc,
                        "the delta leaves it as it is in the base, "
                        "or takes it away");
    }
    bal_nearest_begin(&nearest, name);
    for (size_t i = 0; i < bal_model_count(model); i++) {
        if (bal_cli_listed(bal_model_at(model, i)))
            bal_nearest_offer(&nearest, bal_model_at(model, i)->name);
    }
    if (nearest.best[0])
        return bal_hint(err, rc, "did you mean '%s'?", nearest.best);
    return bal_hint(err, rc, "'ballast ls %s' lists them", spec);
}

static int copy(bal_cli *cli, bal_model *model, size_t i, bal_error *err)
{
    uint64_t size = bal_model_at(model, i)->size;
    char *piece = bal_arena_alloc(&cli->arena, PIECE);

    if (!piece)
        return bal_fail_memory(err, "cat");
    for (uint64_t at = 0; at < size && !bal_out_stopped(&cli->out);) {
        size_t len = size - at < PIECE ? (size_t)(size - at) : PIECE;
        int rc = bal_model_read(model, i, at, piece, len, err);
        if (rc)
            return rc;
        bal_out_bytes(&cli->out, piece, len);
        at += len;
    }
    return 0;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;
    bal_id id;
    size_t i;

    (void)values;
    if (cli->out.terminal) {
        int rc = bal_fail(err, BAL_EINVAL, "raw bytes are not for a terminal");
        return bal_hint(err, rc, "ballast cat SPEC TENSOR > FILE");
    }
    int rc = bal_cli_spec(&id, cli, cli->args[0], err);
    if (rc)
        return rc;
    rc = bal_model_from_commit(&model, cli->tenant, &id, err);
    if (rc)
        return rc;
    rc = find(&i, model, cli->args[1], cli->args[0], err);
    if (rc)
        return rc;
    return copy(cli, model, i, err);
}

const bal_command bal_cmd_cat = {
    .name = "cat",
    .synopsis = "SPEC TENSOR",
    .summary = "write the raw bytes of a tensor",
    .about = "Little-endian, as in safetensors, without any header; of a "
             "delta's tensor the difference that is stored. A side file by "
             "its name comes out too.",
    .examples = "ballast cat support model.norm.weight > norm.bin\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
