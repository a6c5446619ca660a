/* Keys in the order in which deltatensors writes them, so that the same model
 * gives the same bytes where nothing is left to choose. */
#include "wdelta/layout.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"

/* ---- arrays ------------------------------------------------------------- */

typedef struct field {
    bal_wd_number number;
    uint64_t count;
} field;

static void fields_sparse(field *to, const bal_wd_plan *plan)
{
    to[BAL_WD_INDEX] = (field){ plan->index, plan->kept };
    to[BAL_WD_VALUES] = (field){ plan->value, plan->kept };
}

static void fields_quantized(field *to, const bal_wd_plan *plan)
{
    to[BAL_WD_SCALES] = (field){ BAL_WD_F16, plan->n / plan->columns };
    to[BAL_WD_SIGNS] = (field){ BAL_WD_U8, plan->n / 8 + (plan->n % 8 != 0) };
}

static void fields_int4(field *to, const bal_wd_plan *plan)
{
    uint64_t codes = plan->n - plan->kept;

    fields_sparse(to, plan);
    to[BAL_WD_SCALE] = (field){ BAL_WD_F16, 1 };
    to[BAL_WD_ZERO] = (field){ BAL_WD_F16, 1 };
    to[BAL_WD_PACKED] = (field){ BAL_WD_U8, codes / 2 + codes % 2 };
}

static void fields_lossless(field *to, const bal_wd_plan *plan)
{
    to[BAL_WD_SIZES] = (field){ BAL_WD_U32, bal_wd_pieces(plan) };
    to[BAL_WD_CODECS] = (field){ BAL_WD_U8, bal_wd_pieces(plan) };
    to[BAL_WD_PIECES] = (field){ BAL_WD_U8, plan->payload };
}

/* ---- the header --------------------------------------------------------- */

static void number(bal_json *json, const char *key, uint64_t value)
{
    bal_json_key(json, key);
    bal_json_u64(json, value);
}

static void json_sparse(bal_json *json, const bal_wd_plan *plan)
{
    bal_json_key(json, "sparsity");
    bal_json_f64(json, plan->setting);
}

static void json_quantized(bal_json *json, const bal_wd_plan *plan)
{
    number(json, "n_elements", plan->n);
    number(json, "n_cols", plan->columns);
}

static void json_int4(bal_json *json, const bal_wd_plan *plan)
{
    bal_json_key(json, "outlier_fraction");
    bal_json_f64(json, plan->setting);
    number(json, "n_elements", plan->n);
    number(json, "n_outliers", plan->kept);
}

static void json_lossless(bal_json *json, const bal_wd_plan *plan)
{
    char hex[BAL_ID_HEX + 1];

    number(json, "n_elements", plan->n);
    bal_id_hex(hex, &plan->digest);
    bal_json_key(json, "tuned_digest");
    bal_json_string(json, hex);
}

static const struct {
    void (*fields)(field *to, const bal_wd_plan *plan);
    void (*json)(bal_json *json, const bal_wd_plan *plan);
} rows[] = {
    [BAL_WD_SPARSE] = { fields_sparse, json_sparse },
    [BAL_WD_QUANTIZED] = { fields_quantized, json_quantized },
    [BAL_WD_INT4] = { fields_int4, json_int4 },
    [BAL_WD_LOSSLESS] = { fields_lossless, json_lossless },
};

/* The names that deltatensors has for dtypes; of others, safetensors'. */
static const char *const dtypes[BAL_DTYPES] = {
    [BAL_BOOL] = "bool",
    [BAL_U8] = "uint8",
    [BAL_I8] = "int8",
    [BAL_U16] = "uint16",
    [BAL_I16] = "int16",
    [BAL_U32] = "uint32",
    [BAL_I32] = "int32",
    [BAL_U64] = "uint64",
    [BAL_I64] = "int64",
    [BAL_F8_E4M3] = "float8_e4m3fn",
    [BAL_F8_E5M2] = "float8_e5m2",
    [BAL_F16] = "float16",
    [BAL_BF16] = "bfloat16",
    [BAL_F32] = "float32",
    [BAL_F64] = "float64",
};

static void json_dtypes(bal_json *json, const bal_wd_plan *plan,
                        const bal_tensor *entry)
{
    const char *name = dtypes[entry->dtype];

    name = name ? name : bal_dtype_name(entry->dtype);
    bal_json_key(json, "dtype");
    bal_json_string(json, plan->kind == BAL_WD_LOSSLESS ? name : "float32");
    if (plan->kind != BAL_WD_LOSSLESS)
        return;
    if (plan->anchored) {
        bal_json_key(json, "base_dtype");
        bal_json_string(json, name);
    }
    bal_json_key(json, "tuned_dtype");
    bal_json_string(json, bal_dtype_name(entry->dtype));
}

static void json_tensor(bal_json *json, const bal_wd_layout *self,
                        const bal_wd_plan *plan)
{
    const bal_tensor *entry = bal_model_at(self->tuned, plan->tuned);
    const bal_wd_strategy *strategy = bal_wd_strategy_of(plan->kind);

    bal_json_key(json, plan->name);
    bal_json_object(json);
    bal_json_key(json, "strategy");
    bal_json_string(json, strategy->name);
    bal_json_key(json, "shape");
    bal_json_array(json);
    for (uint32_t i = 0; i < entry->rank; i++)
        bal_json_u64(json, entry->shape[i]);
    bal_json_close(json);
    json_dtypes(json, plan, entry);
    rows[plan->kind].json(json, plan);
    for (size_t i = 0; i < BAL_WD_FIELDS && strategy->fields[i].name; i++) {
        bal_json_key(json, strategy->fields[i].name);
        bal_json_object(json);
        bal_json_key(json, "_ref");
        bal_json_string(json, strategy->fields[i].name);
        bal_json_close(json);
    }
    bal_json_close(json);
}

static int compare_names(const void *a, const void *b)
{
    const bal_wd_plan *const *left = a;
    const bal_wd_plan *const *right = b;

    return strcmp((*left)->name, (*right)->name);
}

/* Tensors by name, whatever the order of the records. */
static int json_tensors(bal_json *json, const bal_wd_layout *self,
                        bal_error *err)
{
    const bal_wd_plan **sorted =
        calloc(self->count + 1, sizeof(const bal_wd_plan *));
    if (!sorted)
        return bal_fail_memory(err, "writing a .wdelta file");

    for (size_t i = 0; i < self->count; i++)
        sorted[i] = &self->plans[i];
    qsort(sorted, self->count, sizeof(const bal_wd_plan *), compare_names);
    for (size_t i = 0; i < self->count; i++)
        json_tensor(json, self, sorted[i]);
    free(sorted);
    return 0;
}

static int make_start(bal_wd_layout *self, bal_error *err)
{
    uint8_t head[BAL_WD_HEAD] = { 0 };
    bal_json json;
    int rc = bal_buf_append(&self->start, head, sizeof(head), err);
    if (rc)
        return rc;

    bal_json_begin(&json, &self->start, 0);
    bal_json_object(&json);
    bal_json_key(&json, "parent_hash");
    bal_json_string(&json, self->parent);
    bal_json_key(&json, "strategy");
    bal_json_string(&json, self->strategy);
    bal_json_key(&json, "tensors");
    bal_json_object(&json);
    rc = json_tensors(&json, self, err);
    bal_json_close(&json);
    bal_json_close(&json);
    if (!rc)
        rc = bal_json_end(&json, err);
    if (rc)
        return rc;
    uint8_t *to = (uint8_t *)self->start.data;
    memcpy(to, BAL_WD_MAGIC, sizeof(BAL_WD_MAGIC));
    bal_put32(to + 7, self->version);
    bal_put32(to + 11, (uint32_t)(self->start.len - BAL_WD_HEAD));
    return 0;
}

/* ---- records ------------------------------------------------------------ */

static int put_text(bal_buf *to, const char *text, bal_error *err)
{
    uint8_t len[4];

    bal_put32(len, (uint32_t)strlen(text));
    int rc = bal_buf_append(to, len, sizeof(len), err);
    return rc ? rc : bal_buf_text(to, text, err);
}

static int put_head(bal_buf *to, const char *name, const char *what,
                    const field *from, bal_error *err)
{
    uint8_t shape[20];
    int rc = put_text(to, name, err);
    if (!rc)
        rc = put_text(to, what, err);
    if (!rc)
        rc = put_text(to, bal_wd_name(from->number), err);
    bal_put32(shape, 1);
    bal_put64(shape + 4, from->count);
    bal_put64(shape + 12, from->count * bal_wd_width(from->number));
    return rc ? rc : bal_buf_append(to, shape, sizeof(shape), err);
}

static size_t head_len(const char *name, const char *what, const field *from)
{
    return 12 + strlen(name) + strlen(what) +
           strlen(bal_wd_name(from->number)) + 20;
}

uint64_t bal_wd_layout_place(bal_wd_plan *plan, uint64_t at)
{
    const bal_wd_strategy *strategy = bal_wd_strategy_of(plan->kind);
    field fields[BAL_WD_FIELDS] = { { 0, 0 } };

    rows[plan->kind].fields(fields, plan);
    for (size_t i = 0; i < BAL_WD_FIELDS && strategy->fields[i].name; i++) {
        at += head_len(plan->name, strategy->fields[i].name, &fields[i]);
        plan->offsets[i] = at;
        at += fields[i].count * bal_wd_width(fields[i].number);
    }
    return at;
}

int bal_wd_layout_make(bal_wd_layout *self, bal_error *err)
{
    bal_buf_clear(&self->start);
    int rc = make_start(self, err);

    self->size = self->start.len;
    for (size_t i = 0; i < self->count && !rc; i++)
        self->size = bal_wd_layout_place(&self->plans[i], self->size);
    self->size += BAL_WD_TRAILER;
    if (!rc && self->size > INT64_MAX)
        rc = bal_fail(err, BAL_EINVAL, "a .wdelta file of over 2^63 bytes");
    return rc;
}

/* ---- writing ------------------------------------------------------------ */

static int write_heads(const bal_wd_plan *plan, int fd, bal_error *err)
{
    const bal_wd_strategy *strategy = bal_wd_strategy_of(plan->kind);
    field fields[BAL_WD_FIELDS] = { { 0, 0 } };
    BAL_LOCAL(bal_buf) head = { 0 };
    int rc = 0;

    rows[plan->kind].fields(fields, plan);
    for (size_t i = 0; i < BAL_WD_FIELDS && strategy->fields[i].name; i++) {
        bal_buf_clear(&head);
        rc = put_head(&head, plan->name, strategy->fields[i].name, &fields[i],
                      err);
        if (!rc)
            rc = bal_wd_pwrite(fd, plan->offsets[i] - head.len, head.data,
                               head.len, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int write_half(const bal_wd_plan *plan, size_t i, uint16_t half, int fd,
                      bal_error *err)
{
    uint8_t bytes[2] = { (uint8_t)half, (uint8_t)(half >> 8) };

    return bal_wd_pwrite(fd, plan->offsets[i], bytes, sizeof(bytes), err);
}

static int write_sizes(const bal_wd_plan *plan, int fd, bal_error *err)
{
    uint8_t bytes[4];
    int rc = bal_wd_pwrite(fd, plan->offsets[BAL_WD_CODECS], plan->codecs,
                           bal_wd_pieces(plan), err);

    for (size_t i = 0; i < bal_wd_pieces(plan) && !rc; i++) {
        bal_put32(bytes, plan->sizes[i]);
        rc = bal_wd_pwrite(fd, plan->offsets[BAL_WD_SIZES] + 4 * i, bytes,
                           sizeof(bytes), err);
    }
    return rc;
}

static int write_small(const bal_wd_plan *plan, int fd, bal_error *err)
{
    if (plan->kind == BAL_WD_LOSSLESS)
        return write_sizes(plan, fd, err);
    if (plan->kind != BAL_WD_INT4)
        return 0;
    int rc = write_half(plan, BAL_WD_SCALE, plan->scale, fd, err);
    return rc ? rc : write_half(plan, BAL_WD_ZERO, plan->zero, fd, err);
}

int bal_wd_layout_write(const bal_wd_layout *self, int fd, bal_error *err)
{
    int rc = bal_wd_pwrite(fd, 0, self->start.data, self->start.len, err);

    for (size_t i = 0; i < self->count && !rc; i++) {
        rc = write_heads(&self->plans[i], fd, err);
        if (!rc)
            rc = write_small(&self->plans[i], fd, err);
    }
    return rc;
}

void bal_wd_layout_done(bal_wd_layout *self)
{
    bal_buf_done(&self->start);
}
