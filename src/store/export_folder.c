/* The files of an export, and what ballast.json says of them. An engine reads
 * whatever lies in a folder that it is given, and maps it for as long as it
 * serves it: so everything in it is told with its digest, a link is never
 * followed, and what is there is looked at before it is used again. */
#include "store/export_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"

#define NOTE     "ballast.json"
#define NOTE_MAX ((size_t)64 << 20)

enum { PIECE = 1 << 20 };

/* ---- places ------------------------------------------------------------- */

bal_path_type bal_export_type(const char *path)
{
    struct stat info;

    if (lstat(path, &info))
        return errno == ENOENT || errno == ENOTDIR ? BAL_PATH_ABSENT
                                                   : BAL_PATH_OTHER;
    return S_ISDIR(info.st_mode) ? BAL_PATH_DIR : BAL_PATH_OTHER;
}

int bal_exports_place(char **out, const bal_tenant *tenant, const char *dir,
                      bal_error *err)
{
    char *real = NULL;
    int rc = dir[0] ? bal_path_real(&real, dir, err)
                    : bal_fail(err, BAL_EINVAL, "'' is no folder");
    if (rc)
        return rc;

    char *path = bal_path_join(real, tenant->name);
    bal_str_free(real);
    if (!path)
        return bal_fail_memory(err, "an export");
    if (bal_export_type(path) == BAL_PATH_OTHER) {
        rc = bal_fail(err, BAL_EINVAL, "'%.400s' is there and is no folder",
                      path);
        bal_str_free(path);
        return rc;
    }
    *out = path;
    return 0;
}

/* ---- files -------------------------------------------------------------- */

typedef struct file_names {
    bal_buf list; /* of const char * */
    bal_arena arena;
} file_names;

static void file_names_done(file_names *self)
{
    bal_buf_done(&self->list);
    bal_arena_done(&self->arena);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int add_name(file_names *self, const FTSENT *entry, size_t skip,
                    bal_error *err)
{
    switch (entry->fts_info) {
    case FTS_D:
    case FTS_DP:
        return 0;
    case FTS_F:
        break;
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        errno = entry->fts_errno;
        return bal_fail_errno(err, "reading '%s'", entry->fts_path);
    default:
        return bal_fail(err, BAL_ECORRUPT, "'%.400s' is no file",
                        entry->fts_path);
    }
    const char *name = entry->fts_path + skip;
    const char *copy = bal_arena_copy(&self->arena, name, strlen(name));
    if (!copy)
        return bal_fail_memory(err, "listing a folder");
    return bal_buf_append(&self->list, &copy, sizeof(copy), err);
}

static int list_files(file_names *self, const char *folder, bal_error *err)
{
    BAL_LOCAL(bal_buf) copy = { 0 };
    int rc = bal_buf_text(&copy, folder, err);
    if (rc)
        return rc;
    char *roots[] = { copy.data, NULL };
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!walk)
        return bal_fail_errno(err, "reading '%s'", folder);

    errno = 0;
    for (FTSENT *entry = fts_read(walk); entry && !rc; entry = fts_read(walk)) {
        rc = add_name(self, entry, copy.len + 1, err);
        if (rc)
            break;
        errno = 0;
    }
    if (!rc && errno)
        rc = bal_fail_errno(err, "reading '%s'", folder);
    fts_close(walk);
    return rc;
}

int bal_export_files(const char *folder, bal_dir_fn *fn, void *ctx,
                     bal_error *err)
{
    BAL_LOCAL(file_names) all = { { 0 } };
    int rc = list_files(&all, folder, err);
    size_t count = all.list.len / sizeof(char *);
    const char **list = (const char **)(void *)all.list.data;

    if (!rc && count)
        qsort(list, count, sizeof(*list), compare_names);
    for (size_t i = 0; i < count && !rc; i++)
        rc = fn(ctx, list[i], err);
    return rc;
}

/* ---- digests ------------------------------------------------------------ */

static int hash_all(bal_id *out, int fd, uint64_t size, const char *path,
                    bal_error *err)
{
    uint8_t *piece = bal_pages(PIECE);
    bal_hash hash;
    uint64_t at = 0;
    ssize_t got = 1;

    if (!piece)
        return bal_fail_memory(err, "reading a file");
    bal_hash_init(&hash);
    while (got > 0) {
        got = read(fd, piece, PIECE);
        if (got < 0 && errno == EINTR) {
            got = 1;
            continue;
        }
        if (got > 0) {
            bal_hash_add(&hash, piece, (size_t)got);
            at += (uint64_t)got;
        }
    }
    int rc = got < 0 ? bal_fail_errno(err, "reading '%s'", path) : 0;
    free(piece);
    if (!rc && at != size)
        rc = bal_fail(err, BAL_ECORRUPT, "'%.400s' changed while it was read",
                      path);
    bal_hash_end(&hash, out);
    return rc;
}

int bal_export_digest(bal_id *out, uint64_t *size, const char *path,
                      uint64_t expect, bal_error *err)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    int rc = 0;

    if (fd < 0 && errno == ELOOP)
        return bal_fail(err, BAL_ECORRUPT, "'%.400s' is a link", path);
    if (fd < 0)
        return bal_fail_errno(err, "opening '%s'", path);
    if (fstat(fd, &info))
        rc = bal_fail_errno(err, "reading '%s'", path);
    else if (!S_ISREG(info.st_mode))
        rc = bal_fail(err, BAL_ECORRUPT, "'%.400s' is no file", path);
    else if (expect != UINT64_MAX && (uint64_t)info.st_size != expect)
        rc = bal_fail(err, BAL_ECORRUPT, "'%.400s' is not as it was written",
                      path);
    if (!rc)
        rc = hash_all(out, fd, (uint64_t)info.st_size, path, err);
    if (!rc)
        *size = (uint64_t)info.st_size;
    close(fd);
    return rc;
}

/* ---- writing ballast.json ------------------------------------------------ */

typedef struct noting {
    const char *folder;
    bal_json json;
} noting;

static int note_file(void *ctx, const char *name, bal_error *err)
{
    noting *self = ctx;
    bal_id id;
    uint64_t size = 0;
    char *path = bal_path_join(self->folder, name);
    if (!path)
        return bal_fail_memory(err, "an export");
    int rc = bal_export_digest(&id, &size, path, UINT64_MAX, err);
    char hex[BAL_ID_HEX + 1];

    bal_str_free(path);
    if (rc)
        return rc;
    bal_id_hex(hex, &id);
    bal_json_key(&self->json, name);
    bal_json_object(&self->json);
    bal_json_key(&self->json, "blake3");
    bal_json_string(&self->json, hex);
    bal_json_key(&self->json, "bytes");
    bal_json_u64(&self->json, size);
    bal_json_close(&self->json);
    return 0;
}

int bal_export_note(const char *folder, const char *provenance,
                    const bal_export_form *form, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    noting self = { .folder = folder };

    bal_json_begin(&self.json, &text, 2);
    bal_json_object(&self.json);
    bal_json_members(&self.json, provenance);
    bal_json_key(&self.json, "export");
    bal_json_object(&self.json);
    bal_json_key(&self.json, "schema");
    bal_json_string(&self.json, BAL_EXPORT_SCHEMA);
    bal_json_key(&self.json, "store");
    bal_json_string(&self.json, form->store);
    bal_json_key(&self.json, "for");
    bal_json_string(&self.json, form->engine);
    bal_json_key(&self.json, "adapted");
    bal_json_bool(&self.json, form->adapted);
    bal_json_key(&self.json, "files");
    bal_json_object(&self.json);
    int rc = bal_export_files(folder, note_file, &self, err);
    bal_json_close(&self.json);
    bal_json_close(&self.json);
    bal_json_close(&self.json);
    if (!rc)
        rc = bal_json_end(&self.json, err);
    if (!rc)
        rc = bal_buf_text(&text, "\n", err);
    if (rc)
        return rc;
    char *path = bal_path_join(folder, NOTE);
    if (!path)
        return bal_fail_memory(err, "an export");
    rc = bal_file_replace(path, text.data, text.len, err);
    bal_str_free(path);
    return rc;
}

/* ---- reading ballast.json ------------------------------------------------ */

static bool says(const json_t *object, const char *key, const char *want)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text && !strcmp(text, want);
}

static int slurp(bal_buf *out, const char *folder, bal_error *err)
{
    char *path = bal_path_join(folder, NOTE);
    if (!path)
        return bal_fail_memory(err, "an export");
    struct stat info;
    bool plain = !lstat(path, &info) && S_ISREG(info.st_mode);
    int rc = plain
                 ? bal_file_slurp(out, path, NOTE_MAX, err)
                 : bal_fail(err, BAL_ECORRUPT, "'%.400s' has no " NOTE, folder);

    bal_str_free(path);
    return rc;
}

int bal_export_read(json_t **out, const char *folder, const char *tenant,
                    const bal_id *commit, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(json_t) json = NULL;
    char hex[BAL_ID_HEX + 1];
    int rc = slurp(&text, folder, err);
    if (!rc)
        rc = bal_json_parse(&json, bal_buf_string(&text), text.len, NOTE, err);
    if (rc)
        return rc;

    const json_t *export = json_object_get(json, "export");
    bal_id_hex(hex, commit);
    if (!says(export, "schema", BAL_EXPORT_SCHEMA) ||
        !json_is_object(json_object_get(export, "files")))
        return bal_fail(err, BAL_ECORRUPT,
                        "'%.400s' is no export of this version", folder);
    if (!says(json, "commit", hex) || !says(json, "tenant", tenant))
        return bal_fail(err, BAL_ECORRUPT,
                        "'%.400s' has the " NOTE " of something else", folder);
    *out = BAL_TAKE(json);
    return 0;
}

int bal_export_is_of(const char *folder, const json_t *noted, const char *store,
                     bal_error *err)
{
    if (says(json_object_get(noted, "export"), "store", store))
        return 0;
    return bal_fail(err, BAL_ECONFLICT, "'%.400s' is of another store", folder);
}

static const json_t *files_of(const json_t *noted)
{
    return json_object_get(json_object_get(noted, "export"), "files");
}

/* False: what stands there is none. */
static bool read_row(const json_t *row, bal_id *id, uint64_t *size)
{
    const char *hex = json_string_value(json_object_get(row, "blake3"));
    const json_t *bytes = json_object_get(row, "bytes");

    if (!hex || bal_id_parse(id, hex, NULL) || !json_is_integer(bytes) ||
        json_integer_value(bytes) < 0)
        return false;
    *size = (uint64_t)json_integer_value(bytes);
    return true;
}

typedef struct verifying {
    const char *folder;
    const json_t *files;
} verifying;

static int verify_file(void *ctx, const char *name, bal_error *err)
{
    const verifying *self = ctx;
    bal_id want;
    bal_id got;
    uint64_t bytes = 0, size = 0;
    const json_t *row = json_object_get(self->files, name);

    if (!strcmp(name, NOTE))
        return 0;
    char *path = bal_path_join(self->folder, name);
    if (!path)
        return bal_fail_memory(err, "an export");
    int rc = 0;
    if (!row)
        rc = bal_fail(err, BAL_ECORRUPT, "'%.400s' is not of the export", path);
    else if (!read_row(row, &want, &bytes))
        rc = bal_fail(err, BAL_ECORRUPT, "'%.400s' has no digest in " NOTE,
                      path);
    if (!rc)
        rc = bal_export_digest(&got, &size, path, bytes, err);
    if (!rc && !bal_id_equal(&want, &got))
        rc = bal_fail(err, BAL_ECORRUPT, "'%.400s' is not as it was written",
                      path);
    bal_str_free(path);
    return rc;
}

/* ECORRUPT unless there is such a file. */
static int find_file(const char *folder, const char *name, bal_error *err)
{
    struct stat info;
    char *path = bal_path_join(folder, name);
    if (!path)
        return bal_fail_memory(err, "an export");
    bool there = !lstat(path, &info);
    bool plain = there && S_ISREG(info.st_mode);

    bal_str_free(path);
    if (plain)
        return 0;
    return bal_fail(err, BAL_ECORRUPT, "'%.300s/%.100s' is %s", folder, name,
                    there ? "no file" : "missing");
}

int bal_export_verify(const char *folder, const json_t *noted, bal_error *err)
{
    json_t *files = (json_t *)(uintptr_t)files_of(noted);
    verifying self = { .folder = folder, .files = files };
    const char *name;
    json_t *row;

    json_object_foreach(files, name, row)
    {
        int rc = find_file(folder, name, err);
        if (rc)
            return rc;
    }
    return bal_export_files(folder, verify_file, &self, err);
}

int bal_export_fits(const char *folder, const json_t *noted,
                    const bal_export_form *form, bal_error *err)
{
    const json_t *export = json_object_get(noted, "export");
    const char *engine = json_string_value(json_object_get(export, "for"));
    bool adapted = json_is_true(json_object_get(export, "adapted"));
    bool same = engine && form->engine ? !strcmp(engine, form->engine)
                                       : !engine && !form->engine;

    if (same && adapted == form->adapted)
        return 0;
    int rc = bal_fail(err, BAL_ECONFLICT, "'%.400s' was exported for %.40s%s",
                      folder, engine ? engine : "no engine",
                      adapted ? ", adapted" : "");
    return bal_hint(err, rc, "export to another folder with -o");
}
