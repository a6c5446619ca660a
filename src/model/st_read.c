/* The safetensors header, read in one pass without a tree: 100 MB and 2^20
 * tensors are nothing unusual to a hostile file, and what is refused here is
 * what two readers could see differently.
 *
 * The JSON is checked first, tensor by tensor; then the tensors are sorted by
 * where they lie and walked, each beginning where the last one ended. So no
 * hole, overlap or shared byte can be said at all. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/json.h"
#include "core/map.h"
#include "core/room.h"
#include "kernel/dtype.h"
#include "model/safetensors.h"

enum {
    NAME_LEN_MAX = 4096,
    SCRATCH_MAX = 1 << 20,
    ARENA_MAX = 1 << 30,
};

/* ---- the JSON ----------------------------------------------------------- */

typedef struct parser {
    bal_scan scan;
    bal_st_header *to;
    size_t tensor_room, metadata_room;
    bal_map names, keys;
    bal_arena words; /* keys and dtypes, dropped from time to time */
    bool has_metadata;
} parser;

static void parser_done(parser *self)
{
    bal_map_done(&self->names);
    bal_map_done(&self->keys);
    bal_arena_done(&self->words);
}

static int bad(size_t at, const char *why, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "header: %s at byte %zu", why, at);
}

/* A string of the header that is used as a C string. */
static int check_text(size_t at, const char *text, size_t len, bal_error *err)
{
    bool nul = memchr(text, 0, len) != NULL;

    return nul ? bad(at, "a NUL in a name or text", err) : 0;
}

static int read_dtype(parser *self, bal_st_tensor *tensor, bal_error *err)
{
    const char *text = NULL;
    size_t len = 0;
    char first = bal_scan_peek(&self->scan);
    size_t at = self->scan.at;

    if (first != '"')
        return bad(at, "a dtype that is not a string", err);
    int rc = bal_scan_string(&self->scan, &text, &len, err);
    if (rc)
        return rc;
    if (!bal_dtype_find(&tensor->dtype, text, len))
        return bal_fail(err, BAL_ECORRUPT,
                        "header: unknown dtype '%.40s' at byte %zu", text, at);
    return 0;
}

/* An array of whole numbers, at most `most`. */
static int read_numbers(parser *self, uint64_t *to, size_t most, size_t *count,
                        bal_error *err)
{
    int rc = bal_scan_open(&self->scan, '[', err);
    if (rc)
        return rc;

    bool more = false;
    *count = 0;
    for (bool first = true;; first = false) {
        rc = bal_scan_more(&self->scan, ']', first, &more, err);
        if (rc || !more)
            return rc;
        if (*count == most)
            return bal_fail(err, BAL_ECORRUPT,
                            "header: more than %zu numbers at byte %zu", most,
                            self->scan.at);
        rc = bal_scan_u64(&self->scan, &to[(*count)++], err);
        if (rc)
            return rc;
    }
}

static int read_shape(parser *self, bal_st_tensor *tensor, bal_error *err)
{
    uint64_t shape[BAL_MAX_RANK];
    size_t rank = 0;
    int rc = read_numbers(self, shape, BAL_MAX_RANK, &rank, err);
    if (rc)
        return rc;

    uint64_t *copy = bal_arena_alloc(&self->to->arena, rank * sizeof(*copy));
    if (!copy)
        return bal_fail_memory(err, "reading a header");
    memcpy(copy, shape, rank * sizeof(*copy));
    tensor->shape = copy;
    tensor->rank = (uint32_t)rank;
    return 0;
}

static int read_offsets(parser *self, bal_st_tensor *tensor, bal_error *err)
{
    uint64_t pair[2] = { 0 };
    size_t count = 0;
    int rc = read_numbers(self, pair, 2, &count, err);
    if (rc)
        return rc;

    if (count != 2)
        return bad(self->scan.at, "data_offsets that are not two", err);
    tensor->begin = pair[0];
    tensor->end = pair[1];
    return 0;
}

static const struct {
    const char *key;
    int (*read)(parser *self, bal_st_tensor *tensor, bal_error *err);
} fields[] = {
    { "dtype", read_dtype },
    { "shape", read_shape },
    { "data_offsets", read_offsets },
};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static size_t field_of(const char *key, size_t len)
{
    size_t i = 0;

    while (i < FIELDS && (strlen(fields[i].key) != len ||
                          memcmp(fields[i].key, key, len) != 0))
        i++;
    return i;
}

/* One member of a tensor's info; seen has a bit a field. */
static int read_field(parser *self, bal_st_tensor *tensor, unsigned *seen,
                      bal_error *err)
{
    const char *key = NULL;
    size_t len = 0;
    size_t at = self->scan.at;
    int rc = bal_scan_key(&self->scan, &key, &len, err);
    if (rc)
        return rc;

    size_t field = field_of(key, len);
    if (field == FIELDS)
        return bal_fail(err, BAL_ECORRUPT,
                        "header: unknown key '%.40s' at byte %zu", key, at);
    if (*seen & 1u << field)
        return bal_fail(err, BAL_ECORRUPT,
                        "header: duplicate key '%s' at byte %zu",
                        fields[field].key, at);
    *seen |= 1u << field;
    return fields[field].read(self, tensor, err);
}

static int read_info(parser *self, bal_st_tensor *tensor, bal_error *err)
{
    unsigned seen = 0;
    bool more = false;

    if (bal_scan_peek(&self->scan) != '{')
        return bad(self->scan.at, "an info that is not an object", err);
    int rc = bal_scan_open(&self->scan, '{', err);
    for (bool first = true; !rc; first = false) {
        rc = bal_scan_more(&self->scan, '}', first, &more, err);
        if (rc || !more)
            break;
        rc = read_field(self, tensor, &seen, err);
    }
    for (size_t i = 0; i < FIELDS && !rc; i++) {
        if (!(seen & 1u << i))
            rc = bal_fail(err, BAL_ECORRUPT,
                          "header: '%s' is missing at byte %zu", fields[i].key,
                          self->scan.at);
    }
    return rc;
}

static int check_name(parser *self, size_t at, const char *name, size_t len,
                      bal_error *err)
{
    size_t value = 0;
    bool there = false;

    if (!len)
        return bad(at, "a tensor without a name", err);
    if (len > NAME_LEN_MAX)
        return bad(at, "a name of more than 4096 bytes", err);
    int rc = check_text(at, name, len, err);
    if (!rc)
        rc = bal_map_add(&self->names, name, len, &value, &there, err);
    if (rc)
        return rc;
    if (there)
        return bal_fail(err, BAL_ECORRUPT,
                        "tensor '%.100s': duplicate name at byte %zu", name,
                        at);
    return 0;
}

static int read_tensor(parser *self, size_t at, const char *name, size_t len,
                       bal_error *err)
{
    bal_st_header *to = self->to;
    bal_st_tensor tensor = { .name = name };
    int rc = check_name(self, at, name, len, err);
    if (rc)
        return rc;

    if (to->count == BAL_TENSORS_MAX)
        return bad(at, "more than 1048576 tensors", err);
    if (self->words.used > SCRATCH_MAX)
        bal_arena_done(&self->words);
    self->scan.arena = &self->words;
    rc = read_info(self, &tensor, err);
    self->scan.arena = &to->arena;
    if (rc)
        return bal_within(err, rc, "tensor '%.100s'", name);
    bal_st_tensor *tensors = bal_room_for_one(
        to->tensors, to->count, &self->tensor_room, sizeof(*tensors));
    if (!tensors)
        return bal_fail_memory(err, "reading a header");
    to->tensors = tensors;
    to->tensors[to->count++] = tensor;
    return 0;
}

static int read_pair(parser *self, bal_error *err)
{
    bal_st_header *to = self->to;
    bal_str_pair pair = { 0 };
    size_t len = 0;
    size_t value = 0;
    bool there = false;
    size_t at = self->scan.at;
    int rc = bal_scan_key(&self->scan, &pair.key, &len, err);

    if (!rc)
        rc = check_text(at, pair.key, len, err);
    if (!rc)
        rc = bal_map_add(&self->keys, pair.key, len, &value, &there, err);
    if (!rc && there)
        rc = bad(at, "a duplicate key", err);
    if (!rc && to->metadata_count == BAL_TENSORS_MAX)
        rc = bad(at, "more than 1048576 keys", err);
    if (!rc)
        rc = bal_scan_string(&self->scan, &pair.value, &len, err);
    if (!rc)
        rc = check_text(at, pair.value, len, err);
    if (rc)
        return rc;
    bal_str_pair *pairs = bal_room_for_one(
        to->metadata, to->metadata_count, &self->metadata_room, sizeof(*pairs));
    if (!pairs)
        return bal_fail_memory(err, "reading a header");
    to->metadata = pairs;
    to->metadata[to->metadata_count++] = pair;
    return 0;
}

static int read_metadata(parser *self, size_t at, bal_error *err)
{
    bool more = false;

    if (self->has_metadata)
        return bad(at, "a duplicate __metadata__", err);
    self->has_metadata = true;
    int rc = bal_scan_open(&self->scan, '{', err);
    for (bool first = true; !rc; first = false) {
        rc = bal_scan_more(&self->scan, '}', first, &more, err);
        if (rc || !more)
            break;
        rc = read_pair(self, err);
    }
    return rc ? bal_within(err, rc, "__metadata__") : 0;
}

static int read_member(parser *self, bal_error *err)
{
    static const char metadata[] = "__metadata__";
    const char *name = NULL;
    size_t len = 0;
    size_t at = self->scan.at;
    int rc = bal_scan_key(&self->scan, &name, &len, err);
    if (rc)
        return rc;

    if (len == sizeof(metadata) - 1 && !memcmp(name, metadata, len))
        return read_metadata(self, at, err);
    return read_tensor(self, at, name, len, err);
}

/* Some writers pad with NUL; C readers stop there, others do not. */
static int check_end(parser *self, bal_error *err)
{
    bool over = bal_scan_peek(&self->scan) == '\0';

    if (!over || self->scan.at == self->scan.len)
        return bal_scan_end(&self->scan, err);
    int rc = bad(self->scan.at, "padded with NUL instead of spaces", err);
    return bal_hint(err, rc,
                    "write the file again with a current safetensors library");
}

static int read_json(parser *self, bal_error *err)
{
    bool more = false;

    if (bal_scan_peek(&self->scan) != '{')
        return bad(self->scan.at, "not a JSON object", err);
    int rc = bal_scan_open(&self->scan, '{', err);
    for (bool first = true; !rc; first = false) {
        rc = bal_scan_more(&self->scan, '}', first, &more, err);
        if (rc || !more)
            break;
        rc = read_member(self, err);
    }
    return rc ? rc : check_end(self, err);
}

/* ---- where they lie ----------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const bal_st_tensor *left = a;
    const bal_st_tensor *right = b;

    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    if (left->end != right->end)
        return left->end < right->end ? -1 : 1;
    return strcmp(left->name, right->name);
}

static void sort(bal_st_header *self)
{
    size_t i = 1;

    while (i < self->count &&
           compare(&self->tensors[i - 1], &self->tensors[i]) < 0)
        i++;
    if (i < self->count)
        qsort(self->tensors, self->count, sizeof(*self->tensors), compare);
}

/* Unlike bal_shape_size, a product that overflows before its zero does too. */
static int check_size(const bal_st_tensor *tensor, bal_error *err)
{
    unsigned width = bal_dtype_bits(tensor->dtype);
    uint64_t bits = 0;
    uint64_t count = 1;
    bool fits = true;

    for (uint32_t i = 0; i < tensor->rank && fits; i++)
        fits = bal_mul(&count, count, tensor->shape[i]);
    if (!fits || !bal_mul(&bits, count, width))
        return bal_fail(err, BAL_ECORRUPT, "a shape that overflows");
    if (bits % 8)
        return bal_fail(err, BAL_ECORRUPT,
                        "%" PRIu64 " elements of %u bits do not fill whole "
                        "bytes",
                        count, width);
    if (tensor->end - tensor->begin != bits / 8)
        return bal_fail(err, BAL_ECORRUPT,
                        "the shape takes %" PRIu64
                        " bytes, data_offsets give %" PRIu64,
                        bits / 8, tensor->end - tensor->begin);
    return 0;
}

static int check_place(const bal_st_tensor *tensor, uint64_t from,
                       bal_error *err)
{
    if (tensor->end < tensor->begin)
        return bal_fail(err, BAL_ECORRUPT,
                        "data_offsets run backwards, from %" PRIu64
                        " to %" PRIu64,
                        tensor->begin, tensor->end);
    if (tensor->begin != from)
        return bal_fail(err, BAL_ECORRUPT,
                        "%s: it begins at byte %" PRIu64
                        " of the data, not at %" PRIu64,
                        tensor->begin < from ? "an overlap" : "a hole",
                        tensor->begin, from);
    return check_size(tensor, err);
}

static int check_layout(bal_st_header *self, uint64_t data_size, bal_error *err)
{
    uint64_t end = 0;

    sort(self);
    for (size_t i = 0; i < self->count; i++) {
        int rc = check_place(&self->tensors[i], end, err);
        if (rc)
            return bal_within(err, rc, "tensor '%.100s'",
                              self->tensors[i].name);
        end = self->tensors[i].end;
    }
    self->data_size = end;
    if (data_size == UINT64_MAX || data_size == end)
        return 0;
    return bal_fail(
        err, BAL_ECORRUPT,
        "%s: the tensors take %" PRIu64 " bytes, %" PRIu64 " are there",
        data_size < end ? "cut short" : "trailing bytes", end, data_size);
}

int bal_st_parse(bal_st_header *out, bal_bytes json, uint64_t data_size,
                 const char *what, bal_error *err)
{
    BAL_LOCAL(bal_st_header) header = { .arena.ceiling = ARENA_MAX };
    BAL_LOCAL(parser)
    self = {
        .scan = { .data = json.data, .len = json.len, .what = "header" },
        .to = &header,
    };

    self.scan.arena = &header.arena;
    int rc = json.len > BAL_HEADER_MAX ? bad(BAL_HEADER_MAX, "too long", err)
                                       : read_json(&self, err);
    if (!rc)
        rc = check_layout(&header, data_size, err);
    if (rc)
        return bal_within(err, rc, "%s", what);
    *out = header;
    header = (bal_st_header){ 0 };
    return 0;
}

void bal_st_header_done(bal_st_header *self)
{
    free(self->tensors);
    free(self->metadata);
    bal_arena_done(&self->arena);
    *self = (bal_st_header){ 0 };
}
