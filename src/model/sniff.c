/* The first bytes of a file: how long its header is, or what it is instead of
 * safetensors, by rows of magic bytes. Most people who are refused here have
 * cloned a repository without git-lfs, or renamed what torch.save made. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "model/safetensors.h"

/* What a file is that is not what its name says. */
typedef struct sniffed {
    const char *what; /* "a git-lfs pointer" */
    const char *hint; /* what to do about it */
} sniffed;

typedef struct row {
    const char *magic;
    size_t len;
    bool text; /* white space before it and upper case do not matter */
    sniffed is;
} row;

static const char convert[] = "convert it to safetensors first; ballast does "
                              "not run pickles";
static const char again[] = "download it again; what came was a page or a "
                            "message, not the file";

static const row rows[] = {
    { "version https://git-lfs",
      23,
      false,
      { "a git-lfs pointer, not the file itself",
        "fetch the file: git lfs install && git lfs pull" } },
    { "PK\3\4",
      4,
      false,
      { "a zip archive (PyTorch's .bin or .pt)", convert } },
    { "PK\5\6", 4, false, { "an empty zip archive", convert } },
    { "\200\2", 2, false, { "a Python pickle (PyTorch's .bin)", convert } },
    { "\200\3", 2, false, { "a Python pickle (PyTorch's .bin)", convert } },
    { "\200\4\225", 3, false, { "a Python pickle (PyTorch's .bin)", convert } },
    { "\200\5\225", 3, false, { "a Python pickle (PyTorch's .bin)", convert } },
    { "GGUF",
      4,
      false,
      { "a GGUF file", "use the safetensors that it was made from" } },
    { "\211HDF", 4, false, { "an HDF5 file (Keras)", convert } },
    { "\223NUMPY", 6, false, { "a NumPy array", convert } },
    { "\37\213", 2, false, { "a gzip file", "unpack it first" } },
    { "\50\265\57\375", 4, false, { "a zstd file", "unpack it first" } },
    { "<!doctype html", 14, true, { "an HTML page", again } },
    { "<html", 5, true, { "an HTML page", again } },
    { "<?xml", 5, true, { "an XML page", again } },
    { "{", 1, true, { "JSON text", again } },
    { "\0\0\0\0\0\0\0\0",
      8,
      false,
      { "filled with NUL bytes",
        "download it again; it was made room for and never written" } },
};

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

static bool matches(const row *self, const uint8_t *head, size_t len)
{
    while (self->text && len && is_space(*head)) {
        head++;
        len--;
    }
    if (len < self->len)
        return false;
    if (!self->text)
        return !memcmp(head, self->magic, self->len);
    for (size_t i = 0; i < self->len; i++) {
        if (lower(head[i]) != (uint8_t)self->magic[i])
            return false;
    }
    return true;
}

/* NULL: none of those that are known. */
static const sniffed *sniff(const void *head, size_t len)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (matches(&rows[i], head, len))
            return &rows[i].is;
    }
    return NULL;
}

static int refuse(const void *head, size_t len, const char *what,
                  const char *why, bal_error *err)
{
    const sniffed *is = sniff(head, len);

    if (!is)
        return bal_fail(err, BAL_ECORRUPT, "%s: not a safetensors file: %s",
                        what, why);
    int rc = bal_fail(err, BAL_ECORRUPT, "%s is %s", what, is->what);
    return bal_hint(err, rc, "%s", is->hint);
}

int bal_st_length(uint64_t *out, const void *head, size_t len, uint64_t size,
                  const char *what, bal_error *err)
{
    const uint8_t *bytes = head;
    char why[128];

    if (size < 8 || len < 8)
        return refuse(head, len, what, "shorter than 8 bytes", err);
    uint64_t length = bal_get64(head);
    if (length > BAL_HEADER_MAX) {
        snprintf(why, sizeof(why),
                 "it claims a header of %" PRIu64 " bytes, over %u", length,
                 BAL_HEADER_MAX);
        return refuse(head, len, what, why, err);
    }
    if (length > size - 8) {
        snprintf(why, sizeof(why),
                 "it claims a header of %" PRIu64 " bytes, but only %" PRIu64
                 " follow",
                 length, size - 8);
        return refuse(head, len, what, why, err);
    }
    if (length < 2)
        return refuse(head, len, what, "its header is empty", err);
    if (len > 8 && bytes[8] != '{' && !is_space(bytes[8]))
        return refuse(head, len, what, "its header is not a JSON object", err);
    *out = length;
    return 0;
}
