/* A .wdelta file (deltatensors, format versions 1 and 2) that is open: what its
 * header says of each tensor, and where its arrays lie. Nothing of the arrays
 * is in memory. docs/format.md, section "wdelta", has the bytes. */
#ifndef WDELTA_FILE_H
#define WDELTA_FILE_H

#include "core/file.h"
#include "core/json.h"
#include "core/map.h"
#include "model/model.h"

#define BAL_WD_MAGIC  "wdelta" /* and a NUL */
#define BAL_WD_FIELDS 5

enum {
    BAL_WD_HEAD = 15,   /* magic, version, length of the header */
    BAL_WD_TRAILER = 32 /* SHA-256 of all before it */
};

/* Elements that are coded at once, of lossless tensors. */
#define BAL_WD_PIECE ((uint64_t)1 << 20)

/* What an array is made of. */
typedef enum bal_wd_number {
    BAL_WD_I64,
    BAL_WD_I32,
    BAL_WD_U32,
    BAL_WD_F32,
    BAL_WD_F16,
    BAL_WD_U8,
    BAL_WD_NUMBERS,
} bal_wd_number;

/* Bytes of one, and numpy's name for it. */
size_t bal_wd_width(bal_wd_number number);
const char *bal_wd_name(bal_wd_number number);

typedef struct bal_wd_array {
    bool there;
    bal_wd_number number;
    uint64_t offset; /* in the file */
    uint64_t count;
} bal_wd_array;

typedef enum bal_wd_kind {
    BAL_WD_SPARSE,
    BAL_WD_QUANTIZED,
    BAL_WD_INT4,
    BAL_WD_LOSSLESS,
    BAL_WD_KINDS,
} bal_wd_kind;

/* The places of arrays in bal_wd_tensor.arrays. */
enum { BAL_WD_INDEX = 0, BAL_WD_VALUES = 1 }; /* sparse, int4 */
enum { BAL_WD_SCALES = 0, BAL_WD_SIGNS = 1 }; /* quantized */
enum { BAL_WD_SCALE = 2, BAL_WD_ZERO = 3, BAL_WD_PACKED = 4 };   /* int4 */
enum { BAL_WD_SIZES = 0, BAL_WD_CODECS = 1, BAL_WD_PIECES = 2 }; /* lossless */

typedef struct bal_wd_tensor {
    const char *name;
    uint32_t rank;
    const uint64_t *shape;
    uint64_t n; /* elements, by the shape */
    bal_wd_kind kind;
    const char *dtype;      /* of the difference: float32 */
    const char *base_dtype; /* NULL: not told */
    uint64_t n_elements, n_columns, n_outliers, layout; /* 0: not told */
    bal_dtype of;  /* lossless: the tuned tensor's */
    bal_id digest; /* lossless: as model/digest.h has it */
    bal_wd_array arrays[BAL_WD_FIELDS];
    bool listed;    /* in order already */
    uint64_t bytes; /* of its arrays */
} bal_wd_tensor;

/* A strategy: its arrays in their order, and what must hold of them. */
typedef struct bal_wd_strategy {
    const char *name;
    struct {
        const char *name; /* NULL: no more */
        unsigned numbers; /* bits of bal_wd_number */
    } fields[BAL_WD_FIELDS];
    /* NULL, or what does not fit. */
    const char *(*wrong)(const bal_wd_tensor *tensor);
} bal_wd_strategy;

/* Borrowed, never NULL for a kind below BAL_WD_KINDS. */
const bal_wd_strategy *bal_wd_strategy_of(bal_wd_kind kind);
bool bal_wd_strategy_find(bal_wd_kind *out, const char *name);

struct bal_wdelta {
    bal_file *file;
    bal_arena arena;
    uint32_t version;
    const char *strategy;
    const char *parent; /* 64 hex digits */
    uint64_t records;   /* where they begin; they end before the trailer */
    bal_wd_tensor *tensors;
    size_t count, room;
    bal_map names;
    size_t *order; /* of tensors, as they first appear among the records */
    size_t order_count;
};

BAL_OWNABLE(bal_wdelta)

/* True if its tensors are stored without loss; they all are, or none is. */
bool bal_wd_exact(const bal_wdelta *self);
/* Elements of a shape; false: too many. */
bool bal_wd_elements(uint64_t *out, const uint64_t *shape, uint32_t rank);
/* The header's JSON into self->tensors. ECORRUPT, EUNSUPPORTED. */
BAL_CHECK int bal_wd_header_parse(bal_wdelta *self, bal_bytes json,
                                  bal_error *err);
/* The records' heads into self->tensors and self->order: each array that the
 * header asks for is there once and of the length that it must have, nothing
 * else is. */
BAL_CHECK int bal_wd_records_walk(bal_wdelta *self, bal_error *err);

#endif
