/* What arguments name: commits by spec, models by path or spec. */
#include <sys/stat.h>

#include "cli/cli.h"
#include "core/error.h"

static int offer_ref(void *ctx, const char *name, const bal_id *commit)
{
    (void)commit;
    bal_nearest_offer(ctx, name);
    return 0;
}

/* Which ref may have been meant; better than the hint that is there. */
static int suggest_ref(bal_cli *cli, int rc, const char *spec, bal_error *err)
{
    bal_nearest nearest;

    if (rc != BAL_ENOTFOUND || !err)
        return rc;
    bal_nearest_begin(&nearest, spec);
    if (bal_ref_each(cli->tenant, offer_ref, &nearest, NULL))
        return rc;
    return nearest.best[0]
               ? bal_hint(err, rc, "did you mean '%s'?", nearest.best)
               : rc;
}

int bal_cli_spec(bal_id *out, bal_cli *cli, const char *spec, bal_error *err)
{
    const char *own = bal_tenant_name(cli->tenant);
    size_t len = strcspn(spec, ":");

    if (spec[len]) {
        if (strlen(own) != len || memcmp(own, spec, len) != 0)
            return bal_fail(err, BAL_ENOTFOUND,
                            "no ref or commit '%s' in tenant '%.*s'",
                            spec + len + 1, (int)len, spec);
        spec += len + 1;
    }
    int rc = bal_resolve(out, cli->tenant, spec, err);
    return rc ? suggest_ref(cli, rc, spec, err) : 0;
}

void bal_named_done(bal_named *self)
{
    bal_model_free(self->model);
    *self = (bal_named){ 0 };
}

bool bal_cli_is_path(const char *text)
{
    struct stat info;

    return strchr(text, '/') || !stat(text, &info);
}

int bal_cli_model(bal_named *out, bal_cli *cli, const char *text,
                  bal_error *err)
{
    *out = (bal_named){ .text = text };
    if (bal_cli_is_path(text))
        return bal_model_from_path(&out->model, text, err);
    int rc = bal_cli_tenant(cli, 0, err);
    if (rc)
        return rc;
    rc = bal_cli_spec(&out->commit, cli, text, err);
    if (rc)
        return rc;
    out->is_commit = true;
    return bal_model_from_commit(&out->model, cli->tenant, &out->commit, err);
}

int bal_cli_compared(bal_named *out, bal_cli *cli, const char *text,
                     bal_error *err)
{
    bal_error unheard = { 0 };

    *out = (bal_named){ .text = text };
    if (!bal_cli_is_path(text) || strchr(text, '/') ||
        bal_cli_tenant(cli, 0, &unheard) ||
        bal_cli_spec(&out->commit, cli, text, &unheard))
        return bal_cli_model(out, cli, text, err);
    out->is_commit = true;
    return bal_model_from_commit(&out->model, cli->tenant, &out->commit, err);
}

int bal_cli_metadata(const char *text, bal_error *err)
{
    BAL_OWN(json_t) value = NULL;

    if (!text)
        return 0;
    int rc = bal_json_parse(&value, text, strlen(text), "--metadata", err);
    if (rc) {
        if (err && rc == BAL_ECORRUPT)
            err->code = BAL_EINVAL;
        return rc == BAL_ECORRUPT ? BAL_EINVAL : rc;
    }
    if (!json_is_object(value))
        return bal_fail(err, BAL_EINVAL, "--metadata: not a JSON object");
    return 0;
}

static int offer_methods(bal_error *err, int rc, const char *name)
{
    bal_nearest nearest;

    bal_nearest_begin(&nearest, name);
    for (size_t i = 0; i < bal_method_count(); i++)
        bal_nearest_offer(&nearest, bal_method_at(i)->name);
    if (nearest.best[0])
        return bal_hint(err, rc, "did you mean '%s'?", nearest.best);
    return bal_hint(err, rc, "'ballast methods' lists them");
}

int bal_cli_method(const bal_method_info **out, const char *name,
                   bal_error *err)
{
    *out = bal_method_find(name);
    if (*out)
        return 0;
    int rc = bal_fail(err, BAL_EINVAL, "no merge method '%s'", name);
    return offer_methods(err, rc, name);
}
