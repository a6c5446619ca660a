/* Reading what was stored without loss. Of a piece only its place among the
 * others is looked up, in the array of their sizes; it is decoded whole. */
#include "wdelta/lossless.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"

static const bal_number numbers[BAL_DTYPES] = {
    [BAL_BF16] = BAL_NUMBER_BF16,    [BAL_F16] = BAL_NUMBER_F16,
    [BAL_F32] = BAL_NUMBER_F32,      [BAL_C64] = BAL_NUMBER_F32,
    [BAL_F64] = BAL_NUMBER_F64,      [BAL_F8_E4M3] = BAL_NUMBER_E4M3,
    [BAL_F8_E5M2] = BAL_NUMBER_E5M2, [BAL_U8] = BAL_NUMBER_INT,
    [BAL_I8] = BAL_NUMBER_INT,       [BAL_U16] = BAL_NUMBER_INT,
    [BAL_I16] = BAL_NUMBER_INT,      [BAL_U32] = BAL_NUMBER_INT,
    [BAL_I32] = BAL_NUMBER_INT,      [BAL_U64] = BAL_NUMBER_INT,
    [BAL_I64] = BAL_NUMBER_INT,
};

bal_grain bal_wd_grain(bal_dtype dtype, bal_bytes base)
{
    unsigned width = bal_dtype_bits(dtype) / 8;

    if (dtype == BAL_C64)
        width = 4;
    return (bal_grain){
        .width = (uint8_t)(width ? width : 1),
        .kind = numbers[dtype],
        .base_kind = base.len ? numbers[dtype] : BAL_NUMBER_BYTES,
        .base = base,
    };
}

size_t bal_wd_piece_bytes(bal_dtype dtype, uint64_t n, uint64_t at)
{
    return (size_t)(bal_min(BAL_WD_PIECE, n - at) * bal_dtype_bits(dtype) / 8);
}

/* Entries that the file lacks have the base's entry as tag. */
typedef struct lossless {
    bal_model model;
    bal_model *base;
    const bal_wdelta *file;
} lossless;

static const bal_wd_tensor *tensor_of(const bal_wdelta *file, const char *name)
{
    size_t i = bal_map_find(&file->names, name, strlen(name));

    return i == BAL_NONE ? NULL : &file->tensors[i];
}

/* ---- reading ------------------------------------------------------------ */

/* What it takes to decode pieces of one tensor. */
typedef struct decoder {
    const lossless *self;
    const bal_wd_tensor *tensor;
    size_t base; /* entry; BAL_NONE: coded without one */
    bal_coder *coder;
    uint8_t *payload, *base_bytes, *room; /* a piece each */
    uint8_t *sizes;
} decoder;

static void decoder_done(decoder *self)
{
    bal_coder_free(self->coder);
    free(self->payload);
    free(self->base_bytes);
    free(self->room);
    free(self->sizes);
}

static int corrupt(const decoder *self, const char *why, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "'%s': tensor '%.200s': %s",
                    self->self->file->file->path, self->tensor->name, why);
}

static int decoder_open(decoder *out, size_t pieces, bal_error *err)
{
    const bal_wd_array *sizes = &out->tensor->arrays[BAL_WD_SIZES];
    const bal_file *file = out->self->file->file;
    size_t whole = bal_wd_piece_bytes(out->tensor->of, out->tensor->n, 0);

    out->payload = bal_pages(whole + 1);
    out->base_bytes = bal_pages(whole + 1);
    out->room = bal_pages(whole + 1);
    out->sizes = malloc(4 * pieces + 1);
    if (!out->payload || !out->base_bytes || !out->room || !out->sizes)
        return bal_fail_memory(err, "reading a .wdelta file");
    int rc = bal_coder_new(&out->coder, err);
    return rc ? rc
              : bal_file_read(file, sizes->offset, out->sizes, 4 * pieces, err);
}

static int read_payload(decoder *self, size_t piece, size_t *len,
                        uint8_t *codec, bal_error *err)
{
    const bal_wd_array *arrays = self->tensor->arrays;
    const bal_file *file = self->self->file->file;
    uint64_t at = 0;

    for (size_t i = 0; i < piece; i++)
        at += bal_get32(self->sizes + 4 * i);
    *len = bal_get32(self->sizes + 4 * piece);
    if (at > arrays[BAL_WD_PIECES].count ||
        *len > arrays[BAL_WD_PIECES].count - at ||
        *len > bal_wd_piece_bytes(self->tensor->of, self->tensor->n,
                                  piece * BAL_WD_PIECE))
        return corrupt(self, "a piece that is larger than it may be", err);
    int rc = bal_file_read(file, arrays[BAL_WD_CODECS].offset + piece, codec, 1,
                           err);
    return rc ? rc
              : bal_file_read(file, arrays[BAL_WD_PIECES].offset + at,
                              self->payload, *len, err);
}

/* Piece `piece` into to, all of it. */
static int decode(decoder *self, size_t piece, uint8_t *to, bal_error *err)
{
    uint64_t at = (uint64_t)piece * BAL_WD_PIECE;
    size_t bytes = bal_wd_piece_bytes(self->tensor->of, self->tensor->n, at);
    bal_bytes base = { NULL, 0 };
    size_t len = 0;
    uint8_t codec = 0;
    int rc = read_payload(self, piece, &len, &codec, err);
    if (rc)
        return rc;
    if (self->base != BAL_NONE) {
        rc = bal_model_read(self->self->base, self->base,
                            at * bal_dtype_bits(self->tensor->of) / 8,
                            self->base_bytes, bytes, err);
        base = (bal_bytes){ self->base_bytes, bytes };
    }
    if (rc)
        return rc;
    bal_grain grain = bal_wd_grain(self->tensor->of, base);
    bal_bytes payload = { self->payload, len };
    rc = bal_decode(self->coder, codec, to, bytes, payload, &grain, err);
    if (rc == BAL_EINVAL)
        return corrupt(self, "a piece that needs a base it has not", err);
    return rc ? bal_within(err, rc, "'%s'", self->self->file->file->path) : 0;
}

static int read_pieces(decoder *self, uint64_t offset, uint8_t *to, size_t len,
                       bal_error *err)
{
    size_t whole =
        (size_t)(BAL_WD_PIECE * bal_dtype_bits(self->tensor->of) / 8);
    size_t first = (size_t)(offset / whole);
    size_t last = (size_t)((offset + len - 1) / whole);
    int rc = decoder_open(self, last + 1, err);

    for (size_t piece = first; piece <= last && !rc; piece++) {
        size_t skip = piece == first ? (size_t)(offset % whole) : 0;
        size_t bytes = bal_wd_piece_bytes(self->tensor->of, self->tensor->n,
                                          piece * BAL_WD_PIECE);
        size_t some = (size_t)bal_min(bytes - skip, len);
        bool direct = !skip && some == bytes;
        rc = decode(self, piece, direct ? to : self->room, err);
        if (!rc && !direct)
            memcpy(to, self->room + skip, some);
        to += some;
        len -= some;
    }
    return rc;
}

static int lossless_read(bal_model *model, size_t i, uint64_t offset, void *to,
                         size_t len, bal_error *err)
{
    const lossless *self = (lossless *)model;
    const bal_tensor *entry = bal_model_at(model, i);
    const bal_wd_tensor *tensor = entry->part == BAL_PART_TENSOR
                                      ? tensor_of(self->file, entry->name)
                                      : NULL;
    BAL_LOCAL(decoder) one = { .self = self, .tensor = tensor };

    if (!tensor)
        return bal_model_read(self->base, bal_model_tag(model, i), offset, to,
                              len, err);
    one.base = tensor->base_dtype
                   ? bal_model_find(self->base, BAL_PART_TENSOR, tensor->name)
                   : BAL_NONE;
    return read_pieces(&one, offset, to, len, err);
}

static void lossless_free(bal_model *model)
{
    bal_model_free(((lossless *)model)->base);
}

static const bal_model_ops ops = { .read = lossless_read,
                                   .free = lossless_free };

/* ---- listing ------------------------------------------------------------ */

static int add_tensor(lossless *self, const bal_wd_tensor *tensor,
                      bal_error *err)
{
    const char *name = bal_model_facts(self->base)->name;
    size_t at = bal_model_find(self->base, BAL_PART_TENSOR, tensor->name);
    const bal_tensor entry = {
        .name = tensor->name,
        .dtype = tensor->of,
        .rank = tensor->rank,
        .shape = tensor->shape,
        .tuned = &tensor->digest,
    };

    if (tensor->base_dtype) {
        const bal_tensor *base =
            at == BAL_NONE ? NULL : bal_model_at(self->base, at);
        if (!base || base->dtype != tensor->of ||
            !bal_tensor_same_shape(base, &entry))
            return bal_fail(err, BAL_ECORRUPT,
                            "'%s' is not the base of '%s': it has another "
                            "tensor '%.200s', or none",
                            name ? name : "base", self->file->file->path,
                            tensor->name);
    }
    return bal_model_add(&self->model, &entry, BAL_NONE, err);
}

static int list(lossless *self, bal_error *err)
{
    bal_facts facts = *bal_model_facts(self->base);

    facts.kind = BAL_KIND_WEIGHTS;
    int rc = bal_model_tell(&self->model, &facts, err);
    for (size_t i = 0; i < self->file->count && !rc; i++)
        rc = add_tensor(self, &self->file->tensors[i], err);
    for (size_t i = 0; i < bal_model_count(self->base) && !rc; i++) {
        bal_tensor entry = *bal_model_at(self->base, i);
        if (entry.form != BAL_FORM_WHOLE)
            return bal_fail(err, BAL_EINVAL,
                            "a base that is a difference to a base itself");
        if (entry.part == BAL_PART_TENSOR && tensor_of(self->file, entry.name))
            continue;
        entry.tuned = NULL;
        rc = bal_model_add(&self->model, &entry, i, err);
    }
    return rc ? rc : bal_model_ready(&self->model, err);
}

int bal_wd_lossless(bal_model **out, bal_model *base, const bal_wdelta *file,
                    bal_error *err)
{
    lossless *self = bal_model_alloc(sizeof(*self), &ops);
    if (!self)
        return bal_fail_memory(err, "reading a .wdelta file");
    BAL_OWN(bal_model) model = &self->model;

    self->base = bal_model_ref(base);
    self->file = file;
    int rc = list(self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}
