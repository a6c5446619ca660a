/* ballast revoke: take a grant back. */
#include "cli/commands.h"
#include "core/error.h"

struct revoke_opts {
    const char *to;
    bool all;
};

static const bal_opt opts[] = {
    { 0, "to", BAL_OPT_STRING, offsetof(struct revoke_opts, to), "T",
      "the tenant that was granted it", BAL_OPT_REQUIRED },
    { 0, "all", BAL_OPT_FLAG, offsetof(struct revoke_opts, all), NULL,
      "everything that is granted to T, instead of SPEC" },
    { 0 },
};

/* The views that broke: how many, and their names. */
typedef struct broken {
    const char *grantee;
    uint64_t count; /* of the grantee's */
    bal_buf names;  /* JSON strings, a comma between */
    int rc;
    bal_error *err;
} broken;

static void broken_done(broken *self)
{
    bal_buf_done(&self->names);
}

/* A tenant's name needs no escapes. */
static int add(void *ctx, const char *tenant, const bal_id *commit)
{
    broken *self = ctx;
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, commit);
    self->count += !strcmp(tenant, self->grantee);
    self->rc = bal_buf_format(&self->names, self->err, "%s\"%s:%s\"",
                              self->names.len ? "," : "", tenant, hex);
    return self->rc;
}

static void report(bal_cli *cli, const broken *views, uint64_t revoked)
{
    bal_out *out = &cli->out;
    bal_json json;

    if (!out->json) {
        bal_out_text(out, "revoked; %llu view(s) in '",
                     (unsigned long long)views->count);
        bal_out_safe(out, views->grantee);
        bal_out_text(out, "' can no longer resolve\n");
        return;
    }
    BAL_LOCAL(bal_buf) list = { 0 };
    int rc =
        bal_buf_format(&list, &out->err, "[%s]", bal_buf_string(&views->names));
    bal_doc_open(&json, out, cli->command->name);
    bal_json_key(&json, "revoked");
    bal_json_u64(&json, revoked);
    bal_json_key(&json, "broken");
    bal_json_raw(&json, bal_buf_string(&list));
    bal_doc_close(&json, out);
    if (rc)
        bal_out_keep(out, rc, &out->err);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct revoke_opts *given = values;
    BAL_LOCAL(broken) views = { .grantee = given->to, .err = err };
    uint64_t revoked = 0;
    bal_id commit;

    if (given->all == (cli->arg_count == 1))
        return bal_fail(err, BAL_EINVAL,
                        "revoke: either a commit or --all is needed");
    int rc = given->all ? 0 : bal_cli_spec(&commit, cli, cli->args[0], err);
    if (rc)
        return rc;
    rc = bal_revoke(cli->tenant, given->all ? NULL : &commit, given->to,
                    &revoked, add, &views, err);
    if (!rc)
        rc = views.rc;
    if (rc)
        return rc;
    report(cli, &views, revoked);
    return 0;
}

const bal_command bal_cmd_revoke = {
    .name = "revoke",
    .synopsis = "SPEC|--all --to T",
    .summary = "take a grant back",
    .about = "What the commit holds may no longer be read by T's views, by "
             "views of others that stand on them, or from any cache: the next "
             "read fails, also in a program that has it open. It does not "
             "matter by which commit it was granted, or where its ref is now. "
             "Told are the views of this tenant and of T that broke. Copies "
             "that T has written to folders stay.",
    .examples = "ballast revoke support --to partner\n"
                "ballast revoke --all --to partner\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct revoke_opts),
    .run = run,
};
