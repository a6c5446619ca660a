/* ballast serve-export: adapters as folders that engines load. */
#include "cli/commands.h"
#include "cli/serve_export.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/signals.h"
#include "core/str.h"
#include "fleet/state.h"

enum { PARTIAL = 4 };

struct serve_export_opts {
    const char *out;
    const char *manifest;
    const char *engine;
    const char *base;
    bal_opt_u64 max_rank;
    bool adapt;
    bool prune;
};

#define AT(member) offsetof(struct serve_export_opts, member)

static const bal_opt opts[] = {
    { 'o', "out", BAL_OPT_STRING, AT(out), "DIR",
      "write to DIR/<tenant>/<commit>", BAL_OPT_REQUIRED },
    { 0, "manifest", BAL_OPT_STRING, AT(manifest), "FILE",
      "what was exported, as a JSON array" },
    { 0, "for", BAL_OPT_ENUM, AT(engine), "vllm|sglang|llama.cpp|peft",
      "look for what this engine refuses or misapplies" },
    { 0, "base", BAL_OPT_STRING, AT(base), "DIR",
      "the model that it serves, a folder or spec: for names and shapes" },
    { 0, "max_rank", BAL_OPT_U64, AT(max_rank), "N",
      "the highest rank that it was started with" },
    { 0, "adapt", BAL_OPT_FLAG, AT(adapt), NULL,
      "rewrite what the engine needs in another form" },
    { 0, "prune", BAL_OPT_FLAG, AT(prune), NULL,
      "remove exports that no ref needs any more" },
    { 0 },
};

typedef struct exporting {
    bal_cli *cli;
    const struct serve_export_opts *given;
    bal_export_options options;
    bal_export_list list;
    bal_export_asked *at;
    bal_buf keep; /* of bal_id */
    bool lost;    /* no memory */
} exporting;

static void exporting_done(exporting *self)
{
    bal_buf_done(&self->keep);
    bal_buf_done(&self->list.pruned);
}

/* ---- what is asked for --------------------------------------------------- */

static int check_options(const struct serve_export_opts *given, bal_error *err)
{
    if (!given->engine &&
        (given->adapt || given->base || given->max_rank.given))
        return bal_fail(err, BAL_EINVAL,
                        "--base, --max-rank and --adapt go with --for ENGINE");
    if (given->engine && !strcmp(given->engine, "llama.cpp") && !given->base)
        return bal_fail(err, BAL_EINVAL,
                        "--for llama.cpp needs --base: names and order of an "
                        "adapter's tensors are the base's");
    if (given->max_rank.given && !given->max_rank.value)
        return bal_fail(err, BAL_EINVAL, "--max-rank: 0 is no rank");
    return 0;
}

/* Before any spec is looked at: this is not about one of them. */
static int check_place(const exporting *self, bal_error *err)
{
    const char *out = self->given->out;
    char *root = NULL;
    char *real = NULL;
    int rc = bal_path_real(&root, bal_store_root(self->cli->store), err);
    if (!rc)
        rc = out[0] ? bal_path_real(&real, out, err)
                    : bal_fail(err, BAL_EINVAL, "-o: '' is no folder");
    if (!rc && bal_path_holds(root, real)) {
        rc = bal_fail(err, BAL_EINVAL, "'%s' lies inside the store '%s'", out,
                      root);
        bal_hint(err, rc, "choose another place to write to");
    }
    if (!rc && bal_path_type_of(real) == BAL_PATH_FILE)
        rc = bal_fail(err, BAL_EEXISTS, "'%s' is there and is no folder", out);
    bal_str_free(root);
    bal_str_free(real);
    return rc;
}

static bool is_asked(const exporting *self, const char *spec)
{
    for (size_t i = 0; i < self->list.count; i++) {
        if (!strcmp(self->list.rows[i].spec, spec))
            return true;
    }
    return false;
}

static int count_ref(void *ctx, const char *name, const bal_id *commit)
{
    (void)name;
    (void)commit;
    ++*(size_t *)ctx;
    return 0;
}

typedef struct ref_taking {
    exporting *self;
    size_t room;
} ref_taking;

static int take_ref(void *ctx, const char *name, const bal_id *commit)
{
    const ref_taking *job = ctx;
    exporting *self = job->self;
    const char *copy = bal_arena_copy(&self->cli->arena, name, strlen(name));

    (void)commit;
    if (self->list.count == job->room)
        return 1; /* made since they were counted */
    self->lost = self->lost || !copy;
    if (copy)
        self->list.rows[self->list.count++] =
            (bal_export_asked){ .spec = copy };
    return 0;
}

/* Without specs, every ref, by name. */
static int take_specs(exporting *self, bal_error *err)
{
    const bal_cli *cli = self->cli;
    ref_taking job = { self, cli->arg_count };
    int rc = 0;

    if (!cli->arg_count)
        rc = bal_ref_each(cli->tenant, count_ref, &job.room, err);
    if (rc)
        return rc;
    self->list.rows = bal_arena_alloc(
        &self->cli->arena, (job.room + 1) * sizeof(*self->list.rows));
    if (!self->list.rows)
        return bal_fail_memory(err, "specs");
    for (size_t i = 0; i < cli->arg_count; i++) {
        if (!is_asked(self, cli->args[i]))
            self->list.rows[self->list.count++] =
                (bal_export_asked){ .spec = cli->args[i] };
    }
    if (!cli->arg_count)
        rc = bal_ref_each(cli->tenant, take_ref, &job, err);
    if (!rc && self->lost)
        rc = bal_fail_memory(err, "specs");
    return rc;
}

/* ---- one of them ----------------------------------------------------------
 */

static const char *copy_of(exporting *self, const char *text)
{
    const char *copy =
        text ? bal_arena_copy(&self->cli->arena, text, strlen(text)) : NULL;

    self->lost = self->lost || (text && !copy);
    return copy;
}

static int keep_info(void *ctx, const bal_exported_info *info)
{
    exporting *self = ctx;
    bal_exported_info *kept = &self->at->info;

    *kept = *info;
    kept->name = copy_of(self, info->name);
    kept->path = copy_of(self, info->path);
    kept->tenant = copy_of(self, info->tenant);
    kept->ref = copy_of(self, info->ref);
    kept->base_model = copy_of(self, info->base_model);
    self->at->done = true;
    return 0;
}

/* What is so of the store and not of this spec. */
static bool is_general(int rc)
{
    return rc == BAL_EIO || rc == BAL_EBUSY || rc == BAL_ENOMEM ||
           rc == BAL_ECANCELLED;
}

/* "acme:support" of tenant acme is its "support". */
static const char *own_spec(const exporting *self, const char *spec)
{
    const char *own = bal_tenant_name(self->cli->tenant);
    size_t len = strlen(own);

    return !strncmp(spec, own, len) && spec[len] == ':' ? spec + len + 1 : spec;
}

static int export_one(exporting *self, bal_export_asked *row, bal_error *err)
{
    bal_error why = { 0 };
    bal_id id;

    self->at = row;
    int rc = bal_cli_spec(&id, self->cli, row->spec, &why);
    if (!rc)
        rc = bal_export(self->cli->tenant, own_spec(self, row->spec),
                        &self->options, keep_info, self, &why);
    if (bal_signals_pending())
        rc = BAL_ECANCELLED;
    if (rc && is_general(rc)) {
        *err = why;
        return rc;
    }
    if (rc) {
        row->code = rc;
        row->why = copy_of(self, why.text);
    }
    if (!self->lost && row->done)
        return bal_buf_append(&self->keep, &row->info.commit, sizeof(bal_id),
                              err);
    return self->lost ? bal_fail_memory(err, "exports") : 0;
}

/* What was adapted or passed over; what is refused is told as why. As warnings
 * are: who reads JSON gets it with -v only. */
static int tell_row(void *ctx, const bal_preflight_row *row)
{
    const exporting *self = ctx;
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_buf) line = { 0 };

    const bal_globals *globals = &self->cli->globals;
    if (globals->quiet || (globals->json && !globals->verbose) ||
        (row->outcome != BAL_OUTCOME_ADAPTED &&
         row->outcome != BAL_OUTCOME_NOTED))
        return 0;
    if (bal_buf_format(&text, NULL, "%s: %s%s%s: %s", self->at->spec, row->rule,
                       row->where[0] ? ": " : "", row->where, row->text) ||
        bal_printable(&line, text.data, text.len, false, NULL))
        return 0;
    bal_progress_clear(&self->cli->progress);
    fprintf(stderr, "note: %s\n", bal_buf_string(&line));
    return 0;
}

/* ---- pruning --------------------------------------------------------------
 */

/* All refs' commits stay, whatever was asked for; but where all were, not those
 * of which it was found that they may not be read any more. */
static int keep_ref(void *ctx, const char *name, const bal_id *commit)
{
    exporting *self = ctx;

    for (size_t i = 0; i < self->list.count && !self->cli->arg_count; i++) {
        if (self->list.rows[i].code == BAL_EBROKEN &&
            !strcmp(self->list.rows[i].spec, name))
            return 0;
    }
    if (bal_buf_append(&self->keep, commit, sizeof(*commit), NULL))
        self->lost = true;
    return 0;
}

static int keep_pruned(void *ctx, const char *path, const char *why)
{
    exporting *self = ctx;

    if (why) {
        bal_warn("export", "%s stays: %s", path, why);
        return 0;
    }
    const char *copy = copy_of(self, path);
    if (!copy || bal_buf_append(&self->list.pruned, &copy, sizeof(copy), NULL))
        self->lost = true;
    return 0;
}

/* What was named stays, whether it was exported or not. */
static int keep_named(exporting *self, bal_error *err)
{
    const bal_cli *cli = self->cli;
    bal_id id;
    int rc = 0;

    for (size_t i = 0; i < cli->arg_count && !rc; i++) {
        if (!bal_cli_spec(&id, self->cli, cli->args[i], NULL))
            rc = bal_buf_append(&self->keep, &id, sizeof(id), err);
    }
    return rc;
}

/* What sync-vllm noted there stays for it to unload: of what was forgotten, the
 * store knows no server any more. */
static int keep_loaded(exporting *self, bal_error *err)
{
    BAL_LOCAL(bal_fleet_state) state = { 0 };
    int rc = bal_fleet_state_read(&state, self->given->out, err);

    for (size_t i = 0; i < state.count && !rc; i++)
        rc = bal_buf_append(&self->keep, &state.rows[i].commit, sizeof(bal_id),
                            err);
    return rc;
}

static int prune(exporting *self, bal_error *err)
{
    int rc = keep_named(self, err);
    if (!rc)
        rc = keep_loaded(self, err);
    if (!rc)
        rc = bal_ref_each(self->cli->tenant, keep_ref, self, err);
    if (!rc && self->lost)
        rc = bal_fail_memory(err, "refs");
    if (!rc)
        rc = bal_export_prune(
            self->cli->tenant, self->given->out, bal_ids_of(&self->keep),
            bal_ids_count(&self->keep), keep_pruned, self, err);
    if (!rc && self->lost)
        rc = bal_fail_memory(err, "exports");
    return rc;
}

/* ---- all of them ----------------------------------------------------------
 */

/* One that was refused by a rule may be taken in another form. */
static void tell_hint(const exporting *self)
{
    const bal_globals *globals = &self->cli->globals;
    bool refused = false;

    for (size_t i = 0; i < self->list.count; i++)
        refused |= self->list.rows[i].code == BAL_EUNSUPPORTED;
    if (refused && self->given->engine && !self->given->adapt &&
        !globals->quiet && !globals->json)
        fputs("hint: --adapt rewrites what can be without changing the maths\n",
              stderr);
}

static int finish(exporting *self, bal_error *err)
{
    int rc = 0;

    if (self->given->manifest)
        rc = bal_cli_exports_manifest(self->cli, &self->list,
                                      self->given->manifest, err);
    if (!rc && self->given->prune)
        rc = prune(self, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < self->list.count; i++) {
        if (self->list.rows[i].why)
            self->cli->status = PARTIAL;
    }
    if (self->cli->out.json)
        bal_cli_exports_json(self->cli, &self->list);
    else
        bal_cli_exports_text(self->cli, &self->list);
    tell_hint(self);
    return 0;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct serve_export_opts *given = values;
    BAL_LOCAL(bal_named) base = { 0 };
    BAL_LOCAL(exporting) self = { .cli = cli, .given = given };
    int rc = check_options(given, err);
    if (!rc)
        rc = check_place(&self, err);
    if (!rc && given->base)
        rc = bal_cli_model(&base, cli, given->base, err);
    if (!rc)
        rc = take_specs(&self, err);
    if (rc)
        return rc;
    self.options = (bal_export_options){
        .dir = given->out,
        .serve = { given->engine, base.model, given->max_rank.value },
        .told = tell_row,
        .ctx = &self,
        .flags = given->adapt ? BAL_EXPORT_ADAPT : 0,
    };
    for (size_t i = 0; i < self.list.count && !rc; i++)
        rc = export_one(&self, &self.list.rows[i], err);
    return rc ? rc : finish(&self, err);
}

const bal_command bal_cmd_serve_export = {
    .name = "serve-export",
    .synopsis = "[SPEC...] -o DIR [--for ENGINE] [--prune] [OPTIONS]",
    .summary = "write adapters as folders that an engine loads",
    .about =
        "Each SPEC, or every ref, becomes DIR/<tenant>/<commit>: an adapter's "
        "weights and config, and a ballast.json with the digest of each file. "
        "A folder appears complete or not at all, and is never written to "
        "again: one that is there is read through and used as it is, or it is "
        "an error. Equal files of several exports are one file with several "
        "names.\n\n"
        "With --for, an adapter that the engine would refuse, or load and "
        "apply wrongly, is skipped, with the rule that it meets; --adapt "
        "writes it in a form that the engine takes where there is one with the "
        "same result. For llama.cpp there is an adapter.gguf, too. What is "
        "skipped is told, and the exit status is 4.\n\n"
        "--prune removes exports of commits that no ref is at any more, unless "
        "something in them was changed or a server is known to have them "
        "loaded. --manifest writes what was exported as a JSON array.",
    .examples = "ballast serve-export -o ./exports --for vllm --base ./llama-8b"
                " --adapt\n"
                "ballast serve-export support~1 -o ./exports\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .max_args = BAL_ANY_ARGS,
    .opts = opts,
    .opts_size = sizeof(struct serve_export_opts),
    .run = run,
};
