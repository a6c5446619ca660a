/* An adapter as a folder that an engine loads. An engine maps what it loads and
 * goes on reading it, so a folder under its final name is never written to: it
 * appears whole, by a rename, or is there and is what was asked for. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"
#include "model/model.h"
#include "model/stage.h"
#include "store/export_folder.h"

#define GGUF_ENGINE "llama.cpp"
#define GGUF_NAME   "adapter.gguf"

/* One export on its way. */
typedef struct exporting {
    bal_tenant *tenant;
    const char *spec;
    const bal_export_options *options;
    bal_export_form form;
    char store[BAL_STORE_ID_ROOM];
    bal_id id;
    bool is_ref;
    bal_commit *commit;
    bal_model *source; /* the commit's */
    bal_model *model;  /* what is written, or was found: adapted, it may be */
    char *exports;     /* <dir>/<tenant> */
    char *folder;      /* <dir>/<tenant>/<commit> */
    bool reused;
} exporting;

static void exporting_done(exporting *self)
{
    bal_commit_free(self->commit);
    bal_model_free(self->source);
    bal_model_free(self->model);
    bal_str_free(self->exports);
    bal_str_free(self->folder);
}

/* ---- what is asked for --------------------------------------------------- */

static int check_engine(const bal_serving_options *serve, bal_error *err)
{
    if (!serve->engine)
        return 0;
    if (!bal_engine_find(serve->engine))
        return bal_fail(err, BAL_EINVAL, "no engine '%.80s'", serve->engine);
    if (serve->base || strcmp(serve->engine, GGUF_ENGINE) != 0)
        return 0;
    int rc = bal_fail(err, BAL_EINVAL,
                      "an adapter for llama.cpp has names that its base gives "
                      "it, and no base is given");
    return bal_hint(err, rc, "--base DIR");
}

/* A spec that is a ref gives the export its name. */
static int find_ref(exporting *self, bal_error *err)
{
    bal_id at;

    if (!bal_name_valid(self->spec) || bal_hex_valid(self->spec, BAL_ID_HEX))
        return 0;
    return bal_graph_ref(self->tenant->store->graph, self->tenant->number,
                         self->spec, &at, &self->is_ref, err);
}

/* What a model that is no adapter is called. */
static const char *const others[] = {
    [BAL_KIND_WEIGHTS] = "a whole model",
    [BAL_KIND_ADAPTER] = "an adapter",
    [BAL_KIND_DELTA] = "a delta",
    [BAL_KIND_VIEW] = "a view",
};

static int open_source(exporting *self, bal_error *err)
{
    int rc = bal_resolve(&self->id, self->tenant, self->spec, err);
    if (!rc)
        rc = find_ref(self, err);
    if (!rc)
        rc = bal_commit_open(&self->commit, self->tenant, &self->id, err);
    if (!rc)
        rc = bal_model_from_commit(&self->source, self->tenant, &self->id, err);
    if (rc)
        return rc;
    bal_kind kind = bal_model_facts(self->source)->kind;
    if (kind != BAL_KIND_ADAPTER)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "'%.200s' is %s: only adapters are served", self->spec,
                        others[kind]);
    return 0;
}

static int inside(const char *folder, const char *root, bal_error *err)
{
    int rc = bal_fail(err, BAL_EINVAL, "'%.400s' and the store '%.80s' %s",
                      folder, root, "lie in each other");

    return bal_hint(err, rc, "choose another place to write to");
}

static int find_place(exporting *self, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];
    char *root = NULL;
    int rc = bal_exports_place(&self->exports, self->tenant, self->options->dir,
                               err);
    if (rc)
        return rc;
    bal_id_hex(hex, &self->id);
    self->folder = bal_path_join(self->exports, hex);
    if (!self->folder)
        return bal_fail_memory(err, "an export");
    rc = bal_path_real(&root, self->tenant->store->root, err);
    if (!rc && (bal_path_holds(root, self->folder) ||
                bal_path_holds(self->folder, root)))
        rc = inside(self->folder, root, err);
    bal_str_free(root);
    return rc;
}

/* What was opened may have been taken back since. */
static int still(const exporting *self, bal_error *err)
{
    BAL_OWN(bal_model) again = NULL;

    return bal_model_from_commit(&again, self->tenant, &self->id, err);
}

/* ---- what the engine makes of it ------------------------------------------
 */

typedef struct hearing {
    const bal_export_options *options;
    bool enough; /* told wants no more */
    bool bad;
    char why[sizeof(((bal_error *)NULL)->text)]; /* of the first */
} hearing;

static bool is_bad(bal_outcome outcome)
{
    return outcome == BAL_OUTCOME_REFUSED || outcome == BAL_OUTCOME_WRONG ||
           outcome == BAL_OUTCOME_FATAL;
}

/* Whoever has heard enough does not end the search for what is bad. */
static int hear(void *ctx, const bal_preflight_row *row)
{
    hearing *self = ctx;

    if (is_bad(row->outcome) && !self->bad) {
        self->bad = true;
        snprintf(self->why, sizeof(self->why), "%s: %s", row->rule, row->text);
    }
    if (self->options->told && !self->enough)
        self->enough = self->options->told(self->options->ctx, row) != 0;
    return 0;
}

static int preflight(const exporting *self, bal_model *model, bal_error *err)
{
    hearing heard = { .options = self->options };

    if (!self->form.engine)
        return 0;
    int rc = bal_preflight(model, &self->options->serve, hear, &heard, err);
    if (!rc && heard.bad)
        rc = bal_fail(err, BAL_EUNSUPPORTED, "%s", heard.why);
    return rc;
}

static int adapt(exporting *self, bal_error *err)
{
    hearing heard = { .options = self->options };

    if (!self->form.adapted) {
        self->model = bal_model_ref(self->source);
        return 0;
    }
    return bal_lora_adapt(&self->model, self->source, &self->options->serve,
                          hear, &heard, err);
}

/* ---- a new one ------------------------------------------------------------
 */

static int write_gguf(const exporting *self, const char *dir, bal_error *err)
{
    if (!self->form.engine || strcmp(self->form.engine, GGUF_ENGINE) != 0)
        return 0;
    char *path = bal_path_join(dir, GGUF_NAME);
    if (!path)
        return bal_fail_memory(err, "an export");
    int rc = bal_gguf_write(path, self->model, self->options->serve.base, err);

    bal_str_free(path);
    return rc;
}

static int fill(exporting *self, const char *dir, bal_error *err)
{
    bal_work *work = self->tenant->store->work;
    const bal_write_options options = {
        .sources = &self->source,
        .source_count = 1,
    };
    int rc = bal_tenant_store_id(self->store, self->tenant, err);

    self->form.store = self->store;
    if (!rc)
        rc = bal_model_write(self->model, dir, &options, NULL, work, err);
    if (!rc)
        rc = write_gguf(self, dir, err);
    if (!rc)
        rc = bal_export_link(dir, self->exports, self->tenant->name, err);
    if (!rc)
        rc = bal_export_note(dir, bal_commit_provenance(self->commit),
                             &self->form, err);
    if (!rc)
        rc = bal_work_poll(work, err);
    return rc;
}

static int write_new(exporting *self, bal_error *err)
{
    BAL_LOCAL(bal_stage) stage = { .lock = -1 };
    int rc = self->model ? 0 : adapt(self, err);
    if (!rc)
        rc = preflight(self, self->model, err);
    if (!rc)
        rc = bal_stage_make(&stage, self->folder, err);
    if (!rc)
        rc = fill(self, stage.dir, err);
    if (!rc)
        rc = still(self, err);
    return rc ? rc : bal_stage_publish(&stage, 0, err);
}

/* ---- one that is there ----------------------------------------------------
 */

static int unload(bal_error *err, int rc)
{
    if (rc != BAL_ECORRUPT)
        return rc;
    return bal_hint(err, rc,
                    "unload it where it is loaded, remove the folder, and "
                    "export it again");
}

static int digest_gguf(bal_id *out, const char *dir, bal_error *err)
{
    uint64_t size = 0;
    char *path = bal_path_join(dir, GGUF_NAME);
    int rc = path ? bal_export_digest(out, &size, path, UINT64_MAX, err)
                  : bal_fail_memory(err, "an export");

    bal_str_free(path);
    return rc;
}

/* What a GGUF file holds is by the base, too: that of this one would be the
 * same. */
static int check_gguf(const exporting *self, bal_error *err)
{
    BAL_LOCAL(bal_stage) stage = { .lock = -1 };
    bal_id there;
    bal_id want;

    if (!self->form.engine || strcmp(self->form.engine, GGUF_ENGINE) != 0)
        return 0;
    int rc = bal_stage_make(&stage, self->folder, err);
    if (!rc)
        rc = write_gguf(self, stage.dir, err);
    if (!rc)
        rc = digest_gguf(&want, stage.dir, err);
    if (!rc)
        rc = digest_gguf(&there, self->folder, err);
    if (rc || bal_id_equal(&want, &there))
        return rc;
    rc = bal_fail(err, BAL_ECONFLICT, "'%.400s' was exported for another base",
                  self->folder);
    return bal_hint(err, rc, "export to another folder with -o");
}

static int reuse(exporting *self, bal_error *err)
{
    BAL_OWN(json_t) noted = NULL;
    int rc = bal_export_read(&noted, self->folder, self->tenant->name,
                             &self->id, err);
    if (!rc)
        rc = bal_export_fits(self->folder, noted, &self->form, err);
    if (!rc)
        rc = bal_export_verify(self->folder, noted, err);
    if (rc)
        return unload(err, rc);
    bal_model_free(BAL_TAKE(self->model));
    rc = bal_model_from_path(&self->model, self->folder, err);
    if (!rc)
        rc = preflight(self, self->model, err);
    if (!rc)
        rc = check_gguf(self, err);
    if (!rc)
        rc = still(self, err);
    self->reused = true;
    return rc;
}

static int note_any(void *ctx, const char *name, bal_error *err)
{
    (void)name;
    (void)err;
    *(bool *)ctx = true;
    return 0;
}

/* Is there something at the place? A link, or what is no folder, is in the way
 * of anything. */
static int look(bool *there, const exporting *self, bal_error *err)
{
    bal_path_type type = bal_export_type(self->folder);

    *there = false;
    if (type == BAL_PATH_ABSENT)
        return 0;
    if (type != BAL_PATH_DIR)
        return bal_fail(err, BAL_EEXISTS, "'%.400s' is there and is no folder",
                        self->folder);
    return bal_dir_each(self->folder, note_any, there, err);
}

/* Where another exporter is faster, its folder is looked at as any other. */
static int make(exporting *self, bal_error *err)
{
    bal_error why = { 0 };
    bool there = false;
    int rc = look(&there, self, err);
    if (rc)
        return rc;

    if (there)
        return reuse(self, err);
    int made = write_new(self, &why);
    if (made == BAL_EEXISTS)
        rc = look(&there, self, err);
    if (!rc && there)
        return reuse(self, err);
    if (made && err && !rc)
        *err = why;
    return rc ? rc : made;
}

/* ---- telling --------------------------------------------------------------
 */

static int tell(const exporting *self, bal_exported_fn *fn, void *ctx,
                bal_error *err)
{
    const bal_commit_info *commit = bal_commit_info_of(self->commit);
    const char *tenant = self->tenant->name;
    BAL_LOCAL(bal_buf) name = { 0 };
    char hex[BAL_ID_HEX + 1];
    int rc;

    bal_id_hex(hex, &self->id);
    if (self->is_ref)
        rc = bal_buf_format(&name, err, "%s-%s-%.8s", tenant, self->spec, hex);
    else
        rc = bal_buf_format(&name, err, "%s-%.12s", tenant, hex);
    if (rc)
        return rc;
    const bal_exported_info info = {
        .name = bal_buf_string(&name),
        .path = self->folder,
        .tenant = tenant,
        .ref = self->is_ref ? self->spec : NULL,
        .commit = self->id,
        .manifest = commit->manifest,
        .int_id = bal_id_serving(&self->id),
        .base_model = commit->base_model,
        .rank = bal_model_lora_rank(self->model),
        .reused = self->reused,
    };
    if (fn)
        fn(ctx, &info);
    return 0;
}

/* A commit that was forgotten while its folder appeared knew nothing of it, so
 * nobody else would take it away. */
static int note(const exporting *self, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];
    bal_error why = { 0 };
    int rc = bal_exported(self->tenant, &self->id, self->folder, err);

    if (rc != BAL_ENOTFOUND || self->reused ||
        bal_remove_tree(self->folder, &why))
        return rc;
    bal_id_hex(hex, &self->id);
    return bal_fail(err, rc, "commit '%.12s' was forgotten meanwhile", hex);
}

int bal_export(bal_tenant *tenant, const char *spec,
               const bal_export_options *options, bal_exported_fn *fn,
               void *ctx, bal_error *err)
{
    BAL_LOCAL(exporting)
    self = {
        .tenant = tenant,
        .spec = spec,
        .options = options,
        .form = { options->serve.engine,
                  options->serve.engine &&
                      (options->flags & BAL_EXPORT_ADAPT) },
    };
    int rc = check_engine(&options->serve, err);
    if (!rc)
        rc = open_source(&self, err);
    if (!rc)
        rc = find_place(&self, err);
    if (!rc)
        rc = make(&self, err);
    if (!rc)
        rc = note(&self, err);
    return rc ? rc : tell(&self, fn, ctx, err);
}
