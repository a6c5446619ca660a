/* The strategies as rows: whoever adds one adds its arrays and what must hold
 * of them here, and how it is read in decode.c. */
#include <string.h>

#include "kernel/dtype.h"
#include "wdelta/file.h"

static const struct {
    const char *name;
    size_t width;
} numbers[] = {
    [BAL_WD_I64] = { "int64", 8 },   [BAL_WD_I32] = { "int32", 4 },
    [BAL_WD_U32] = { "uint32", 4 },  [BAL_WD_F32] = { "float32", 4 },
    [BAL_WD_F16] = { "float16", 2 }, [BAL_WD_U8] = { "uint8", 1 },
};
_Static_assert(sizeof(numbers) / sizeof(numbers[0]) == BAL_WD_NUMBERS,
               "a row a number");

size_t bal_wd_width(bal_wd_number number)
{
    return numbers[number].width;
}

const char *bal_wd_name(bal_wd_number number)
{
    return numbers[number].name;
}

/* ceil(n / by). */
static uint64_t groups(uint64_t n, uint64_t by)
{
    return n / by + (n % by != 0);
}

static const char *wrong_sparse(const bal_wd_tensor *tensor)
{
    const bal_wd_array *index = &tensor->arrays[BAL_WD_INDEX];

    if (index->count > tensor->n)
        return "more indices than elements";
    if (index->count != tensor->arrays[BAL_WD_VALUES].count)
        return "not as many values as indices";
    return NULL;
}

static const char *wrong_quantized(const bal_wd_tensor *tensor)
{
    uint64_t columns = tensor->n_columns;

    if (tensor->n_elements != tensor->n)
        return "n_elements is not what the shape says";
    if (!columns || tensor->n % columns)
        return "n_cols does not divide the elements";
    if (tensor->arrays[BAL_WD_SCALES].count != tensor->n / columns)
        return "not one scale a row";
    if (tensor->arrays[BAL_WD_SIGNS].count != groups(tensor->n, 8))
        return "not one sign an element";
    return NULL;
}

static const char *wrong_int4(const bal_wd_tensor *tensor)
{
    const bal_wd_array *arrays = tensor->arrays;
    uint64_t outliers = arrays[BAL_WD_INDEX].count;

    if (tensor->n_elements != tensor->n)
        return "n_elements is not what the shape says";
    if (outliers > tensor->n || outliers != tensor->n_outliers)
        return "n_outliers is not what the arrays say";
    if (outliers != arrays[BAL_WD_VALUES].count)
        return "not as many values as indices";
    if (arrays[BAL_WD_SCALE].count != 1 || arrays[BAL_WD_ZERO].count != 1)
        return "not one scale and one zero point";
    uint64_t codes = tensor->layout >= 2 ? tensor->n : tensor->n - outliers;
    if (arrays[BAL_WD_PACKED].count != groups(codes, 2))
        return "not one code an element";
    return NULL;
}

static const char *wrong_lossless(const bal_wd_tensor *tensor)
{
    uint64_t pieces = groups(tensor->n, BAL_WD_PIECE);

    if (tensor->arrays[BAL_WD_SIZES].count != pieces ||
        tensor->arrays[BAL_WD_CODECS].count != pieces)
        return "not one size and codec a piece";
    return NULL;
}

enum {
    INDEXES = 1u << BAL_WD_I64 | 1u << BAL_WD_I32 | 1u << BAL_WD_U32,
    FLOATS = 1u << BAL_WD_F32 | 1u << BAL_WD_F16,
    HALVES = 1u << BAL_WD_F16,
    BYTES = 1u << BAL_WD_U8,
    SIZES = 1u << BAL_WD_U32,
};

static const bal_wd_strategy rows[] = {
    [BAL_WD_SPARSE] = {
        .name = "sparse",
        .fields = { { "indices", INDEXES }, { "values", FLOATS } },
        .wrong = wrong_sparse,
    },
    [BAL_WD_QUANTIZED] = {
        .name = "quantized",
        .fields = { { "scales", FLOATS }, { "packed_signs", BYTES } },
        .wrong = wrong_quantized,
    },
    [BAL_WD_INT4] = {
        .name = "int4",
        .fields = { { "outlier_idx", INDEXES }, { "outlier_vals", FLOATS },
                    { "scale", HALVES }, { "zero_point", HALVES },
                    { "packed", BYTES } },
        .wrong = wrong_int4,
    },
    [BAL_WD_LOSSLESS] = {
        .name = "lossless",
        .fields = { { "sizes", SIZES }, { "codecs", BYTES },
                    { "pieces", BYTES } },
        .wrong = wrong_lossless,
    },
};
_Static_assert(sizeof(rows) / sizeof(rows[0]) == BAL_WD_KINDS,
               "a row a strategy");

const bal_wd_strategy *bal_wd_strategy_of(bal_wd_kind kind)
{
    return &rows[kind];
}

bool bal_wd_strategy_find(bal_wd_kind *out, const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        *out = (bal_wd_kind)i;
        return true;
    }
    return false;
}

bool bal_wd_exact(const bal_wdelta *self)
{
    return self->count && self->tensors[0].kind == BAL_WD_LOSSLESS;
}

bool bal_wd_elements(uint64_t *out, const uint64_t *shape, uint32_t rank)
{
    uint64_t bytes = 0;

    /* 8 bytes each, so that no count of bytes overflows later. */
    return bal_shape_size(out, &bytes, BAL_U64, shape, rank) &&
           bytes <= INT64_MAX;
}
