/* The order in which loaders look: an adapter by its config, the one file of
 * the usual name, the index, and then whatever safetensors are there. What lies
 * beside (an older save's shards, Mistral's consolidated copy of the same
 * tensors) would give names twice, so it is passed over and said so. */
#include "model/pick.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "core/room.h"
#include "core/str.h"

enum { NAMES_MAX = 1 << 17, NAMED = 6 };

static const char adapter_config[] = "adapter_config.json";
static const char single_weights[] = "model.safetensors";
static const char adapter_weights[] = "adapter_model.safetensors";

/* Weights that are not safetensors, to be told from no model at all. */
static const char *const foreign[] = {
    "*.bin", "*.pt", "*.pth", "*.ckpt", "*.gguf", "*.h5", "*.msgpack",
};

/* ---- the listing -------------------------------------------------------- */

static int add_name(void *ctx, const char *name, bal_error *err)
{
    bal_listing *self = ctx;
    size_t value = self->count;
    bool there = false;

    if (self->count == NAMES_MAX)
        return bal_fail(err, BAL_EINVAL, "'%s' holds more than %d names",
                        self->dir, NAMES_MAX);
    const char **names =
        bal_room_for_one(self->names, self->count, &self->room, sizeof(*names));
    if (!names)
        return bal_fail_memory(err, "listing a folder");
    self->names = names;
    const char *copy = bal_arena_copy(&self->arena, name, strlen(name));
    if (!copy)
        return bal_fail_memory(err, "listing a folder");
    self->names[self->count++] = copy;
    return bal_map_add(&self->map, copy, strlen(copy), &value, &there, err);
}

int bal_listing_read(bal_listing *out, const char *dir, bal_error *err)
{
    BAL_LOCAL(bal_listing) list = { .dir = dir };
    int rc = bal_dir_each(dir, add_name, &list, err);
    if (rc)
        return rc;

    *out = list;
    list = (bal_listing){ 0 };
    return 0;
}

bool bal_listing_has(const bal_listing *self, const char *name)
{
    return bal_map_find(&self->map, name, strlen(name)) != BAL_NONE;
}

void bal_listing_done(bal_listing *self)
{
    free(self->names);
    bal_map_done(&self->map);
    bal_arena_done(&self->arena);
    *self = (bal_listing){ 0 };
}

int bal_name_some(bal_buf *to, size_t n, const char *name, bal_error *err)
{
    if (n > NAMED)
        return 0;
    if (n == NAMED)
        return bal_buf_text(to, ", …", err);
    return bal_buf_format(to, err, "%s'%.60s'", n ? ", " : "", name);
}

/* ---- shards ------------------------------------------------------------- */

static int add(bal_pick *self, const char *name, bal_error *err)
{
    const char **files =
        bal_room_for_one(self->files, self->count, &self->room, sizeof(*files));
    if (!files)
        return bal_fail_memory(err, "picking files");

    self->files = files;
    self->files[self->count++] = name;
    return 0;
}

/* What a folder lacks, named in one message. */
typedef struct lack {
    bal_buf names;
    size_t count;
} lack;

static void lack_done(lack *self)
{
    bal_buf_done(&self->names);
}

static int lack_add(lack *self, const char *name, bal_error *err)
{
    bal_warn("model", "missing=%s", name);
    return bal_name_some(&self->names, self->count++, name, err);
}

static int lack_tell(const lack *self, const char *dir, const char *who,
                     bal_error *err)
{
    if (!self->count)
        return 0;
    return bal_fail(
        err, BAL_ECORRUPT, "'%s': %zu shard%s that %s names %s missing: %s",
        dir, self->count, self->count == 1 ? "" : "s", who,
        self->count == 1 ? "is" : "are", bal_buf_string(&self->names));
}

static int read_index(bal_pick *self, const bal_listing *list, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { .ceiling = BAL_INDEX_MAX + 1 };
    char *path = bal_path_join(list->dir, BAL_INDEX_NAME);
    if (!path)
        return bal_fail_memory(err, "reading an index");

    int rc = bal_file_slurp(&text, path, BAL_INDEX_MAX, err);
    bal_bytes json = { text.data, text.len };
    if (!rc)
        rc = bal_index_parse(&self->index, json, path, err);
    bal_str_free(path);
    return rc;
}

/* Is there an index to go by? Beside a model.safetensors that it does not name,
 * an index is of an older save, and transformers reads the one file. */
static int find_index(bal_pick *self, const bal_listing *list, bool single,
                      bool *found, bal_error *err)
{
    *found = bal_listing_has(list, BAL_INDEX_NAME);
    if (!*found)
        return 0;
    int rc = read_index(self, list, single ? NULL : err);
    if (!single)
        return rc;

    *found = false;
    for (size_t i = 0; i < self->index.file_count && !rc; i++)
        *found |= !strcmp(self->index.files[i], single_weights);
    return 0;
}

static int pick_indexed(bal_pick *self, const bal_listing *list, bal_error *err)
{
    BAL_LOCAL(lack) missing = { 0 };
    int rc = 0;

    self->indexed = true;
    for (size_t i = 0; i < self->index.file_count && !rc; i++) {
        const char *name = self->index.files[i];
        rc = add(self, name, err);
        if (!rc && !bal_listing_has(list, name))
            rc = lack_add(&missing, name, err);
    }
    return rc ? rc : lack_tell(&missing, list->dir, BAL_INDEX_NAME, err);
}

/* Read "…-00002-of-00003.safetensors"; false if name is no such name. */
static bool read_shard(const char *name, size_t *stem, unsigned *n,
                       unsigned *of)
{
    static const char tail[] = "-00000-of-00000.safetensors";
    size_t len = strlen(name);

    if (len < sizeof(tail))
        return false;
    *stem = len - (sizeof(tail) - 1);
    *n = 0;
    *of = 0;
    for (size_t i = 0; i < sizeof(tail) - 1; i++) {
        char c = name[*stem + i];
        bool digit = c >= '0' && c <= '9';
        if (tail[i] == '0' ? !digit : c != tail[i])
            return false;
        unsigned *number = i < 7 ? n : of;
        if (tail[i] == '0')
            *number = *number * 10 + (unsigned)(c - '0');
    }
    return true;
}

/* All n of n are there if each one's neighbours are. */
static int check_neighbours(lack *missing, const bal_listing *list,
                            const char *name, bal_error *err)
{
    BAL_LOCAL(bal_buf) next = { 0 };
    size_t stem = 0;
    unsigned n = 0;
    unsigned of = 0;

    if (!read_shard(name, &stem, &n, &of))
        return 0;
    for (unsigned other = n - 1; other <= n + 1; other += 2) {
        if (!n || !other || other > of)
            continue;
        bal_buf_clear(&next);
        int rc = bal_buf_format(&next, err, "%.*s-%05u-of-%05u.safetensors",
                                (int)stem, name, other, of);
        if (!rc && !bal_listing_has(list, next.data))
            rc = lack_add(missing, next.data, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int pick_all(bal_pick *self, const bal_listing *list,
                    const char *without, bal_error *err)
{
    BAL_LOCAL(lack) missing = { 0 };
    int rc = 0;

    for (size_t i = 0; i < list->count && !rc; i++) {
        const char *name = list->names[i];
        if (name[0] == '.' || !bal_shard_name_valid(name) ||
            bal_glob(without, name))
            continue;
        rc = add(self, name, err);
        if (!rc)
            rc = check_neighbours(&missing, list, name, err);
    }
    return rc ? rc : lack_tell(&missing, list->dir, "their numbering", err);
}

/* ---- which -------------------------------------------------------------- */

/* A folder below that holds an adapter; NULL: there is none. PEFT saves those
 * that are not called "default" in folders of their names. */
static const char *nested(const bal_listing *list)
{
    for (size_t i = 0; i < list->count; i++) {
        char *dir = bal_path_join(list->dir, list->names[i]);
        char *path = dir ? bal_path_join(dir, adapter_config) : NULL;
        bool found = path && bal_path_type_of(path) == BAL_PATH_FILE;

        bal_str_free(path);
        bal_str_free(dir);
        if (found)
            return list->names[i];
    }
    return NULL;
}

static int nothing(const bal_listing *list, bal_error *err)
{
    bool config = bal_listing_has(list, adapter_config);
    const char *below = config ? NULL : nested(list);
    int rc = config ? bal_fail(err, BAL_ENOTFOUND,
                               "no .safetensors files under '%s': %s is there, "
                               "%s is not",
                               list->dir, adapter_config, adapter_weights)
                    : bal_fail(err, BAL_ENOTFOUND,
                               "no .safetensors files under '%s'", list->dir);

    return below ? bal_hint(err, rc, "there is an adapter in '%.200s/%.40s'",
                            list->dir, below)
                 : rc;
}

static int none(const bal_listing *list, bal_error *err)
{
    size_t kinds = sizeof(foreign) / sizeof(foreign[0]);

    for (size_t i = 0; i < list->count * kinds; i++) {
        const char *name = list->names[i / kinds];
        if (!bal_glob(foreign[i % kinds], name) ||
            !strcmp(name, "training_args.bin"))
            continue;
        int rc = bal_fail(err, BAL_EUNSUPPORTED,
                          "no .safetensors files under '%s', only '%.100s' "
                          "and its like",
                          list->dir, name);
        return bal_hint(err, rc,
                        "convert it: load it with transformers or peft and "
                        "call save_pretrained(…)");
    }
    return nothing(list, err);
}

/* PEFT neither writes adapters in shards nor reads them. */
static int check_shards(const bal_pick *self, const bal_listing *list,
                        bal_error *err)
{
    for (size_t i = 0; i < self->count; i++) {
        if (bal_listing_has(list, adapter_config) &&
            bal_glob("adapter_model-*", self->files[i]))
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "'%s': the adapter is in shards ('%.60s'), which "
                            "no loader of adapters reads",
                            list->dir, self->files[i]);
    }
    return 0;
}

static int pick(bal_pick *self, const bal_listing *list, bal_error *err)
{
    static const char *const usual[] = { single_weights, adapter_weights };
    bool adapter = bal_listing_has(list, adapter_weights);
    bool single = bal_listing_has(list, single_weights);
    bool indexed = false;

    self->adapter = adapter && bal_listing_has(list, adapter_config);
    if (self->adapter)
        return add(self, adapter_weights, err);
    int rc = find_index(self, list, single, &indexed, err);
    if (rc || indexed)
        return rc ? rc : pick_indexed(self, list, err);
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        if (bal_listing_has(list, usual[i]))
            return add(self, usual[i], err);
    }
    rc = pick_all(self, list, "consolidated*", err);
    if (!rc && !self->count)
        rc = pick_all(self, list, "", err);
    if (!rc && !self->count)
        rc = none(list, err);
    return rc ? rc : check_shards(self, list, err);
}

int bal_pick_weights(bal_pick *out, const bal_listing *list, bal_error *err)
{
    BAL_LOCAL(bal_pick) self = { 0 };
    int rc = pick(&self, list, err);
    if (rc)
        return rc;

    *out = self;
    self = (bal_pick){ 0 };
    return 0;
}

static int compare_texts(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;

    return strcmp(*left, *right);
}

bool bal_pick_has(const bal_pick *self, const char *name)
{
    return self->count && bsearch(&name, self->files, self->count,
                                  sizeof(*self->files), compare_texts);
}

void bal_pick_done(bal_pick *self)
{
    free(self->files);
    bal_index_done(&self->index);
    *self = (bal_pick){ 0 };
}
