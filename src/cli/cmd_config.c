/* ballast config: the store's settings. */
#include "cli/commands.h"
#include "core/error.h"

/* Known, though a store may have no value for it. */
static const char *const optional[] = { "default_jobs", "tenant" };

/* Settings as they come: all, or the one asked for. */
typedef struct settings {
    bal_cli *cli;
    bal_json json;
    const char *only; /* NULL: all */
    bool seen;
    bal_nearest nearest;
} settings;

static int show(void *ctx, const char *key, const char *value)
{
    settings *self = ctx;
    bal_out *out = &self->cli->out;

    if (self->only) {
        bal_nearest_offer(&self->nearest, key);
        if (strcmp(key, self->only) != 0)
            return 0;
    }
    self->seen = true;
    if (out->json) {
        bal_json_key(&self->json, key);
        bal_json_string(&self->json, value);
        return 0;
    }
    if (!self->only)
        bal_out_text(out, "%s = ", key);
    bal_out_safe(out, value ? value : "");
    bal_out_text(out, "\n");
    return 0;
}

static int no_setting(const settings *self, bal_error *err)
{
    int rc = bal_fail(err, BAL_EINVAL, "no setting '%s'", self->only);

    if (self->nearest.best[0])
        return bal_hint(err, rc, "did you mean '%s'?", self->nearest.best);
    return bal_hint(err, rc, "'ballast config' lists them");
}

static int list(bal_cli *cli, const char *only, bal_error *err)
{
    settings self = { .cli = cli, .only = only };

    bal_nearest_begin(&self.nearest, only ? only : "");
    if (cli->out.json) {
        bal_doc_open(&self.json, &cli->out, cli->command->name);
        bal_json_key(&self.json, "settings");
        bal_json_object(&self.json);
    }
    int rc = bal_setting_each(cli->store, show, &self, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
        bal_nearest_offer(&self.nearest, optional[i]);
        if (only && !self.seen && !strcmp(optional[i], only))
            show(&self, only, NULL);
    }
    if (only && !self.seen)
        return no_setting(&self, err);
    if (cli->out.json) {
        bal_json_close(&self.json);
        bal_doc_close(&self.json, &cli->out);
    }
    return 0;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const char *key = cli->arg_count ? cli->args[0] : NULL;

    (void)values;
    int rc = bal_cli_store(cli, 0, err);
    if (rc)
        return rc;
    if (cli->arg_count == 2) {
        rc = bal_setting_set(cli->store, key, cli->args[1], err);
        if (rc)
            return rc;
    }
    return list(cli, key, err);
}

const bal_command bal_cmd_config = {
    .name = "config",
    .synopsis = "[KEY [VALUE]]",
    .summary = "show or change the store's settings",
    .about = "Without KEY all settings, with KEY its value, with VALUE it is "
             "set and shown. What a store was made with (block_size, format) "
             "stays.",
    .examples = "ballast config tenant acme\n",
    .arg = "SETTING",
    .max_args = 2,
    .run = run,
};
