/* Bytes of entries out of files, by pread and never by mapping: a file that
 * shrinks meanwhile must be an error, not a signal. After each read the file's
 * size and time are looked at again, so that what was read before and after
 * somebody wrote to it is not taken for one model. */
#include "model/folder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/room.h"
#include "core/str.h"
#include "model/safetensors.h"

enum { KEEP_OPEN = 256, HEAD = 256 };

/* ---- reading ------------------------------------------------------------ */

static int read_file(const bal_file *file, uint64_t offset, void *to,
                     size_t len, bal_error *err)
{
    int rc = bal_file_read(file, offset, to, len, err);
    /* A file that ended early has changed, which is the better message. */
    int changed = bal_file_unchanged(file, rc ? NULL : err);

    if (rc && changed)
        return bal_file_unchanged(file, err);
    return rc ? rc : changed;
}

static int folder_read(bal_model *model, size_t i, uint64_t offset, void *to,
                       size_t len, bal_error *err)
{
    const bal_folder *self = (const bal_folder *)model;
    const bal_spot *spot = &self->spots[bal_model_tag(model, i)];
    const bal_source *source = &self->sources[spot->source];
    BAL_OWN(bal_file) file = NULL;

    if (source->file)
        return read_file(source->file, spot->offset + offset, to, len, err);
    int rc = bal_file_open(&file, source->path, err);
    if (rc)
        return rc;
    if (file->size != source->size || file->stamp != source->stamp)
        return bal_fail(err, BAL_EIO, "'%s' changed while it was read",
                        source->path);
    return read_file(file, spot->offset + offset, to, len, err);
}

static void folder_free(bal_model *model)
{
    bal_folder *self = (bal_folder *)model;

    for (size_t i = 0; i < self->source_count; i++)
        bal_file_free(self->sources[i].file);
    free(self->sources);
    free(self->spots);
}

static const bal_model_ops ops = {
    .read = folder_read,
    .free = folder_free,
};

bal_folder *bal_folder_new(void)
{
    return bal_model_alloc(sizeof(bal_folder), &ops);
}

const char *bal_folder_file_of(const bal_folder *self, size_t i)
{
    const bal_spot *spot = &self->spots[bal_model_tag(&self->base, i)];

    return self->sources[spot->source].name;
}

/* ---- adding ------------------------------------------------------------- */

static int add_source(bal_folder *self, const bal_file *file, const char *name,
                      bal_error *err)
{
    bal_arena *arena = &self->base.arena;
    bal_source source = {
        .name = bal_arena_copy(arena, name, strlen(name)),
        .path = bal_arena_copy(arena, file->path, strlen(file->path)),
        .size = file->size,
        .stamp = file->stamp,
    };
    bal_source *sources =
        bal_room_for_one(self->sources, self->source_count, &self->source_room,
                         sizeof(*sources));

    if (!sources)
        return bal_fail_memory(err, "reading a model");
    self->sources = sources;
    if (!source.name || !source.path)
        return bal_fail_memory(err, "reading a model");
    self->sources[self->source_count++] = source;
    return 0;
}

/* An entry at `offset` of the source that was added last. */
static int add_entry(bal_folder *self, const bal_tensor *entry, uint64_t offset,
                     bal_error *err)
{
    bal_spot *spots = bal_room_for_one(self->spots, self->spot_count,
                                       &self->spot_room, sizeof(*spots));
    if (!spots)
        return bal_fail_memory(err, "reading a model");

    self->spots = spots;
    self->spots[self->spot_count] = (bal_spot){
        .source = self->source_count - 1,
        .offset = offset,
    };
    int rc = bal_model_add(&self->base, entry, self->spot_count, err);
    if (rc)
        return rc;
    self->spot_count++;
    return 0;
}

/* Before bal_model_ready an entry's number is its tag here, and the map's. */
static int check_new(const bal_folder *self, const char *tensor, bal_error *err)
{
    const bal_map *names = &self->base.names[BAL_PART_TENSOR];
    size_t n = self->source_count < 2
                   ? BAL_NONE
                   : bal_map_find(names, tensor, strlen(tensor));
    if (n == BAL_NONE)
        return 0;

    return bal_fail(err, BAL_ECORRUPT, "tensor '%.200s' is in '%s' and in '%s'",
                    tensor, self->sources[self->spots[n].source].name,
                    self->sources[self->source_count - 1].name);
}

static int add_tensors(bal_folder *self, const bal_st_header *header,
                       uint64_t data, bal_error *err)
{
    for (size_t i = 0; i < header->count; i++) {
        const bal_st_tensor *from = &header->tensors[i];
        bal_tensor entry = {
            .name = from->name,
            .part = BAL_PART_TENSOR,
            .form = BAL_FORM_WHOLE,
            .dtype = from->dtype,
            .rank = from->rank,
            .shape = from->shape,
        };
        int rc = check_new(self, from->name, err);
        if (!rc)
            rc = add_entry(self, &entry, data + from->begin, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_header(bal_buf *to, const bal_file *file, bal_error *err)
{
    char head[HEAD];
    size_t len = (size_t)bal_min(HEAD, file->size);
    uint64_t length = 0;
    int rc = bal_file_read(file, 0, head, len, err);
    if (rc)
        return rc;

    rc = bal_st_length(&length, head, len, file->size, file->path, err);
    if (rc)
        return rc;
    rc = bal_buf_reserve(to, (size_t)length, err);
    if (rc)
        return rc;
    to->len = (size_t)length;
    to->data[to->len] = '\0';
    return read_file(file, 8, to->data, to->len, err);
}

static int add_weights(bal_folder *self, const bal_file *file, const char *name,
                       bal_error *err)
{
    BAL_LOCAL(bal_st_header) header = { 0 };
    BAL_LOCAL(bal_buf) json = { 0 };
    int rc = read_header(&json, file, err);
    if (rc)
        return rc;

    bal_tensor entry = {
        .name = name,
        .part = BAL_PART_HEADER,
        .form = BAL_FORM_WHOLE,
        .size = json.len,
    };
    bal_bytes text = { json.data, json.len };
    rc =
        bal_st_parse(&header, text, file->size - 8 - json.len, file->path, err);
    if (!rc)
        rc = add_source(self, file, name, err);
    if (!rc)
        rc = add_entry(self, &entry, 8, err);
    if (!rc)
        rc = add_tensors(self, &header, 8 + (uint64_t)json.len, err);
    return rc;
}

int bal_folder_weights(bal_folder *self, const char *path, const char *name,
                       bal_error *err)
{
    BAL_OWN(bal_file) file = NULL;
    int rc = bal_file_open(&file, path, err);
    if (!rc)
        rc = add_weights(self, file, name, err);
    if (rc)
        return rc;

    if (self->source_count <= KEEP_OPEN)
        self->sources[self->source_count - 1].file = BAL_TAKE(file);
    return 0;
}

int bal_folder_side(bal_folder *self, const char *path, const char *name,
                    bal_error *err)
{
    BAL_OWN(bal_file) file = NULL;
    int rc = bal_file_open(&file, path, err);
    if (rc)
        return rc;

    bal_tensor entry = {
        .name = name,
        .part = BAL_PART_FILE,
        .form = BAL_FORM_WHOLE,
        .size = file->size,
    };
    rc = add_source(self, file, name, err);
    if (rc)
        return rc;
    return add_entry(self, &entry, 0, err);
}
