/* Files and headers for a model that is to be written; see write.c. */
#include "model/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/room.h"
#include "kernel/dtype.h"
#include "model/index.h"

static const char residual_tail[] = ".__residual__";

typedef struct planner {
    bal_plan *to;
    bal_model *model;
    size_t *file_of; /* of entry i, BAL_NONE: none yet */
    unsigned flags;
} planner;

static void planner_done(planner *self)
{
    free(self->file_of);
}

/* All of an entry that is small: a header, an index. */
static int slurp(bal_buf *to, bal_model *model, size_t i, size_t ceiling,
                 bal_error *err)
{
    const bal_tensor *entry = bal_model_at(model, i);

    if (entry->size > ceiling)
        return bal_fail(err, BAL_ECORRUPT, "%s '%.200s' is over %zu bytes",
                        bal_part_name(entry->part), entry->name, ceiling);
    size_t len = (size_t)entry->size;
    int rc = bal_buf_reserve(to, len, err);
    if (rc)
        return rc;
    rc = bal_model_read(model, i, 0, to->data + to->len, len, err);
    if (rc)
        return rc;
    to->len += len;
    to->data[to->len] = '\0';
    return 0;
}

/* ---- which tensors go where --------------------------------------------- */

static bool is_written(const bal_tensor *entry)
{
    return entry->part == BAL_PART_TENSOR && entry->form != BAL_FORM_SAME &&
           entry->form != BAL_FORM_REMOVED;
}

static int place(planner *self, size_t file, size_t entry, bal_error *err)
{
    bal_plan_file *to = &self->to->files[file];
    size_t *entries =
        bal_room_for_one(to->entries, to->count, &to->room, sizeof(*entries));
    if (!entries)
        return bal_fail_memory(err, "laying out a model");

    to->entries = entries;
    to->entries[to->count++] = entry;
    self->file_of[entry] = file;
    return 0;
}

static int keep_metadata(planner *self, bal_plan_file *to,
                         const bal_st_header *header, bal_error *err)
{
    bal_arena *arena = &self->to->arena;
    size_t count = header->metadata_count;

    /* Room for one more: the format. */
    to->metadata = bal_arena_alloc(arena, (count + 1) * sizeof(bal_str_pair));
    if (!to->metadata)
        return bal_fail_memory(err, "laying out a model");
    for (size_t i = 0; i < count; i++) {
        const bal_str_pair *from = &header->metadata[i];
        bal_str_pair copy = {
            bal_arena_copy(arena, from->key, strlen(from->key)),
            bal_arena_copy(arena, from->value, strlen(from->value)),
        };
        if (!copy.key || !copy.value)
            return bal_fail_memory(err, "laying out a model");
        to->metadata[i] = copy;
    }
    to->metadata_count = count;
    return 0;
}

static bool same(const bal_st_tensor *was, const bal_tensor *is)
{
    bal_tensor shape = { .rank = was->rank, .shape = was->shape };

    return was->dtype == is->dtype && bal_tensor_same_shape(&shape, is);
}

/* The tensors of a recorded header, as far as they are still there. */
static int place_header(planner *self, size_t file, const bal_st_header *header,
                        bal_error *err)
{
    bal_plan_file *to = &self->to->files[file];

    to->recorded = true;
    for (size_t i = 0; i < header->count; i++) {
        const bal_st_tensor *was = &header->tensors[i];
        size_t at = bal_model_find(self->model, BAL_PART_TENSOR, was->name);
        if (at == BAL_NONE || self->file_of[at] != BAL_NONE) {
            to->recorded = false;
            continue;
        }
        if (!same(was, bal_model_at(self->model, at)))
            to->recorded = false;
        int rc = place(self, file, at, err);
        if (rc)
            return rc;
    }
    return keep_metadata(self, to, header, err);
}

static int read_header(planner *self, size_t file, size_t entry, bal_error *err)
{
    BAL_LOCAL(bal_st_header) header = { 0 };
    bal_plan_file *to = &self->to->files[file];

    to->name = bal_model_at(self->model, entry)->name;
    if (!bal_shard_name_valid(to->name))
        return bal_fail(err, BAL_ECORRUPT,
                        "'%.200s' is no name for a safetensors file", to->name);
    int rc = slurp(&to->json, self->model, entry, BAL_HEADER_MAX, err);
    if (rc)
        return rc;
    bal_bytes json = { to->json.data, to->json.len };
    rc = bal_st_parse(&header, json, UINT64_MAX, to->name, err);
    if (rc)
        return rc;
    return place_header(self, file, &header, err);
}

/* ---- order -------------------------------------------------------------- */

/* An entry with what it is sorted by; entries come by name already. */
typedef struct ranked {
    size_t entry;
    bal_dtype dtype;
} ranked;

/* The reference's: dtypes of the widest alignment first, then by name. */
static int compare(const void *a, const void *b)
{
    const ranked *left = a;
    const ranked *right = b;

    if (left->dtype != right->dtype)
        return left->dtype > right->dtype ? -1 : 1;
    return left->entry < right->entry ? -1 : 1;
}

static int sort_entries(const bal_model *model, size_t *entries, size_t count,
                        bal_error *err)
{
    if (!count)
        return 0;
    ranked *rows = malloc(count * sizeof(*rows));
    if (!rows)
        return bal_fail_memory(err, "laying out a model");

    for (size_t i = 0; i < count; i++)
        rows[i] =
            (ranked){ entries[i], bal_model_at(model, entries[i])->dtype };
    qsort(rows, count, sizeof(*rows), compare);
    for (size_t i = 0; i < count; i++)
        entries[i] = rows[i].entry;
    free(rows);
    return 0;
}

/* What no header names goes behind the rest of the last file. */
static int place_rest(planner *self, bal_error *err)
{
    size_t last = self->to->count - 1;
    bal_plan_file *to = &self->to->files[last];
    size_t before = to->count;
    int rc = 0;

    for (size_t i = 0; i < bal_model_count(self->model) && !rc; i++) {
        if (is_written(bal_model_at(self->model, i)) &&
            self->file_of[i] == BAL_NONE)
            rc = place(self, last, i, err);
    }
    if (rc || to->count == before)
        return rc;
    to->recorded = false;
    return sort_entries(self->model, to->entries + before, to->count - before,
                        err);
}

/* ---- headers of our own ------------------------------------------------- */

/* The tensor under the name that it is written by; NULL: no memory. */
static const bal_tensor *renamed(planner *self, size_t entry)
{
    const bal_tensor *tensor = bal_model_at(self->model, entry);
    size_t len = strlen(tensor->name);

    if (tensor->form != BAL_FORM_RESIDUAL)
        return tensor;
    bal_tensor *copy = bal_arena_alloc(&self->to->arena, sizeof(*copy));
    char *name = bal_arena_alloc(&self->to->arena, len + sizeof(residual_tail));
    if (!copy || !name)
        return NULL;
    memcpy(name, tensor->name, len);
    memcpy(name + len, residual_tail, sizeof(residual_tail));
    *copy = *tensor;
    copy->name = name;
    return copy;
}

static int tensors_of(planner *self, const bal_plan_file *file,
                      const bal_tensor **to, bal_error *err)
{
    for (size_t i = 0; i < file->count; i++) {
        to[i] = renamed(self, file->entries[i]);
        if (!to[i])
            return bal_fail_memory(err, "laying out a model");
        if (to[i]->form == BAL_FORM_RESIDUAL &&
            bal_model_find(self->model, BAL_PART_TENSOR, to[i]->name) !=
                BAL_NONE)
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "tensor '%.200s' has the name of a residual",
                            to[i]->name);
    }
    return 0;
}

/* transformers asks for a format, and older ones fail without it. */
static int add_format(planner *self, bal_plan_file *file, bal_error *err)
{
    for (size_t i = 0; i < file->metadata_count; i++) {
        if (!strcmp(file->metadata[i].key, "format"))
            return 0;
    }
    if (!file->metadata)
        file->metadata =
            bal_arena_alloc(&self->to->arena, sizeof(*file->metadata));
    if (!file->metadata)
        return bal_fail_memory(err, "laying out a model");
    file->metadata[file->metadata_count++] = (bal_str_pair){ "format", "pt" };
    return 0;
}

static int make_header(planner *self, bal_plan_file *file, bal_error *err)
{
    int rc = add_format(self, file, err);
    if (!rc && self->flags & BAL_WRITE_CANONICAL)
        rc = sort_entries(self->model, file->entries, file->count, err);
    if (rc)
        return rc;
    const bal_tensor **tensors = calloc(file->count + 1, sizeof(void *));
    if (!tensors)
        return bal_fail_memory(err, "laying out a model");
    rc = tensors_of(self, file, tensors, err);
    bal_buf_clear(&file->json);
    if (!rc)
        rc = bal_st_write(&file->json, tensors, file->count, file->metadata,
                          file->metadata_count, err);
    free(tensors);
    return rc;
}

/* A file that lost all it had is left out, unless nothing else is there. */
static void drop_empty(bal_plan *self)
{
    size_t kept = 0;

    for (size_t i = 0; i < self->count; i++) {
        bal_plan_file file = self->files[i];
        bool last = !kept && i + 1 == self->count;
        self->files[i] = (bal_plan_file){ 0 };
        if (file.count || file.recorded || last) {
            self->files[kept++] = file;
            continue;
        }
        free(file.entries);
        bal_buf_done(&file.json);
    }
    self->count = kept;
}

/* ---- the index ---------------------------------------------------------- */

static bool counts_parameters(bal_model *model, size_t index)
{
    BAL_LOCAL(bal_index) old = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };

    if (slurp(&text, model, index, BAL_INDEX_MAX, NULL))
        return false;
    bal_bytes json = { text.data, text.len };
    return !bal_index_parse(&old, json, BAL_INDEX_NAME, NULL) &&
           old.has_parameters;
}

/* By name, which is how the entries come. */
static size_t fill_rows(const planner *self, bal_index_row *rows,
                        bal_index_totals *totals)
{
    size_t count = 0;

    for (size_t i = 0; i < bal_model_count(self->model); i++) {
        const bal_tensor *entry = bal_model_at(self->model, i);
        uint64_t elements = 0;
        uint64_t bytes = 0;
        if (self->file_of[i] == BAL_NONE)
            continue;
        rows[count++] = (bal_index_row){
            .tensor = entry->name,
            .file = self->to->files[self->file_of[i]].name,
        };
        if (bal_shape_size(&elements, &bytes, entry->dtype, entry->shape,
                           entry->rank))
            totals->parameters += elements;
        totals->size += entry->size;
    }
    return count;
}

static int make_index(planner *self, size_t index, bal_error *err)
{
    bal_index_totals totals = {
        .has_parameters = counts_parameters(self->model, index),
    };
    bal_index_row *rows =
        calloc(bal_model_count(self->model) + 1, sizeof(*rows));
    if (!rows)
        return bal_fail_memory(err, "laying out a model");

    size_t count = fill_rows(self, rows, &totals);
    self->to->drop_index = true;
    int rc = bal_index_write(&self->to->index, rows, count, &totals, err);
    free(rows);
    return rc;
}

/* Before files are dropped: file_of counts them as they are now. */
static int settle_index(planner *self, size_t headers, bal_error *err)
{
    size_t index = bal_model_find(self->model, BAL_PART_FILE, BAL_INDEX_NAME);
    bool recorded = true;

    if (index == BAL_NONE)
        return 0;
    for (size_t i = 0; i < self->to->count; i++)
        recorded = recorded && self->to->files[i].recorded;
    self->to->drop_index = !headers;
    return recorded || !headers ? 0 : make_index(self, index, err);
}

/* ---- all of it ---------------------------------------------------------- */

/* Only a model that stands alone is laid out by its headers: those of a delta
 * are of the model that it leads to. */
static size_t count_headers(const bal_model *model)
{
    size_t headers = 0;

    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        if (entry->form != BAL_FORM_WHOLE)
            return 0;
        headers += entry->part == BAL_PART_HEADER;
    }
    return bal_model_facts(model)->kind == BAL_KIND_DELTA ? 0 : headers;
}

static int place_all(planner *self, size_t headers, bal_error *err)
{
    bool adapter = bal_model_facts(self->model)->kind == BAL_KIND_ADAPTER;
    size_t first = bal_model_count(self->model) - headers;
    int rc = 0;

    for (size_t i = 0; i < headers && !rc; i++)
        rc = read_header(self, i, first + i, err);
    if (!headers)
        self->to->files[0].name =
            adapter ? "adapter_model.safetensors" : "model.safetensors";
    return rc ? rc : place_rest(self, err);
}

static int make_headers(planner *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->to->count && !rc; i++) {
        bal_plan_file *file = &self->to->files[i];
        if (!file->recorded || self->flags & BAL_WRITE_CANONICAL)
            rc = make_header(self, file, err);
    }
    return rc;
}

static int plan(planner *self, bal_error *err)
{
    size_t count = bal_model_count(self->model);
    size_t headers =
        self->flags & BAL_PLAN_ONE ? 0 : count_headers(self->model);

    self->to->files = calloc(headers ? headers : 1, sizeof(bal_plan_file));
    self->file_of = calloc(count + 1, sizeof(*self->file_of));
    if (!self->to->files || !self->file_of)
        return bal_fail_memory(err, "laying out a model");
    self->to->count = headers ? headers : 1;
    for (size_t i = 0; i < count; i++)
        self->file_of[i] = BAL_NONE;
    int rc = place_all(self, headers, err);
    if (!rc)
        rc = make_headers(self, err);
    if (!rc)
        rc = settle_index(self, headers, err);
    if (!rc)
        drop_empty(self->to);
    return rc;
}

int bal_plan_make(bal_plan *out, bal_model *model, unsigned flags,
                  bal_error *err)
{
    BAL_LOCAL(bal_plan) files = { 0 };
    BAL_LOCAL(planner)
    self = {
        .to = &files,
        .model = model,
        .flags = flags,
    };
    int rc = plan(&self, err);
    if (rc)
        return rc;

    *out = files;
    files = (bal_plan){ 0 };
    return 0;
}

void bal_plan_done(bal_plan *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free(self->files[i].entries);
        bal_buf_done(&self->files[i].json);
    }
    free(self->files);
    bal_buf_done(&self->index);
    bal_arena_done(&self->arena);
    *self = (bal_plan){ 0 };
}
