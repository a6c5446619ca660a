/* Headers are read for the names in them alone. One that cannot be read (it may
 * come from a commit that someone else made) is left for the writer to refuse
 * or replace. */
#include "model/layout.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "model/safetensors.h"

/* A file of the base: its header, and how many of its tensors stay. */
typedef struct shard {
    bal_st_header header;
    size_t stay;
} shard;

typedef struct homes {
    const bal_model *base;
    size_t first;  /* the base's headers are its entries from here on */
    shard *shards; /* by entry, from first */
    size_t count;
    bal_map map; /* tensor to the shard it is in */
} homes;

static void homes_done(homes *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_st_header_done(&self->shards[i].header);
    free(self->shards);
    bal_map_done(&self->map);
}

static size_t first_header(const bal_model *model)
{
    size_t i = bal_model_count(model);

    while (i && bal_model_at(model, i - 1)->part == BAL_PART_HEADER)
        i--;
    return i;
}

/* Empty where it cannot be understood. */
static int read_header(bal_st_header *out, bal_model *model, size_t i,
                       bal_error *err)
{
    const bal_tensor *entry = bal_model_at(model, i);
    BAL_LOCAL(bal_buf) json = { .ceiling = BAL_HEADER_MAX };

    if (entry->size > BAL_HEADER_MAX)
        return 0;
    int rc = bal_buf_reserve(&json, (size_t)entry->size, err);
    if (rc)
        return rc;
    rc = bal_model_read(model, i, 0, json.data, (size_t)entry->size, err);
    if (rc)
        return rc;
    bal_bytes bytes = { json.data, (size_t)entry->size };
    rc = bal_st_parse(out, bytes, UINT64_MAX, entry->name, err);
    return rc == BAL_ENOMEM ? rc : 0;
}

static bool stays(const bal_model *change, const char *tensor)
{
    size_t i = bal_model_find(change, BAL_PART_TENSOR, tensor);

    return i == BAL_NONE || bal_model_at(change, i)->form != BAL_FORM_REMOVED;
}

static int add_shard(homes *self, bal_model *base, size_t entry,
                     const bal_model *change, bal_error *err)
{
    shard *file = &self->shards[self->count++];

    int rc = read_header(&file->header, base, entry, err);
    for (size_t i = 0; i < file->header.count && !rc; i++) {
        const char *name = file->header.tensors[i].name;
        size_t value = self->count - 1;
        bool there = false;
        file->stay += stays(change, name);
        rc = bal_map_add(&self->map, name, strlen(name), &value, &there, err);
    }
    return rc;
}

static int find_homes(homes *self, bal_model *base, const bal_model *change,
                      bal_error *err)
{
    size_t count = bal_model_count(base);

    self->base = base;
    self->first = first_header(base);
    self->shards = calloc(count - self->first + 1, sizeof(*self->shards));
    if (!self->shards)
        return bal_fail_memory(err, "laying out files");
    for (size_t i = self->first; i < count; i++) {
        int rc = add_shard(self, base, i, change, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* BAL_NONE: the base has no file of the name of entry i. */
static size_t find_shard(const homes *self, const bal_model *change, size_t i)
{
    const char *name = bal_model_at(change, i)->name;
    size_t entry = bal_model_find(self->base, BAL_PART_HEADER, name);

    return entry == BAL_NONE ? BAL_NONE : entry - self->first;
}

/* *fits: header i of change holds all that its file has of the base, and
 * nothing that the base has elsewhere. */
static int check_fit(bool *fits, const homes *self, bal_model *change, size_t i,
                     bal_error *err)
{
    bal_st_header header = { 0 };
    size_t file = find_shard(self, change, i);
    size_t stay = 0;
    size_t elsewhere = 0;

    int rc = read_header(&header, change, i, err);
    for (size_t n = 0; n < header.count; n++) {
        const char *name = header.tensors[n].name;
        size_t home = bal_map_find(&self->map, name, strlen(name));
        if (home != BAL_NONE && home == file)
            stay++;
        else if (home != BAL_NONE)
            elsewhere++;
    }
    *fits = header.count && !elsewhere &&
            stay == (file == BAL_NONE ? 0 : self->shards[file].stay);
    bal_st_header_done(&header);
    return rc;
}

static int choose(bal_layout *out, const homes *self, bal_model *change,
                  bal_error *err)
{
    size_t first = first_header(change);

    for (size_t i = 0; i < self->count; i++)
        out->base[self->first + i] =
            self->shards[i].stay || !self->shards[i].header.count;
    out->changed = first < bal_model_count(change);
    for (size_t i = first; i < bal_model_count(change); i++) {
        size_t file = find_shard(self, change, i);
        int rc = check_fit(&out->change[i], self, change, i, err);
        if (rc)
            return rc;
        if (file != BAL_NONE && out->change[i])
            out->base[self->first + file] = false;
        out->changed = out->changed && out->change[i];
    }
    return 0;
}

static int make(bal_layout *out, const bal_model *base, const bal_model *change,
                bal_error *err)
{
    out->base = calloc(bal_model_count(base) + 1, sizeof(*out->base));
    out->change = calloc(bal_model_count(change) + 1, sizeof(*out->change));
    return out->base && out->change ? 0
                                    : bal_fail_memory(err, "laying out files");
}

int bal_layout_choose(bal_layout *out, bal_model *base, bal_model *change,
                      bal_error *err)
{
    BAL_LOCAL(homes) self = { 0 };

    int rc = make(out, base, change, err);
    if (rc)
        return rc;
    rc = find_homes(&self, base, change, err);
    if (rc)
        return rc;
    return choose(out, &self, change, err);
}

int bal_layout_of_whole(bal_layout *out, bal_model *base, bal_model *change,
                        bal_error *err)
{
    size_t first = first_header(change);

    int rc = make(out, base, change, err);
    if (rc)
        return rc;
    out->changed = first < bal_model_count(change);
    for (size_t i = first; i < bal_model_count(change); i++)
        out->change[i] = true;
    for (size_t i = first_header(base); i < bal_model_count(base); i++)
        out->base[i] = !out->changed;
    return 0;
}

void bal_layout_done(bal_layout *self)
{
    free(self->base);
    free(self->change);
    *self = (bal_layout){ 0 };
}
