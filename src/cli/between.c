/* What push and pull share: the other store, what is asked for, and what came
 * of it. */
#include "cli/between.h"

#include <string.h>

#include "core/error.h"
#include "core/str.h"

const bal_opt bal_between_opts[] = {
    { 0, "force", BAL_OPT_FLAG, offsetof(struct between_opts, force), NULL,
      "move refs that do not lead on from where they are, too" },
    { 0 },
};

/* ---- the other store ---------------------------------------------------- */

void bal_other_done(bal_other *self)
{
    bal_tenant_free(self->tenant);
    bal_store_free(self->store);
    *self = (bal_other){ 0 };
}

static int open_store(bal_other *out, bal_cli *cli, bal_store_options *options,
                      bal_error *err)
{
    options->wait = cli->globals.wait.value;
    options->work = cli->work;
    options->flags |= cli->globals.no_cache ? BAL_OPEN_NO_CACHE : 0;
    return bal_store_open(&out->store, options, err);
}

/* Where blocks are cut the same way, the next commit of what was pushed shares
 * them. */
static int make_store(bal_other *out, bal_cli *cli, const char *root,
                      bal_error *err)
{
    bal_store_options options = {
        .root = root,
        .tenant = bal_setting_get(cli->store, "tenant"),
        .compression = bal_setting_get(cli->store, "compression"),
        .flags = BAL_OPEN_CREATE,
    };
    const char *size = bal_setting_get(cli->store, "block_size");
    int rc = size ? bal_parse_u64(&options.block_size, size, err) : 0;

    return rc ? rc : open_store(out, cli, &options, err);
}

int bal_other_open(bal_other *out, bal_cli *cli, const char *root,
                   unsigned flags, bal_error *err)
{
    bal_store_options options = { .root = root };
    const char *tenant = cli->globals.tenant
                             ? cli->globals.tenant
                             : bal_setting_get(cli->store, "tenant");
    bal_error why = { 0 };
    int rc = open_store(out, cli, &options, &why);

    if (rc == BAL_ENOTFOUND && flags & BAL_OPEN_CREATE)
        rc = make_store(out, cli, root, err);
    else if (rc && err)
        *err = why;
    return rc ? rc : bal_tenant_open(&out->tenant, out->store, tenant, err);
}

/* ---- what is asked for -------------------------------------------------- */

/* As bal_cli_spec reads one, the tenant's own name in front or not. */
static int strip(const char **spec, const char *own, bal_error *err)
{
    size_t len = strcspn(*spec, ":");

    if (!(*spec)[len])
        return 0;
    if (strlen(own) != len || memcmp(own, *spec, len) != 0)
        return bal_fail(err, BAL_ENOTFOUND,
                        "no ref or commit '%s' in tenant '%.*s'",
                        *spec + len + 1, (int)len, *spec);
    *spec += len + 1;
    return 0;
}

/* ---- what came of it ---------------------------------------------------- */

/* Moves are told before the numbers, and shown after them. */
typedef struct telling {
    bal_cli *cli;
    bal_buf lines; /* the array of them */
    bal_json json;
    bal_buf ids;   /* the same as text: where each is now, */
    bal_buf names; /* and its name, a NUL behind each */
} telling;

static void telling_done(telling *self)
{
    bal_buf_done(&self->lines);
    bal_buf_done(&self->ids);
    bal_buf_done(&self->names);
}

static int keep_line(telling *self, const bal_move *move)
{
    bal_error err = { 0 };
    int rc = bal_buf_append(&self->ids, move->now, sizeof(*move->now), &err);

    if (!rc)
        rc = bal_buf_append(&self->names, move->ref, strlen(move->ref) + 1,
                            &err);
    if (rc)
        bal_out_keep(&self->cli->out, rc, &err);
    return rc;
}

static int moved(void *ctx, const bal_move *move)
{
    telling *self = ctx;

    if (!self->cli->out.json)
        return keep_line(self, move);
    bal_json_object(&self->json);
    bal_json_key(&self->json, "ref");
    bal_json_string(&self->json, move->ref);
    bal_json_key(&self->json, "old");
    bal_json_id(&self->json, move->old);
    bal_json_key(&self->json, "new");
    bal_json_id(&self->json, move->now);
    bal_json_close(&self->json);
    return 0;
}

static void show_moves(bal_out *out, const telling *self)
{
    const char *name = self->names.data;

    for (size_t at = 0; at < self->ids.len; at += sizeof(bal_id)) {
        bal_id id;
        memcpy(&id, self->ids.data + at, sizeof(id));
        bal_out_safe(out, name);
        bal_out_text(out, " -> ");
        bal_out_id(out, &id);
        bal_out_text(out, "\n");
        name += strlen(name) + 1;
    }
}

static void show(bal_cli *cli, const bal_push_report *report)
{
    bal_out *out = &cli->out;

    if (!report->commits) {
        bal_out_text(out, "%s\n",
                     report->refs ? "no commit was missing"
                                  : "nothing changed");
        return;
    }
    bal_out_text(
        out, "%llu commit%s, %llu block%s, %llu bytes\n",
        (unsigned long long)report->commits, report->commits == 1 ? "" : "s",
        (unsigned long long)report->blocks, report->blocks == 1 ? "" : "s",
        (unsigned long long)report->stored_bytes);
}

static int show_json(telling *self, const bal_push_report *report,
                     bal_error *err)
{
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {
        { "commits", report->commits },
        { "blocks", report->blocks },
        { "reused_blocks", report->reused_blocks },
        { "bytes", report->bytes },
        { "stored_bytes", report->stored_bytes },
    };
    bal_json json;

    bal_json_close(&self->json);
    int rc = bal_json_end(&self->json, err);
    if (rc)
        return rc;
    bal_doc_open(&json, &self->cli->out, self->cli->command->name);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bal_json_key(&json, rows[i].key);
        bal_json_u64(&json, rows[i].value);
    }
    bal_json_key(&json, "refs");
    bal_json_raw(&json, bal_buf_string(&self->lines));
    bal_doc_close(&json, &self->cli->out);
    return 0;
}

static int transfer(telling *self, bal_tenant *from, bal_tenant *to,
                    const struct between_opts *given, bal_error *err)
{
    bal_cli *cli = self->cli;
    bal_push_report report = { 0 };
    const bal_push_options what = {
        .specs = cli->args + 1,
        .count = cli->arg_count - 1,
        .op = cli->command->name,
        .flags = given->force ? BAL_PUSH_FORCE : 0,
        .moved = moved,
        .ctx = self,
    };
    int rc = bal_push(from, to, &what, &report, err);

    if (!rc && cli->out.json)
        return show_json(self, &report, err);
    if (rc)
        return rc;
    show(cli, &report);
    show_moves(&cli->out, self);
    return 0;
}

int bal_between(bal_cli *cli, bal_tenant *from, bal_tenant *to,
                const struct between_opts *given, bal_error *err)
{
    telling self = { .cli = cli };
    int rc = 0;

    for (size_t i = 1; i < cli->arg_count && !rc; i++)
        rc = strip(&cli->args[i], bal_tenant_name(from), err);
    if (rc)
        return rc;
    bal_json_begin(&self.json, &self.lines, 0);
    bal_json_array(&self.json);
    rc = transfer(&self, from, to, given, err);
    telling_done(&self);
    return rc;
}
