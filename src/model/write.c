/* A model becomes a folder, complete or not at all.
 *
 * How it is laid out:
 *  - The HEADER entries say which safetensors files there are, and the order of
 *    the tensors in each. A header that still fits (the same tensors, of the
 *    same dtype and shape) is written as it was recorded, so that the file
 * comes out byte for byte.
 *  - Else one is made, with the same metadata and in the same order. Tensors
 * that are gone are left out, and a file that lost all of its; tensors that no
 *    header names go to the end of the last file.
 *  - The index is written as it was recorded, unless a header was made: then it
 *    is made too, with the totals as they are now.
 *  - Without HEADER entries, and for a delta, whose headers are not its own,
 * all goes into model.safetensors (adapter_model.safetensors for an adapter),
 * in the reference's order: dtypes of the widest alignment first, then by name.
 * A difference has its tensor's name, a residual `<name>.__residual__`; what is
 *    as in the base, or removed, is left out.
 *  - FILE entries lie at their path; ballast.json is the provenance.
 *
 * All of it is written and synced under a temporary name; see stage.c. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "model/index.h"
#include "model/path.h"
#include "model/plan.h"
#include "model/put.h"
#include "model/stage.h"

static const char provenance_name[] = "ballast.json";

/* The files to be put, and what they borrow from. */
typedef struct outlet {
    bal_plan plan;
    uint8_t (*lengths)[8]; /* of the plan's headers */
    size_t *sides;         /* entries of part FILE */
    bal_put_file *files;
    size_t count;
} outlet;

static void outlet_done(outlet *self)
{
    bal_plan_done(&self->plan);
    free(self->lengths);
    free(self->sides);
    free(self->files);
}

static void add_weights(outlet *self)
{
    for (size_t i = 0; i < self->plan.count; i++) {
        const bal_plan_file *from = &self->plan.files[i];
        bal_put64(self->lengths[i], from->json.len);
        self->files[self->count++] = (bal_put_file){
            .path = from->name,
            .head = { { self->lengths[i], 8 },
                      { from->json.data, from->json.len } },
            .entries = from->entries,
            .count = from->count,
        };
    }
}

static void add_text(outlet *self, const char *path, const char *text,
                     size_t len)
{
    self->files[self->count++] = (bal_put_file){
        .path = path,
        .head = { { text, len } },
    };
}

/* Side files come from commits too, and a commit may come from anyone. */
static int add_sides(outlet *self, const bal_model *model, bal_error *err)
{
    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        if (entry->part != BAL_PART_FILE || entry->form != BAL_FORM_WHOLE)
            continue;
        if (self->plan.drop_index && !strcmp(entry->name, BAL_INDEX_NAME))
            continue;
        if (!bal_side_name_valid(entry->name) ||
            !strcmp(entry->name, provenance_name))
            return bal_fail(err, BAL_ECORRUPT,
                            "'%.200s' is no name for a side file", entry->name);
        self->sides[i] = i;
        self->files[self->count++] = (bal_put_file){
            .path = entry->name,
            .entries = &self->sides[i],
            .count = 1,
        };
    }
    return 0;
}

static int fill(outlet *self, bal_model *model,
                const bal_write_options *options, bal_error *err)
{
    size_t count = bal_model_count(model);
    int rc = bal_plan_make(&self->plan, model, options->flags, err);
    if (rc)
        return rc;

    /* Two more: the index, and the provenance. */
    self->lengths = calloc(self->plan.count + 1, sizeof(*self->lengths));
    self->sides = calloc(count + 1, sizeof(*self->sides));
    self->files = calloc(self->plan.count + count + 2, sizeof(*self->files));
    if (!self->lengths || !self->sides || !self->files)
        return bal_fail_memory(err, "writing a model");
    add_weights(self);
    rc = add_sides(self, model, err);
    if (rc)
        return rc;
    if (self->plan.index.len)
        add_text(self, BAL_INDEX_NAME, self->plan.index.data,
                 self->plan.index.len);
    if (options->provenance)
        add_text(self, provenance_name, options->provenance,
                 strlen(options->provenance));
    return 0;
}

static bal_written count_written(const outlet *self, const bal_model *model)
{
    bal_written written = { 0 };

    for (size_t i = 0; i < self->plan.count; i++) {
        const bal_plan_file *file = &self->plan.files[i];
        written.tensors += file->count;
        for (size_t k = 0; k < file->count; k++)
            written.bytes += bal_model_at(model, file->entries[k])->size;
    }
    return written;
}

/* ---- where to ----------------------------------------------------------- */

static int check_apart(const char *real, const char *out, const char *avoid,
                       bal_error *err)
{
    char *other = NULL;
    int rc = bal_path_real(&other, avoid, err);
    if (rc)
        return rc;

    if (!strcmp(real, other))
        rc = bal_fail(err, BAL_EINVAL, "'%s' is '%s', which is read", out,
                      avoid);
    else if (bal_path_holds(other, real))
        rc = bal_fail(err, BAL_EINVAL, "'%s' lies inside '%s'", out, avoid);
    else if (bal_path_holds(real, other))
        rc = bal_fail(err, BAL_EINVAL, "'%s' holds '%s'", out, avoid);
    bal_str_free(other);
    return rc ? bal_hint(err, rc, "choose another place to write to") : 0;
}

static int check_place(const char *real, const char *out,
                       const bal_write_options *options, bal_error *err)
{
    if (!strcmp(real, "/"))
        return bal_fail(err, BAL_EINVAL, "'%s' is the root of all files", out);
    for (size_t i = 0; i < options->avoid_count; i++) {
        int rc = check_apart(real, out, options->avoid[i], err);
        if (rc)
            return rc;
    }
    return bal_stage_check(real, options->flags, err);
}

/* ---- whether still ------------------------------------------------------ */

/* The least that can be read of a model: eight elements of its first entry that
 * has bytes. One that was taken back meanwhile does not let go of them. */
static int ask(bal_model *model, bal_error *err)
{
    uint8_t least[64];

    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        size_t len = bal_min(entry->size, bal_dtype_bits(entry->dtype));
        if (entry->size)
            return bal_model_read(model, i, 0, least,
                                  bal_min(len, sizeof(least)), err);
    }
    return 0;
}

static int ask_all(bal_model *self, const bal_write_options *options,
                   bal_error *err)
{
    int rc = options->source_count ? 0 : ask(self, err);

    for (size_t i = 0; i < options->source_count && !rc; i++)
        rc = ask(options->sources[i], err);
    return rc;
}

static int write_to(bal_model *self, const char *real,
                    const bal_write_options *options, bal_written *written,
                    bal_work *work, bal_error *err)
{
    BAL_LOCAL(outlet) what = { 0 };
    BAL_LOCAL(bal_stage) stage = { .lock = -1 };
    int rc = fill(&what, self, options, err);
    if (!rc)
        rc = bal_stage_make(&stage, real, err);
    if (!rc)
        rc = bal_put_files(stage.dir, what.files, what.count, self, work, err);
    if (!rc)
        rc = bal_work_poll(work, err);
    if (!rc)
        rc = ask_all(self, options, err);
    if (!rc)
        rc = bal_stage_publish(&stage, options->flags, err);
    if (!rc && written)
        *written = count_written(&what, self);
    return rc;
}

int bal_model_write(bal_model *self, const char *out,
                    const bal_write_options *options, bal_written *written,
                    bal_work *work, bal_error *err)
{
    static const bal_write_options defaults = { 0 };
    char *real = NULL;
    int rc = bal_path_real(&real, out, err);
    if (rc)
        return rc;

    if (!options)
        options = &defaults;
    rc = check_place(real, out, options, err);
    if (!rc)
        rc = write_to(self, real, options, written, work, err);
    bal_str_free(real);
    return rc;
}
