/* A header made in memory, then tensor by tensor in pieces. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/arith.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "kernel/convert.h"
#include "kernel/kernels.h"
#include "model/elements.h"
#include "model/gguf.h"

enum {
    ALIGN = 32,
    CHUNK = BAL_LORA_RANK_MAX, /* elements */
    TYPE_F32 = 6,              /* of values */
    TYPE_STRING = 8,
    HEADER_MAX = 256 << 20,
};

static const char zeros[ALIGN];

/* A file under another name until it is complete. */
typedef struct sink {
    int fd;
    const char *path;
    bal_buf name; /* empty: published */
} sink;

static void sink_done(sink *self)
{
    if (self->fd >= 0)
        close(self->fd);
    if (self->name.len)
        unlink(self->name.data);
    bal_buf_done(&self->name);
}

static int check_free(const char *path, bal_error *err)
{
    if (bal_path_type_of(path) == BAL_PATH_ABSENT)
        return 0;
    return bal_fail(err, BAL_EEXISTS, "'%s' is there already", path);
}

static int sink_open(sink *self, const char *path, bal_error *err)
{
    uint64_t random = 0;

    self->path = path;
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        random = (uint64_t)bal_clock_now();
    int rc =
        bal_buf_format(&self->name, err, "%s.tmp-%016" PRIx64, path, random);
    if (rc)
        return rc;
    self->fd =
        open(self->name.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (self->fd >= 0)
        return 0;
    rc = bal_fail_errno(err, "making '%s'", path);
    bal_buf_clear(&self->name);
    return rc;
}

static int sink_publish(sink *self, bal_error *err)
{
    int rc = bal_sync_fd(self->fd, self->path, err);
    if (!rc)
        rc = check_free(self->path, err);
    if (!rc)
        rc = bal_rename(self->name.data, self->path, err);
    if (!rc)
        bal_buf_clear(&self->name);
    return rc;
}

/* ---- the header --------------------------------------------------------- */

static int put_u32(bal_buf *to, uint32_t value, bal_error *err)
{
    uint8_t bytes[4];

    bal_put32(bytes, value);
    return bal_buf_append(to, bytes, sizeof(bytes), err);
}

static int put_u64(bal_buf *to, uint64_t value, bal_error *err)
{
    uint8_t bytes[8];

    bal_put64(bytes, value);
    return bal_buf_append(to, bytes, sizeof(bytes), err);
}

static int put_string(bal_buf *to, const char *text, bal_error *err)
{
    int rc = put_u64(to, strlen(text), err);

    return rc ? rc : bal_buf_append(to, text, strlen(text), err);
}

static int put_keys(bal_buf *to, const bal_gguf *self, bal_error *err)
{
    const struct {
        const char *key, *value;
    } texts[] = {
        { "general.type", "adapter" },
        { "general.architecture", self->architecture },
        { "adapter.type", "lora" },
    };
    int rc = 0;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts) && !rc; i++) {
        rc = put_string(to, texts[i].key, err);
        if (!rc)
            rc = put_u32(to, TYPE_STRING, err);
        if (!rc)
            rc = put_string(to, texts[i].value, err);
    }
    if (!rc)
        rc = put_string(to, "adapter.lora.alpha", err);
    if (!rc)
        rc = put_u32(to, TYPE_F32, err);
    return rc ? rc : put_u32(to, bits32(self->alpha), err);
}

static uint64_t padding(uint64_t size)
{
    return (ALIGN - size % ALIGN) % ALIGN;
}

static int put_tensor(bal_buf *to, const bal_gguf_tensor *tensor,
                      uint64_t offset, bal_error *err)
{
    int rc = put_string(to, tensor->name, err);
    if (!rc)
        rc = put_u32(to, 2, err);
    if (!rc)
        rc = put_u64(to, tensor->dims[0], err);
    if (!rc)
        rc = put_u64(to, tensor->dims[1], err);
    if (!rc)
        rc = put_u32(to, tensor->type, err);
    return rc ? rc : put_u64(to, offset, err);
}

static int put_header(bal_buf *to, const bal_gguf *self, bal_error *err)
{
    uint64_t offset = 0;
    int rc = bal_buf_append(to, "GGUF", 4, err);
    if (!rc)
        rc = put_u32(to, 3, err);
    if (!rc)
        rc = put_u64(to, self->count, err);
    if (!rc)
        rc = put_u64(to, 4, err);
    if (!rc)
        rc = put_keys(to, self, err);
    for (size_t i = 0; i < self->count && !rc; i++) {
        const bal_gguf_tensor *tensor = &self->tensors[i];

        rc = put_tensor(to, tensor, offset, err);
        if (!rc &&
            !bal_add(&offset, offset, tensor->size + padding(tensor->size)))
            rc = bal_fail(err, BAL_EINVAL, "tensors of more than 2^64 bytes");
    }
    return rc ? rc : bal_buf_append(to, zeros, padding(to->len), err);
}

/* ---- data --------------------------------------------------------------- */

/* Room of a piece: values, and as they are written. */
typedef struct room {
    double *values, *turned;
    void *bytes;
} room;

static int room_make(room *self, bal_error *err)
{
    self->values = malloc(3 * (size_t)CHUNK * sizeof(*self->values));
    if (!self->values)
        return bal_fail_memory(err, "writing an adapter");
    self->turned = self->values + CHUNK;
    self->bytes = self->turned + CHUNK;
    return 0;
}

static int write_b(const bal_gguf_tensor *tensor, bal_model *adapter, sink *to,
                   room *with, bal_error *err)
{
    size_t width = bal_dtype_bits(tensor->from.dtype) / 8;
    uint64_t total = tensor->size / width;
    int rc = 0;

    for (uint64_t at = 0; at < total && !rc; at += CHUNK) {
        size_t n = (size_t)bal_min(total - at, CHUNK);

        rc = bal_scaled_read(&tensor->from, adapter, at, n, with->bytes, err);
        if (!rc)
            rc = bal_write_all(to->fd, with->bytes, n * width, to->path, err);
    }
    return rc;
}

static int write_values(const bal_gguf_tensor *tensor, const double *values,
                        size_t n, sink *to, room *with, bal_error *err)
{
    bal_dtype dtype = tensor->from.dtype;

    bal_kernels_use()->from_f64[dtype](with->bytes, values, n);
    return bal_write_all(to->fd, with->bytes, n * bal_dtype_bits(dtype) / 8,
                         to->path, err);
}

static int write_a(const bal_gguf_tensor *tensor, bal_model *adapter, sink *to,
                   room *with, bal_error *err)
{
    uint64_t total = tensor->dims[0] * tensor->dims[1];
    int rc = 0;

    for (uint64_t at = 0; at < total && !rc; at += CHUNK) {
        size_t n = (size_t)bal_min(total - at, CHUNK);

        rc = bal_elements_read(with->values, adapter, tensor->from.entry, at, n,
                               err);
        if (!rc)
            rc = write_values(tensor, with->values, n, to, with, err);
    }
    return rc;
}

/* [rank, in] in the adapter, [in, rank] in the file. */
static int write_turned(const bal_gguf_tensor *tensor, bal_model *adapter,
                        sink *to, room *with, bal_error *err)
{
    size_t rank = (size_t)tensor->dims[0];
    uint64_t in = tensor->dims[1];
    size_t most = CHUNK / rank;
    int rc = 0;

    for (uint64_t at = 0; at < in && !rc; at += most) {
        size_t n = (size_t)bal_min(in - at, most);

        for (size_t i = 0; i < rank && !rc; i++) {
            rc = bal_elements_read(with->values, adapter, tensor->from.entry,
                                   i * in + at, n, err);
            for (size_t k = 0; k < n; k++)
                with->turned[k * rank + i] = with->values[k];
        }
        if (!rc)
            rc = write_values(tensor, with->turned, n * rank, to, with, err);
    }
    return rc;
}

static int write_tensor(const bal_gguf_tensor *tensor, bal_model *adapter,
                        sink *to, room *with, bal_error *err)
{
    int rc = tensor->scaled   ? write_b(tensor, adapter, to, with, err)
             : tensor->turned ? write_turned(tensor, adapter, to, with, err)
                              : write_a(tensor, adapter, to, with, err);

    return rc ? rc
              : bal_write_all(to->fd, zeros, padding(tensor->size), to->path,
                              err);
}

static int write_file(const bal_gguf *self, bal_model *adapter,
                      const char *path, bal_error *err)
{
    BAL_LOCAL(bal_buf) header = { .ceiling = HEADER_MAX };
    BAL_LOCAL(sink) to = { .fd = -1 };
    room with = { 0 };
    int rc = put_header(&header, self, err);
    if (!rc)
        rc = sink_open(&to, path, err);
    if (!rc)
        rc = bal_write_all(to.fd, header.data, header.len, path, err);
    if (!rc)
        rc = room_make(&with, err);
    for (size_t i = 0; i < self->count && !rc; i++)
        rc = write_tensor(&self->tensors[i], adapter, &to, &with, err);
    free(with.values);
    return rc ? rc : sink_publish(&to, err);
}

int bal_gguf_write(const char *out, bal_model *adapter, bal_model *base,
                   bal_error *err)
{
    BAL_LOCAL(bal_loras) loras = { 0 };
    BAL_LOCAL(bal_known) known = { 0 };
    BAL_LOCAL(bal_gguf) plan = { 0 };

    if (!base)
        return bal_fail(err, BAL_EINVAL,
                        "a GGUF adapter needs its base, for names and shapes");
    int rc = check_free(out, err);
    if (!rc)
        rc = bal_loras_read(&loras, adapter, err);
    if (!rc)
        rc = bal_known_open(&known, base, err);
    if (!rc)
        rc = bal_gguf_plan(&plan, &loras, adapter, &known, err);
    return rc ? rc : write_file(&plan, adapter, out, err);
}
