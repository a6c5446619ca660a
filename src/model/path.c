/* A path becomes a model: the weights that pick.c chose, then everything else
 * in the folder by the rows of side.c, then the index held against what the
 * shards really have. */
#include "model/path.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "model/facts.h"
#include "model/folder.h"
#include "model/pick.h"

enum { WARNINGS = 20 };

static const char templates[] = "additional_chat_templates";

/* ---- the index against the shards --------------------------------------- */

/* Every tensor that the index maps is in its shard. */
static int check_mapped(const bal_folder *self, const bal_pick *pick,
                        const char *dir, bal_error *err)
{
    BAL_LOCAL(bal_buf) names = { 0 };
    size_t missing = 0;
    int rc = 0;

    for (size_t i = 0; i < pick->index.count && !rc; i++) {
        const bal_index_row *row = &pick->index.rows[i];
        size_t at = bal_model_find(&self->base, BAL_PART_TENSOR, row->tensor);
        const char *file = at == BAL_NONE ? NULL : bal_folder_file_of(self, at);
        if (file && strcmp(file, row->file) != 0)
            return bal_fail(err, BAL_ECORRUPT,
                            "'%s': tensor '%.100s' is in '%s', but %s maps it "
                            "to '%s'",
                            dir, row->tensor, file, BAL_INDEX_NAME, row->file);
        if (!file)
            rc = bal_name_some(&names, missing++, row->tensor, err);
    }
    if (rc || !missing)
        return rc;
    return bal_fail(err, BAL_ECORRUPT,
                    "'%s': %zu tensor%s that %s maps %s not in the shards: %s",
                    dir, missing, missing == 1 ? "" : "s", BAL_INDEX_NAME,
                    missing == 1 ? "is" : "are", bal_buf_string(&names));
}

/* Tensors that it does not map, and its total: loaders take no notice. */
static void warn_unmapped(const bal_folder *self, const bal_pick *pick)
{
    const bal_model *model = &self->base;
    uint64_t total = 0;
    size_t unmapped = 0;

    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        if (entry->part != BAL_PART_TENSOR)
            break;
        total += entry->size;
        if (bal_index_find(&pick->index, entry->name))
            continue;
        if (unmapped++ < WARNINGS)
            bal_warn("model", "unmapped=%.200s file=%s", entry->name,
                     bal_folder_file_of(self, i));
    }
    if (unmapped > WARNINGS)
        bal_warn("model", "unmapped-in-all=%zu", unmapped);
    if (pick->index.has_total && pick->index.total != total)
        bal_warn("model", "total_size=%" PRIu64 " tensors=%" PRIu64,
                 pick->index.total, total);
}

/* ---- side files --------------------------------------------------------- */

static void pass_over(const char *path, const char *why)
{
    bal_warn("model", "passed-over=%s why=\"%s\"", path, why);
}

static bool is_real_dir(const char *path)
{
    struct stat info;

    return !lstat(path, &info) && S_ISDIR(info.st_mode);
}

/* NULL: it comes along. "": passed over, and nothing to say about it. */
static const char *reason(const bal_pick *pick, const char *name)
{
    if (!strcmp(name, "ballast.json"))
        return "";
    if (name[0] == '.' && !bal_side_limit(name))
        return "hidden";
    if (!strcmp(name, BAL_INDEX_NAME) && !pick->indexed)
        return "an index of other files";
    if (bal_glob("*.safetensors", name))
        return pick->indexed ? "not in the index" : "not part of the model";
    if (!bal_side_name_valid(name))
        return "a name that is not portable";
    return bal_side_limit(name) ? NULL : "weights of another format";
}

static int add_side(bal_folder *self, const char *path, const char *name,
                    bal_error *err)
{
    struct stat info;
    uint64_t limit = bal_side_limit(name);

    if (!limit || (!stat(path, &info) && S_ISREG(info.st_mode) &&
                   (uint64_t)info.st_size > limit)) {
        pass_over(path, limit ? "large, and not known" : "not known");
        return 0;
    }
    return bal_folder_side(self, path, name, err);
}

typedef struct below {
    bal_folder *self;
    const char *dir;
} below;

static int add_template(void *ctx, const char *name, bal_error *err)
{
    const below *in = ctx;
    BAL_LOCAL(bal_buf) inside = { 0 };
    int rc = bal_buf_format(&inside, err, "%s/%s", templates, name);
    if (rc)
        return rc;

    char *path = bal_path_join(in->dir, inside.data);
    if (!path)
        return bal_fail_memory(err, "reading a folder");
    rc = add_side(in->self, path, inside.data, err);
    bal_str_free(path);
    return rc;
}

static int add_dir(bal_folder *self, const char *dir, const char *path,
                   const char *name, bal_error *err)
{
    below in = { self, dir };

    if (!strcmp(name, templates) && is_real_dir(path))
        return bal_dir_each(path, add_template, &in, err);
    pass_over(path, "a folder");
    return 0;
}

static int add_other(bal_folder *self, const bal_pick *pick, const char *dir,
                     const char *name, bal_error *err)
{
    char *path = bal_path_join(dir, name);
    if (!path)
        return bal_fail_memory(err, "reading a folder");

    const char *why = reason(pick, name);
    int rc = 0;
    if (bal_path_type_of(path) == BAL_PATH_DIR)
        rc = add_dir(self, dir, path, name, err);
    else if (!why)
        rc = add_side(self, path, name, err);
    else if (why[0])
        pass_over(path, why);
    bal_str_free(path);
    return rc;
}

/* ---- folders and files -------------------------------------------------- */

static int add_weights(bal_folder *self, const bal_pick *pick, const char *dir,
                       bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < pick->count && !rc; i++) {
        char *path = bal_path_join(dir, pick->files[i]);
        if (!path)
            return bal_fail_memory(err, "reading a folder");
        rc = bal_folder_weights(self, path, pick->files[i], err);
        bal_str_free(path);
    }
    return rc;
}

static int from_folder(bal_folder *self, const char *dir, bal_error *err)
{
    BAL_LOCAL(bal_listing) list = { 0 };
    BAL_LOCAL(bal_pick) pick = { 0 };
    int rc = bal_listing_read(&list, dir, err);
    if (!rc)
        rc = bal_pick_weights(&pick, &list, err);
    if (!rc)
        rc = add_weights(self, &pick, dir, err);
    for (size_t i = 0; i < list.count && !rc; i++) {
        if (!bal_pick_has(&pick, list.names[i]))
            rc = add_other(self, &pick, dir, list.names[i], err);
    }
    if (!rc)
        rc = bal_model_ready(&self->base, err);
    if (!rc && pick.indexed)
        rc = check_mapped(self, &pick, dir, err);
    if (rc)
        return rc;
    if (pick.indexed)
        warn_unmapped(self, &pick);
    unsigned flags = (pick.adapter ? BAL_FACTS_ADAPTER : 0u) |
                     (pick.count == 1 ? BAL_FACTS_ALONE : 0u);
    return bal_folder_facts(self, dir, dir, flags, err);
}

static int from_file(bal_folder *self, const char *path, bal_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    if (!bal_shard_name_valid(name))
        name = "model.safetensors";
    int rc = bal_folder_weights(self, path, name, err);
    if (!rc)
        rc = bal_model_ready(&self->base, err);
    if (rc)
        return rc;
    return bal_folder_facts(self, path, NULL, BAL_FACTS_ALONE, err);
}

static int missing(bal_folder *self, const char *path, bal_error *err)
{
    (void)self;
    return bal_fail(err, BAL_ENOTFOUND, "no file or folder '%s'", path);
}

static int refuse(bal_folder *self, const char *path, bal_error *err)
{
    (void)self;
    return bal_fail(err, BAL_EINVAL, "'%s' is neither a file nor a folder",
                    path);
}

static int (*const openers[])(bal_folder *self, const char *path,
                              bal_error *err) = {
    [BAL_PATH_ABSENT] = missing,
    [BAL_PATH_FILE] = from_file,
    [BAL_PATH_DIR] = from_folder,
    [BAL_PATH_OTHER] = refuse,
};

int bal_model_from_path(bal_model **out, const char *path, bal_error *err)
{
    bal_folder *folder = bal_folder_new();
    if (!folder)
        return bal_fail_memory(err, "reading a model");
    BAL_OWN(bal_model) self = &folder->base;

    int rc = openers[bal_path_type_of(path)](folder, path, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}
