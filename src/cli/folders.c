/* Folders that are written: is there one already, and is it as it should be? */
#include <dirent.h>
#include <errno.h>

#include "cli/cli.h"
#include "core/error.h"
#include "core/file.h"
#include "core/signals.h"

enum { PIECE = 4 * 1024 * 1024, PROVENANCE_MAX = 64 * 1024 * 1024 };

/* True if dir has an entry beside . and .. */
static bool has_entries(DIR *dir)
{
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return true;
    }
    return false;
}

int bal_cli_vacant(const char *path, bal_error *err)
{
    DIR *dir = opendir(path);

    if (!dir && errno == ENOENT)
        return 0;
    if (!dir && errno == ENOTDIR)
        return bal_fail(err, BAL_EEXISTS, "'%s' is not a folder", path);
    if (!dir)
        return bal_fail_errno(err, "opening '%s'", path);
    bool full = has_entries(dir);
    closedir(dir);
    if (!full)
        return 0;
    int rc = bal_fail(err, BAL_EEXISTS, "'%s' is there and not empty", path);
    return bal_hint(err, rc, "--force replaces it");
}

bool bal_cli_layout(const bal_tensor *entry)
{
    static const char index[] = ".safetensors.index.json";
    size_t len = strlen(entry->name);
    size_t tail = sizeof(index) - 1;

    return entry->part == BAL_PART_FILE && len >= tail &&
           !strcmp(entry->name + len - tail, index);
}

/* Two buffers to compare in. */
typedef struct pair {
    char *want;
    char *got;
} pair;

static int differs(const bal_tensor *tensor, const char *how, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "%s '%s' %s",
                    tensor->part == BAL_PART_TENSOR ? "tensor" : "file",
                    tensor->name, how);
}

static bool same_layout(const bal_tensor *a, const bal_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->size == b->size &&
           (!a->rank ||
            !memcmp(a->shape, b->shape, a->rank * sizeof(*a->shape)));
}

static int same_entry(bal_model *want, size_t i, bal_model *got,
                      const pair *pieces, bal_error *err)
{
    const bal_tensor *tensor = bal_model_at(want, i);
    size_t j = bal_model_find(got, tensor->part, tensor->name);

    if (j == BAL_NONE)
        return differs(tensor, "is missing", err);
    if (!same_layout(tensor, bal_model_at(got, j)))
        return differs(tensor, "has another dtype or shape", err);
    for (uint64_t at = 0; at < tensor->size; at += PIECE) {
        uint64_t left = tensor->size - at;
        size_t len = left < PIECE ? (size_t)left : PIECE;

        if (bal_signals_pending())
            return bal_fail(err, BAL_ECANCELLED, "interrupted");
        int rc = bal_model_read(want, i, at, pieces->want, len, err);
        if (rc)
            return rc;
        rc = bal_model_read(got, j, at, pieces->got, len, err);
        if (rc)
            return rc;
        if (memcmp(pieces->want, pieces->got, len) != 0)
            return differs(tensor, "has other bytes", err);
    }
    return 0;
}

int bal_cli_same(bal_model *want, bal_model *got, bal_error *err)
{
    BAL_LOCAL(bal_buf) room = { 0 };
    int rc = bal_buf_reserve(&room, 2 * (size_t)PIECE, err);
    if (rc)
        return rc;
    const pair pieces = { room.data, room.data + PIECE };

    for (size_t i = 0; i < bal_model_count(want); i++) {
        const bal_tensor *tensor = bal_model_at(want, i);
        bool file = tensor->part == BAL_PART_FILE &&
                    tensor->form == BAL_FORM_WHOLE && !bal_cli_layout(tensor);
        if (!file && !bal_cli_listed(tensor))
            continue;
        rc = same_entry(want, i, got, &pieces, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Does ballast.json in dir name the commit? */
static bool names_commit(const char *dir, const bal_id *commit)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(json_t) value = NULL;
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, commit);
    if (bal_buf_format(&path, NULL, "%s/ballast.json", dir) ||
        bal_file_slurp(&text, path.data, PROVENANCE_MAX, NULL) ||
        bal_json_parse(&value, bal_buf_string(&text), text.len, "ballast.json",
                       NULL))
        return false;
    const char *there = json_string_value(json_object_get(value, "commit"));
    return there && !strcmp(there, hex);
}

bool bal_cli_holds(const char *dir, const bal_id *commit, bal_model *model)
{
    BAL_OWN(bal_model) there = NULL;

    return names_commit(dir, commit) &&
           !bal_model_from_path(&there, dir, NULL) &&
           !bal_cli_same(model, there, NULL);
}
