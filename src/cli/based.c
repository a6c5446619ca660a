/* Deltas say nothing of tensors that they leave alone, and adapters are
 * factors: only on a base is the change of both that of the weights, and one
 * can be compared with the other or with a whole model. */
#include "cli/based.h"

#include <string.h>

#include "core/error.h"

static bool is_change(const bal_model *model)
{
    bal_kind kind = bal_model_facts(model)->kind;

    return kind == BAL_KIND_DELTA || kind == BAL_KIND_ADAPTER;
}

/* True if what one model recorded of its base says of another's all that is
 * recorded there: then it need not be compared again. */
static bool covers(const bal_model *one, const bal_model *other)
{
    if (bal_model_facts(one)->kind != BAL_KIND_DELTA)
        return false;
    for (size_t i = 0; i < bal_model_count(other); i++) {
        const bal_tensor *want = bal_model_at(other, i);
        size_t at = bal_model_find(one, want->part, want->name);
        if (!want->base)
            continue;
        if (at == BAL_NONE)
            return false;
        const bal_tensor *have = bal_model_at(one, at);
        if (!have->base ||
            memcmp(have->base, want->base, sizeof(*want->base)) != 0)
            return false;
    }
    return true;
}

static int put_on(bal_model **out, bal_model *base, const bal_named *change,
                  bool known, bal_cli *cli, bal_error *err)
{
    int rc = bal_model_plus(out, base, change->model,
                            known ? BAL_PLUS_ANY_BASE : 0, cli->work, err);

    return rc ? bal_within(err, rc, "'%s'", change->text) : 0;
}

static void replace(bal_named *self, bal_model **whole)
{
    if (!*whole)
        return;
    bal_model_free(self->model);
    self->model = BAL_TAKE(*whole);
}

static int put_both(bal_named *a, bal_named *b, bal_model *base, bal_cli *cli,
                    bal_error *err)
{
    BAL_OWN(bal_model) first = NULL;
    BAL_OWN(bal_model) second = NULL;
    bool both = is_change(a->model) && is_change(b->model);
    int rc = 0;

    if (is_change(a->model))
        rc = put_on(&first, base, a, false, cli, err);
    if (!rc && is_change(b->model))
        rc = put_on(&second, base, b, both && covers(a->model, b->model), cli,
                    err);
    if (rc)
        return rc;
    replace(a, &first);
    replace(b, &second);
    return 0;
}

static int both_on(bal_named *a, bal_named *b, bal_cli *cli, const char *name,
                   bal_error *err)
{
    BAL_LOCAL(bal_named) base = { 0 };
    bool one = cli->arg_count == 1;
    int rc = bal_cli_compared(&base, cli, name, err);

    if (!rc && !one)
        rc = bal_cli_compared(a, cli, cli->args[0], err);
    if (!rc)
        rc = bal_cli_compared(b, cli, cli->args[one ? 0 : 1], err);
    if (!rc)
        rc = bal_cli_work(cli, err);
    if (rc)
        return rc;
    if (one) {
        *a = base;
        a->model = bal_model_ref(base.model);
    }
    return put_both(a, b, base.model, cli, err);
}

int bal_cli_both(bal_named *a, bal_named *b, bal_cli *cli, const char *base,
                 bal_error *err)
{
    if (base)
        return both_on(a, b, cli, base, err);
    if (cli->arg_count < 2)
        return bal_fail(err, BAL_EINVAL,
                        "one model is compared with its base: "
                        "--against-base BASE");
    int rc = bal_cli_compared(a, cli, cli->args[0], err);
    return rc ? rc : bal_cli_compared(b, cli, cli->args[1], err);
}
