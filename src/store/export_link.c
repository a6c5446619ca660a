/* Equal files of a tenant's exports are one file with several names. What a
 * name leads to is read before it is taken: a ballast.json beside it may be as
 * old as the change to the file. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/map.h"
#include "core/str.h"
#include "model/path.h"
#include "store/export_folder.h"

enum { KEY_ROOM = BAL_ID_HEX + 32 };

/* The files of the other folders, by digest and size. */
typedef struct siblings {
    const char *exports;
    const char *tenant;
    bal_map map;   /* key to a place in paths */
    bal_buf paths; /* of const char * */
    bal_arena arena;
} siblings;

static void siblings_done(siblings *self)
{
    bal_map_done(&self->map);
    bal_buf_done(&self->paths);
    bal_arena_done(&self->arena);
}

static int add_path(siblings *self, const char *key, const char *folder,
                    const char *name, bal_error *err)
{
    char *path = bal_path_join(folder, name);
    char *kept = path ? bal_arena_copy(&self->arena, path, strlen(path)) : NULL;
    char *word = bal_arena_copy(&self->arena, key, strlen(key));
    size_t place = self->paths.len / sizeof(char *);
    bool there = false;

    bal_str_free(path);
    if (!kept || !word)
        return bal_fail_memory(err, "an export");
    int rc = bal_map_add(&self->map, word, strlen(word), &place, &there, err);
    if (rc || there)
        return rc;
    return bal_buf_append(&self->paths, &kept, sizeof(kept), err);
}

static int add_files(siblings *self, const char *folder, const json_t *noted,
                     bal_error *err)
{
    json_t *files = json_object_get(json_object_get(noted, "export"), "files");
    char key[KEY_ROOM];
    const char *name;
    json_t *row;
    int rc = 0;

    json_object_foreach(files, name, row)
    {
        const char *hex = json_string_value(json_object_get(row, "blake3"));
        json_int_t bytes = json_integer_value(json_object_get(row, "bytes"));
        if (!hex || !bal_hex_valid(hex, BAL_ID_HEX) ||
            !bal_side_name_valid(name))
            continue;
        snprintf(key, sizeof(key), "%s:%lld", hex, (long long)bytes);
        rc = add_path(self, key, folder, name, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* What is no export of ours is passed over. */
static int add_sibling(void *ctx, const char *name, bal_error *err)
{
    siblings *self = ctx;
    BAL_OWN(json_t) noted = NULL;
    bal_id id;

    if (!bal_hex_valid(name, BAL_ID_HEX) || bal_id_parse(&id, name, NULL))
        return 0;
    char *folder = bal_path_join(self->exports, name);
    if (!folder)
        return bal_fail_memory(err, "an export");
    int rc = 0;
    if (bal_export_type(folder) == BAL_PATH_DIR &&
        !bal_export_read(&noted, folder, self->tenant, &id, NULL))
        rc = add_files(self, folder, noted, err);
    bal_str_free(folder);
    return rc;
}

/* A second name of `from`, in the place of an equal file. */
static void take_place(const char *from, const char *path, const bal_id *want,
                       uint64_t bytes)
{
    BAL_LOCAL(bal_buf) beside = { 0 };
    bal_id id;
    uint64_t size = 0;

    if (bal_buf_format(&beside, NULL, "%s.link", path) ||
        link(from, beside.data))
        return;
    if (bal_export_digest(&id, &size, beside.data, bytes, NULL) ||
        !bal_id_equal(&id, want) || rename(beside.data, path))
        unlink(beside.data);
}

typedef struct linking {
    const char *made;
    siblings *from;
} linking;

static int link_file(void *ctx, const char *name, bal_error *err)
{
    const linking *self = ctx;
    char hex[BAL_ID_HEX + 1], key[KEY_ROOM];
    bal_id id;
    uint64_t size = 0;
    char *path = bal_path_join(self->made, name);
    if (!path)
        return bal_fail_memory(err, "an export");
    int rc = bal_export_digest(&id, &size, path, UINT64_MAX, err);

    bal_id_hex(hex, &id);
    snprintf(key, sizeof(key), "%s:%llu", hex, (unsigned long long)size);
    size_t place =
        rc ? BAL_NONE : bal_map_find(&self->from->map, key, strlen(key));
    if (place != BAL_NONE) {
        const char **paths = (const char **)(void *)self->from->paths.data;
        take_place(paths[place], path, &id, size);
    }
    bal_str_free(path);
    return rc;
}

int bal_export_link(const char *made, const char *exports, const char *tenant,
                    bal_error *err)
{
    BAL_LOCAL(siblings) from = { .exports = exports, .tenant = tenant };
    linking self = { made, &from };
    int rc = bal_dir_each(exports, add_sibling, &from, err);

    if (rc || !from.paths.len)
        return rc;
    return bal_export_files(made, link_file, &self, err);
}
