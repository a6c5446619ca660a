/* The JSON header, read in one pass. Keys that we do not know are passed over,
 * as both of deltatensors' readers do; a key twice is refused, since readers
 * differ in which one counts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/room.h"
#include "core/str.h"
#include "kernel/dtype.h"
#include "wdelta/file.h"

enum { NAME_MAX_LEN = 4096, DEPTH = 32, KEYS = 16 };

typedef struct parser {
    bal_scan scan;
    bal_wdelta *to;
} parser;

static int bad(const parser *self, const char *why, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "%s: %s at byte %zu", self->scan.what,
                    why, self->scan.at);
}

/* A string that is used as a C string. */
static int read_text(parser *self, const char **out, bal_error *err)
{
    size_t len = 0;

    if (bal_scan_peek(&self->scan) != '"')
        return bad(self, "no text where one is due", err);
    int rc = bal_scan_string(&self->scan, out, &len, err);
    if (rc)
        return rc;
    if (len > NAME_MAX_LEN || memchr(*out, 0, len))
        return bad(self, "a text that is too long or has a NUL", err);
    return 0;
}

/* ---- one tensor --------------------------------------------------------- */

static int read_strategy(parser *self, void *to, bal_error *err)
{
    const char *name = "";
    int rc = read_text(self, &name, err);
    if (rc)
        return rc;
    if (!bal_wd_strategy_find(to, name))
        return bal_fail(err, BAL_EUNSUPPORTED, "%s: unknown strategy '%.100s'",
                        self->scan.what, name);
    return 0;
}

static int read_name(parser *self, void *to, bal_error *err)
{
    return read_text(self, to, err);
}

static int read_count(parser *self, void *to, bal_error *err)
{
    return bal_scan_u64(&self->scan, to, err);
}

static int read_dtype(parser *self, void *to, bal_error *err)
{
    const char *name = "";
    int rc = read_text(self, &name, err);
    if (rc)
        return rc;
    if (!bal_dtype_find(to, name, strlen(name)))
        return bad(self, "an unknown dtype", err);
    return 0;
}

static int read_digest(parser *self, void *to, bal_error *err)
{
    const char *hex = "";
    int rc = read_text(self, &hex, err);
    if (rc)
        return rc;
    if (!bal_hex_valid(hex, BAL_ID_HEX))
        return bad(self, "no digest of 64 hex digits", err);
    return bal_id_parse(to, hex, err);
}

static int read_shape(parser *self, void *to, bal_error *err)
{
    bal_wd_tensor *tensor = to;
    uint64_t shape[BAL_MAX_RANK];
    bool more = false;
    int rc = bal_scan_open(&self->scan, '[', err);
    if (rc)
        return rc;

    for (bool first = true;; first = false) {
        rc = bal_scan_more(&self->scan, ']', first, &more, err);
        if (rc)
            return rc;
        if (!more)
            break;
        if (tensor->rank == BAL_MAX_RANK)
            return bad(self, "too many dimensions", err);
        rc = bal_scan_u64(&self->scan, &shape[tensor->rank++], err);
        if (rc)
            return rc;
    }
    if (!bal_wd_elements(&tensor->n, shape, tensor->rank))
        return bad(self, "a shape that is too large", err);
    size_t size = tensor->rank * sizeof(*shape);
    uint64_t *copy = bal_arena_alloc(&self->to->arena, size);
    if (!copy)
        return bal_fail_memory(err, "reading a .wdelta file");
    if (size)
        memcpy(copy, shape, size);
    tensor->shape = copy;
    return 0;
}

static const struct {
    const char *key;
    size_t offset;
    int (*read)(parser *self, void *to, bal_error *err);
} keys[] = {
    { "strategy", offsetof(bal_wd_tensor, kind), read_strategy },
    { "shape", 0, read_shape },
    { "dtype", offsetof(bal_wd_tensor, dtype), read_name },
    { "base_dtype", offsetof(bal_wd_tensor, base_dtype), read_name },
    { "n_elements", offsetof(bal_wd_tensor, n_elements), read_count },
    { "n_cols", offsetof(bal_wd_tensor, n_columns), read_count },
    { "n_outliers", offsetof(bal_wd_tensor, n_outliers), read_count },
    { "int4_layout", offsetof(bal_wd_tensor, layout), read_count },
    { "tuned_dtype", offsetof(bal_wd_tensor, of), read_dtype },
    { "tuned_digest", offsetof(bal_wd_tensor, digest), read_digest },
};
enum {
    KEY_COUNT = sizeof(keys) / sizeof(keys[0]),
    STRATEGY = 1u << 0,
    SHAPE = 1u << 1,
    DTYPE = 1u << 2,
    OWN = 3u << 8, /* what lossless needs */
};

static int read_value(parser *self, bal_wd_tensor *tensor, const char *key,
                      unsigned *seen, bal_error *err)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (strcmp(keys[i].key, key) != 0)
            continue;
        if (*seen & 1u << i)
            return bad(self, "a key twice", err);
        *seen |= 1u << i;
        return keys[i].read(self, (char *)tensor + keys[i].offset, err);
    }
    return bal_scan_skip(&self->scan, DEPTH, err);
}

static int check_keys(parser *self, const bal_wd_tensor *tensor, unsigned seen,
                      bal_error *err)
{
    unsigned needs = STRATEGY | SHAPE;

    if (tensor->kind == BAL_WD_LOSSLESS)
        needs |= OWN;
    if ((seen & needs) != needs)
        return bal_fail(err, BAL_ECORRUPT,
                        "%s: tensor '%.200s' lacks its strategy, shape or "
                        "dtype",
                        self->scan.what, tensor->name);
    if (tensor->kind != BAL_WD_LOSSLESS && tensor->dtype &&
        strcmp(tensor->dtype, "float32") != 0)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "%s: tensor '%.200s' is a difference of dtype '%.40s', "
                        "not float32",
                        self->scan.what, tensor->name, tensor->dtype);
    return 0;
}

static int read_tensor(parser *self, bal_wd_tensor *tensor, bal_error *err)
{
    unsigned seen = 0;
    bool more = false;
    int rc = bal_scan_open(&self->scan, '{', err);
    if (rc)
        return rc;

    for (bool first = true;; first = false) {
        const char *key = NULL;
        size_t len = 0;
        rc = bal_scan_more(&self->scan, '}', first, &more, err);
        if (rc)
            return rc;
        if (!more)
            return check_keys(self, tensor, seen, err);
        rc = bal_scan_key(&self->scan, &key, &len, err);
        if (rc)
            return rc;
        rc = read_value(self, tensor, key, &seen, err);
        if (rc)
            return rc;
    }
}

/* ---- all of them -------------------------------------------------------- */

static int add_tensor(parser *self, const char *name, size_t len,
                      bal_error *err)
{
    bal_wdelta *to = self->to;
    bal_wd_tensor tensor = { .name = name };
    size_t value = to->count;
    bool there = false;

    if (!len || len > NAME_MAX_LEN || memchr(name, 0, len))
        return bad(self, "a name that is empty, too long or has a NUL", err);
    int rc = read_tensor(self, &tensor, err);
    if (rc)
        return rc;
    bal_wd_tensor *tensors = bal_room_for_one(to->tensors, to->count, &to->room,
                                              sizeof(*to->tensors));
    if (!tensors)
        return bal_fail_memory(err, "reading a .wdelta file");
    to->tensors = tensors;
    rc = bal_map_add(&to->names, name, len, &value, &there, err);
    if (rc)
        return rc;
    if (there)
        return bad(self, "a tensor twice", err);
    to->tensors[to->count++] = tensor;
    return 0;
}

static int read_tensors(parser *self, void *to, bal_error *err)
{
    bool more = false;
    int rc = bal_scan_open(&self->scan, '{', err);
    if (rc)
        return rc;

    (void)to;
    for (bool first = true;; first = false) {
        const char *name = "";
        size_t len = 0;
        rc = bal_scan_more(&self->scan, '}', first, &more, err);
        if (rc || !more)
            return rc;
        rc = bal_scan_key(&self->scan, &name, &len, err);
        if (rc)
            return rc;
        rc = add_tensor(self, name, len, err);
        if (rc)
            return rc;
    }
}

static int read_parent(parser *self, void *to, bal_error *err)
{
    const char *hex = "";
    int rc = read_text(self, &hex, err);
    if (rc)
        return rc;
    if (!bal_hex_valid(hex, 64))
        return bad(self, "a parent_hash that is not 64 hex digits", err);
    *(const char **)to = hex;
    return 0;
}

static const struct {
    const char *key;
    size_t offset;
    int (*read)(parser *self, void *to, bal_error *err);
} tops[] = {
    { "parent_hash", offsetof(bal_wdelta, parent), read_parent },
    { "strategy", offsetof(bal_wdelta, strategy), read_name },
    { "tensors", 0, read_tensors },
};
enum { TOPS = sizeof(tops) / sizeof(tops[0]) };

static int read_top(parser *self, const char *key, unsigned *seen,
                    bal_error *err)
{
    for (size_t i = 0; i < TOPS; i++) {
        if (strcmp(tops[i].key, key) != 0)
            continue;
        if (*seen & 1u << i)
            return bad(self, "a key twice", err);
        *seen |= 1u << i;
        return tops[i].read(self, (char *)self->to + tops[i].offset, err);
    }
    return bal_scan_skip(&self->scan, DEPTH, err);
}

int bal_wd_header_parse(bal_wdelta *to, bal_bytes json, bal_error *err)
{
    parser self = {
        .scan = { json.data, json.len, 0, &to->arena, "header" },
        .to = to,
    };
    unsigned seen = 0;
    bool more = false;
    int rc = bal_scan_open(&self.scan, '{', err);

    for (bool first = true; !rc; first = false) {
        const char *key = NULL;
        size_t len = 0;
        rc = bal_scan_more(&self.scan, '}', first, &more, err);
        if (rc || !more)
            break;
        rc = bal_scan_key(&self.scan, &key, &len, err);
        if (!rc)
            rc = read_top(&self, key, &seen, err);
    }
    if (!rc)
        rc = bal_scan_end(&self.scan, err);
    if (!rc && seen != (1u << TOPS) - 1)
        rc = bad(&self, "no parent_hash, strategy or tensors", err);
    return rc;
}
