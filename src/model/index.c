/* The index of a sharded model, read by the strict scanner: it comes from
 * outside, has a row for each of 2^20 tensors, and names files to be opened. */
#include "model/index.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/room.h"
#include "core/str.h"
#include "model/path.h"
#include "model/safetensors.h"

enum { DEPTH = 32, ARENA_MAX = 1 << 30 };

typedef struct parser {
    bal_scan scan;
    bal_index *to;
    size_t room, file_room;
    bal_map files; /* name to its first row */
    bool has_map, has_metadata;
} parser;

static void parser_done(parser *self)
{
    bal_map_done(&self->files);
}

bool bal_shard_name_valid(const char *name)
{
    return bal_side_name_valid(name) && !strchr(name, '/') &&
           bal_glob("?*.safetensors", name);
}

typedef int member_fn(parser *self, const char *key, size_t len, size_t at,
                      bal_error *err);

/* Call fn for each member of an object, its key read, no key twice. */
static int each_member(parser *self, bal_map *keys, member_fn *fn,
                       bal_error *err)
{
    bool more = false;
    int rc = bal_scan_open(&self->scan, '{', err);

    for (bool first = true; !rc; first = false) {
        const char *key = NULL;
        size_t len = 0;
        size_t value = keys->count;
        bool there = false;
        rc = bal_scan_more(&self->scan, '}', first, &more, err);
        if (rc || !more)
            break;
        bal_scan_peek(&self->scan);
        size_t at = self->scan.at;
        rc = bal_scan_key(&self->scan, &key, &len, err);
        if (!rc)
            rc = bal_map_add(keys, key, len, &value, &there, err);
        if (!rc && there)
            rc = bal_fail(err, BAL_ECORRUPT,
                          "%s: duplicate key '%.100s' at byte %zu",
                          self->scan.what, key, at);
        if (!rc)
            rc = fn(self, key, len, at, err);
    }
    return rc;
}

static int add_file(parser *self, const char *file, bal_error *err)
{
    bal_index *to = self->to;
    size_t value = to->file_count;
    bool there = false;
    int rc = bal_map_add(&self->files, file, strlen(file), &value, &there, err);
    if (rc || there)
        return rc;

    const char **files = bal_room_for_one(to->files, to->file_count,
                                          &self->file_room, sizeof(*files));
    if (!files)
        return bal_fail_memory(err, "reading an index");
    to->files = files;
    to->files[to->file_count++] = file;
    return 0;
}

static int read_row(parser *self, const char *key, size_t len, size_t at,
                    bal_error *err)
{
    bal_index *to = self->to;
    bal_index_row row = { .tensor = key };
    size_t file_len = 0;

    if (!len || memchr(key, 0, len))
        return bal_fail(err, BAL_ECORRUPT,
                        "%s: a tensor without a name, or with a NUL in it, at "
                        "byte %zu",
                        self->scan.what, at);
    if (to->count == BAL_TENSORS_MAX)
        return bal_fail(err, BAL_ECORRUPT, "%s: more than %zu tensors",
                        self->scan.what, BAL_TENSORS_MAX);
    int rc = bal_scan_string(&self->scan, &row.file, &file_len, err);
    if (rc)
        return bal_within(err, rc, "tensor '%.100s'", key);
    if (memchr(row.file, 0, file_len) || !bal_shard_name_valid(row.file))
        return bal_fail(err, BAL_ECORRUPT,
                        "%s: tensor '%.100s' is mapped to '%.100s', which is "
                        "not the plain name of a safetensors file",
                        self->scan.what, key, row.file);
    bal_index_row *rows =
        bal_room_for_one(to->rows, to->count, &self->room, sizeof(*rows));
    if (!rows)
        return bal_fail_memory(err, "reading an index");
    to->rows = rows;
    to->rows[to->count++] = row;
    return add_file(self, row.file, err);
}

/* A total that is not a whole number (some writers give a float) is none. */
static int read_meta(parser *self, const char *key, size_t len, size_t at,
                     bal_error *err)
{
    bal_scan probe = self->scan;

    (void)at;
    if (len == strlen("total_parameters") && !strcmp(key, "total_parameters"))
        self->to->has_parameters = true;
    if (len == strlen("total_size") && !strcmp(key, "total_size"))
        self->to->has_total = !bal_scan_u64(&probe, &self->to->total, NULL);
    return bal_scan_skip(&self->scan, DEPTH, err);
}

static int read_map(parser *self, bal_error *err)
{
    self->has_map = true;
    return each_member(self, &self->to->tensors, read_row, err);
}

static int read_metadata(parser *self, bal_error *err)
{
    BAL_LOCAL(bal_map) keys = { 0 };

    if (bal_scan_peek(&self->scan) != '{')
        return bal_scan_skip(&self->scan, DEPTH, err);
    return each_member(self, &keys, read_meta, err);
}

static const struct {
    const char *key;
    int (*read)(parser *self, bal_error *err);
} members[] = {
    { "weight_map", read_map },
    { "metadata", read_metadata },
};

static int read_member(parser *self, const char *key, size_t len, size_t at,
                       bal_error *err)
{
    (void)at;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (strlen(members[i].key) == len && !memcmp(members[i].key, key, len))
            return members[i].read(self, err);
    }
    return bal_scan_skip(&self->scan, DEPTH, err);
}

static int compare_texts(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;

    return strcmp(*left, *right);
}

int bal_index_parse(bal_index *out, bal_bytes json, const char *what,
                    bal_error *err)
{
    BAL_LOCAL(bal_index) index = { .arena.ceiling = ARENA_MAX };
    BAL_LOCAL(bal_map) keys = { 0 };
    BAL_LOCAL(parser)
    self = {
        .scan = { .data = json.data, .len = json.len, .what = what },
        .to = &index,
    };

    self.scan.arena = &index.arena;
    int rc = each_member(&self, &keys, read_member, err);
    if (!rc)
        rc = bal_scan_end(&self.scan, err);
    if (rc)
        return rc;
    if (!self.has_map)
        return bal_fail(err, BAL_ECORRUPT, "%s has no weight_map", what);
    if (index.file_count)
        qsort(index.files, index.file_count, sizeof(*index.files),
              compare_texts);
    *out = index;
    index = (bal_index){ 0 };
    return 0;
}

const char *bal_index_find(const bal_index *self, const char *tensor)
{
    size_t i = bal_map_find(&self->tensors, tensor, strlen(tensor));

    return i == BAL_NONE ? NULL : self->rows[i].file;
}

void bal_index_done(bal_index *self)
{
    free(self->rows);
    free(self->files);
    bal_map_done(&self->tensors);
    bal_arena_done(&self->arena);
    *self = (bal_index){ 0 };
}

int bal_index_write(bal_buf *to, const bal_index_row *rows, size_t count,
                    const bal_index_totals *totals, bal_error *err)
{
    bal_json json;

    bal_json_begin(&json, to, 2);
    bal_json_object(&json);
    bal_json_key(&json, "metadata");
    bal_json_object(&json);
    if (totals->has_parameters) {
        bal_json_key(&json, "total_parameters");
        bal_json_u64(&json, totals->parameters);
    }
    bal_json_key(&json, "total_size");
    bal_json_u64(&json, totals->size);
    bal_json_close(&json);
    bal_json_key(&json, "weight_map");
    bal_json_object(&json);
    for (size_t i = 0; i < count; i++) {
        bal_json_key(&json, rows[i].tensor);
        bal_json_string(&json, rows[i].file);
    }
    bal_json_close(&json);
    bal_json_close(&json);
    int rc = bal_json_end(&json, err);
    if (rc)
        return rc;

    return bal_buf_text(to, "\n", err);
}
