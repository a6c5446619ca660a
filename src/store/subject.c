/* Opening a commit's model for who asks it. */
#include "store/subject.h"

#include "core/error.h"
#include "core/file.h"
#include "core/str.h"

void bal_subject_done(bal_subject *self)
{
    bal_model_free(self->model);
    bal_model_free(self->base);
    bal_model_free(self->change);
    bal_stage_done(&self->stage);
    bal_str_free(self->base_folder);
    *self = (bal_subject){ .stage = { .lock = -1 } };
}

int bal_asking_lock(bal_lock **out, const bal_store *store,
                    enum bal_lock_mode mode, bal_error *err)
{
    bal_error why = { 0 };
    char *path = bal_path_join(store->root, "asking.lock");
    int rc = path ? bal_lock_take(out, path, mode, store->wait, &why)
                  : bal_fail_memory(&why, "asking");

    bal_str_free(path);
    if (!rc)
        return 0;
    if (rc != BAL_EBUSY)
        return bal_fail(err, rc, "%s", why.text);
    return bal_hint(err,
                    bal_fail(err, rc,
                             "a model is being asked: what is forgotten may be "
                             "in its hands"),
                    "wait for 'ballast fingerprint' or 'bisect', or end it");
}

static int open_base(bal_subject *self, const bal_ask_options *options,
                     bal_error *err)
{
    if (options->base_model) {
        self->base = bal_model_ref(options->base_model);
        return 0;
    }
    if (!options->base)
        return bal_fail(err, BAL_EINVAL,
                        "a delta answers with its base under it (--base)");
    return bal_model_from_path(&self->base, options->base, err);
}

static int stand(bal_subject *self, const bal_ask_options *options,
                 bal_work *work, bal_error *err)
{
    int rc = open_base(self, options, err);

    return rc ? rc
              : bal_model_plus(&self->model, self->base, self->change, 0, work,
                               err);
}

static int place_base(bal_subject *self, const bal_ask_options *options,
                      bal_work *work, bal_error *err)
{
    if (options->base)
        return bal_path_real(&self->base_folder, options->base, err);
    if (!options->base_model)
        return 0;
    self->base_folder = bal_path_join(self->stage.dir, "base");
    return self->base_folder
               ? bal_model_write(options->base_model, self->base_folder, NULL,
                                 NULL, work, err)
               : bal_fail_memory(err, "asking");
}

static int make_scratch(bal_subject *self, const bal_store *store,
                        bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    char *root = NULL;
    int rc = bal_path_real(&root, store->root, err);

    if (!rc)
        rc = bal_buf_format(&path, err, "%s/asking", root);
    bal_str_free(root);
    return rc ? rc : bal_stage_make(&self->stage, bal_buf_string(&path), err);
}

int bal_subject_open(bal_subject *out, bal_tenant *tenant, const bal_id *commit,
                     const bal_ask_options *options, unsigned wants,
                     bal_error *err)
{
    bal_work *work = tenant->store->work;
    int rc = bal_model_from_commit(&out->change, tenant, commit, err);
    if (rc)
        return rc;

    bool delta = bal_model_facts(out->change)->kind == BAL_KIND_DELTA;
    if (delta && wants & BAL_WANTS_MODEL)
        rc = stand(out, options, work, err);
    else
        out->model = bal_model_ref(out->change);
    if (rc || !(wants & BAL_WANTS_FOLDER))
        return rc;
    rc = make_scratch(out, tenant->store, err);
    return rc ? rc : place_base(out, options, work, err);
}
