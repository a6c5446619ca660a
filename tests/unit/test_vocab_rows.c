/* Rows as they are read: dtypes, means, what goes beyond the vocabulary, any
 * range by any thread. Bits that are wanted are those of torch 2.13 on a CPU,
 * in one thread. */
#include <stdlib.h>
#include <string.h>

#include "core/pool.h"
#include "kernel/kernels.h"
#include "merge/vocab.h"
#include "support/check.h"
#include "support/memory_model.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const char embed[] = "model.embed_tokens.weight";

/* Tokens t<first> … t<first + count - 1>, by ids from 0 on. */
static void put_words(bal_model *model, size_t first, size_t count)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    CHECK_OK(bal_buf_text(&text, "{\"model\":{\"vocab\":{", &check_err));
    for (size_t i = 0; i < count; i++)
        CHECK_OK(bal_buf_format(&text, &check_err, "%s\"t%zu\":%zu",
                                i ? "," : "", first + i, i));
    CHECK_OK(bal_buf_text(&text, "}}}", &check_err));
    memory_file(model, BAL_PART_FILE, "tokenizer.json", text.data, text.len);
}

/* Multiples of 2^-24 in -0.5 … 0.5. */
static double value_of(uint64_t i)
{
    return (double)((i * 2654435761u & UINT32_MAX) >> 8) / 16777216.0 - 0.5;
}

/* width 0: a tensor of one dimension. */
static bal_model *made(size_t first, size_t count, size_t width,
                       bal_dtype dtype)
{
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, "m");
    uint64_t shape[2] = { count, width };
    size_t n = count * (width ? width : 1);
    double *values = malloc(n * sizeof(*values));
    void *raw = malloc(n * sizeof(*values));

    CHECK(values && raw);
    for (size_t i = 0; i < n; i++)
        values[i] = value_of(i);
    bal_kernels_use()->from_f64[dtype](raw, values, n);
    memory_tensor(model, embed, dtype, width ? 2 : 1, shape, raw);
    put_words(model, first, count);
    memory_finish(model);
    free(values);
    free(raw);
    return model;
}

static size_t found(bal_model *model)
{
    size_t i = bal_model_find(model, BAL_PART_TENSOR, embed);

    CHECK(i != BAL_NONE);
    return i;
}

/* ---- beyond the vocabulary ------------------------------------------------
 */

typedef struct pad_row {
    const char *name;
    size_t rows, width;
    bal_dtype dtype;
    uint64_t sum; /* of the bits, each times a power of FNV's prime */
} pad_row;

/* torch.mean(x, dim=0) of x[i] = value_of(i). */
static const pad_row pads[] = {
    { "F32, a block and some", 50, 37, BAL_F32, 0x5e55184516efdbbb },
    { "F32, few", 3, 5, BAL_F32, 0xdee5b8e5fe2d634a },
    { "F32, narrow", 2000, 6, BAL_F32, 0xce790b494d75656c },
    { "F32, long chains", 70000, 33, BAL_F32, 0xee472f1b4aeefeb0 },
    { "F32, narrow, rows left over", 2003, 6, BAL_F32, 0xaa68a513616def82 },
    { "F32, nearly a run and two", 62, 6, BAL_F32, 0x89b6e1b7069bf4dd },
    { "F32, rows left over", 2003, 37, BAL_F32, 0xca64ac06ddf5cb24 },
    { "F64, rows left over", 4099, 21, BAL_F64, 0xda18acc818d02e2b },
    { "BF16", 300, 40, BAL_BF16, 0xd620a35cf877156d },
    { "F64", 300, 18, BAL_F64, 0x6d75b3c4e7cc2f0c },
    { "F32, one dimension", 1000, 0, BAL_F32, 0xb7c64873 },
    { "BF16, one dimension", 1000, 0, BAL_BF16, 0xb7fb },
    { "F32, one column", 100, 1, BAL_F32, 0xbbefc92f },
};

static uint64_t sum_bits(const uint8_t *raw, size_t width, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        for (size_t k = width; k-- > 0;)
            bits = bits << 8 | raw[i * width + k];
        sum = sum * 1099511628211u + bits;
    }
    return sum;
}

static void read_row(uint8_t *to, bal_model *model, size_t row, size_t bytes)
{
    uint8_t *all = malloc(bal_model_at(model, found(model))->size);

    CHECK(all != NULL);
    CHECK_OK(bal_model_read(model, found(model), 0, all,
                            bal_model_at(model, found(model))->size,
                            &check_err));
    memcpy(to, all + row * bytes, bytes);
    free(all);
}

static void rows_beyond_the_vocabulary_are_torchs_mean(void)
{
    for (size_t i = 0; i < COUNT(pads); i++) {
        const pad_row *pad = &pads[i];
        bal_model *model = made(0, pad->rows, pad->width, pad->dtype);
        bal_model *out = NULL;
        size_t width = bal_dtype_bits(pad->dtype) / 8;
        size_t n = pad->width ? pad->width : 1;
        bal_vocab_want want = { .mergekit = true, .multiple = pad->rows + 2 };
        uint8_t row[512];

        check_row(pad->name);
        CHECK_OK(bal_vocab_open(&out, &want, &model, 1, BAL_NONE, &check_err));
        CHECK(bal_model_at(out, found(out))->shape[0] == pad->rows + 2);
        for (size_t k = 0; k < 2; k++) {
            read_row(row, out, pad->rows + k, n * width);
            CHECK(sum_bits(row, width, n) == pad->sum);
        }
        bal_model_free(model);
        bal_model_free(out);
    }
}

/* Sums of multiples of one number are exact, in whatever order. */
static void precise_means_of_rows_are_rounded_once(void)
{
    bal_model *model = made(0, 4096, 2, BAL_BF16);
    bal_model *out = NULL;
    bal_vocab_want want = { .multiple = 8192 };
    bal_vocab_want even = { .multiple = 4096 };
    uint16_t raw[8];
    double values[2], sums[2] = { 0 };
    double wanted[2];

    for (uint64_t i = 0; i < 8192; i++) {
        double one = value_of(i);
        bal_kernels_use()->from_f64[BAL_BF16](raw, &one, 1);
        bal_kernels_use()->to_f64[BAL_BF16](&one, raw, 1);
        sums[i % 2] += one;
    }
    for (size_t i = 0; i < 2; i++)
        wanted[i] = sums[i] / 4096;
    bal_kernels_use()->from_f64[BAL_BF16](raw, wanted, 2);
    bal_kernels_use()->to_f64[BAL_BF16](wanted, raw, 2);
    CHECK_OK(bal_vocab_open(&out, &even, &model, 1, BAL_NONE, &check_err));
    CHECK(bal_model_at(out, found(out))->shape[0] == 4096);
    bal_model_free(out);
    want.multiple = 4097;
    CHECK_OK(bal_vocab_open(&out, &want, &model, 1, BAL_NONE, &check_err));
    CHECK_OK(bal_model_read(out, found(out), 4096 * 2 * 2, raw, 4, &check_err));
    bal_kernels_use()->to_f64[BAL_BF16](values, raw, 2);
    CHECK(values[0] == wanted[0] && values[1] == wanted[1]);
    bal_model_free(model);
    bal_model_free(out);
}

/* ---- means of a token, dtypes
 * ------------------------------------------------ */

static bal_model *single(size_t first, bal_dtype dtype, double value)
{
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, "m");
    uint64_t shape[2] = { 1, 1 };
    double raw;

    bal_kernels_use()->from_f64[dtype](&raw, &value, 1);
    memory_tensor(model, embed, dtype, 2, shape, &raw);
    put_words(model, first, 1);
    memory_finish(model);
    return model;
}

/* The row of t1 in front of a model that has t0 alone. */
static double mean_of(const double *values, bal_dtype dtype, bool mergekit)
{
    bal_model *models[] = { single(0, dtype, 7), single(1, dtype, values[0]),
                            single(1, dtype, values[1]),
                            single(1, dtype, values[2]) };
    bal_model *out[4] = { NULL };
    bal_vocab_want want = { .mergekit = mergekit };
    double raw[2], got[2];

    CHECK_OK(bal_vocab_open(out, &want, models, 4, BAL_NONE, &check_err));
    CHECK(bal_model_at(out[0], found(out[0]))->dtype == dtype);
    CHECK_OK(bal_model_read(out[0], found(out[0]), 0, raw,
                            bal_model_at(out[0], found(out[0]))->size,
                            &check_err));
    bal_kernels_use()->to_f64[dtype](got, raw, 2);
    for (size_t i = 0; i < 4; i++) {
        bal_model_free(models[i]);
        bal_model_free(out[i]);
    }
    CHECK(got[0] == 7);
    return got[1];
}

static void a_mean_is_rounded_at_each_step_or_once(void)
{
    static const double values[] = { 1.0078125, 256, 1.0078125 };

    CHECK(mean_of(values, BAL_BF16, true) == 86.5);
    CHECK(mean_of(values, BAL_BF16, false) == 86);
    CHECK(mean_of(values, BAL_F64, true) == 258.015625 / 3);
}

static void the_common_dtype_holds_what_all_have(void)
{
    static const struct {
        bal_dtype a, b, want;
    } rows[] = {
        { BAL_BF16, BAL_BF16, BAL_BF16 },
        { BAL_BF16, BAL_F16, BAL_F32 },
        { BAL_F16, BAL_F32, BAL_F32 },
        { BAL_F64, BAL_BF16, BAL_F64 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        bal_model *models[] = { single(0, rows[i].a, 1.5),
                                single(1, rows[i].b, -3.25) };
        bal_model *out[2] = { NULL };
        bal_vocab_want want = { .mergekit = true };
        double raw[2], got[2];

        CHECK_OK(bal_vocab_open(out, &want, models, 2, 0, &check_err));
        for (size_t k = 0; k < 2; k++) {
            const bal_tensor *entry = bal_model_at(out[k], found(out[k]));
            CHECK(entry->dtype == rows[i].want && entry->of == rows[i].want);
            CHECK_OK(bal_model_read(out[k], found(out[k]), 0, raw, entry->size,
                                    &check_err));
            bal_kernels_use()->to_f64[rows[i].want](got, raw, 2);
            CHECK(got[0] == 1.5 && got[1] == -3.25);
            bal_model_free(models[k]);
        }
        bal_model_free(out[0]);
        bal_model_free(out[1]);
    }
}

static void a_row_that_is_copied_keeps_every_bit(void)
{
    /* A signalling NaN, another one, infinity, minus zero, a subnormal. */
    static const uint16_t bits[] = { 0x7f81, 0xffc3, 0x7f80, 0x8000, 1, 2, 3 };
    static const uint16_t other[COUNT(bits)] = { 0 };
    uint64_t shape[2] = { 1, COUNT(bits) };
    bal_model *models[2];
    bal_model *out[2] = { NULL };
    bal_vocab_want want = { .mergekit = true };
    uint16_t got[2 * COUNT(bits)];

    for (size_t i = 0; i < 2; i++) {
        models[i] = memory_new(BAL_KIND_WEIGHTS, "m");
        memory_tensor(models[i], embed, BAL_BF16, 2, shape, i ? bits : other);
        put_words(models[i], i, 1);
        memory_finish(models[i]);
    }
    CHECK_OK(bal_vocab_open(out, &want, models, 2, 0, &check_err));
    CHECK_OK(
        bal_model_read(out[0], found(out[0]), 0, got, sizeof(got), &check_err));
    CHECK(!memcmp(got + COUNT(bits), bits, sizeof(bits)));
    for (size_t i = 0; i < 2; i++) {
        bal_model_free(models[i]);
        bal_model_free(out[i]);
    }
}

/* ---- ranges ----------------------------------------------------------------
 */

enum { PIECES = 400 };

/* Rows of three models, a mean, zeros, and some beyond. */
static bal_model *mixed(size_t width, bal_dtype second)
{
    static bal_vocab_token tokens[] = {
        { .token = "t3", .source = BAL_ROW_ZERO, .force = true },
        { .token = "t9", .source = BAL_ROW_ID, .input = 1, .id = 2 },
    };
    bal_model *models[] = { made(0, 6, width, BAL_F16),
                            made(4, 8, width, second),
                            made(8, 5, width, BAL_F16) };
    bal_model *out[3] = { NULL };
    bal_vocab_want want = { .mergekit = true,
                            .multiple = 20,
                            .tokens = tokens,
                            .count = COUNT(tokens) };

    CHECK_OK(bal_vocab_open(out, &want, models, 3, BAL_NONE, &check_err));
    for (size_t i = 0; i < 3; i++)
        bal_model_free(models[i]);
    bal_model_free(out[1]);
    bal_model_free(out[2]);
    return out[0];
}

typedef struct piece_job {
    bal_model *model;
    uint8_t *whole;
    uint64_t size;
    unsigned bits;
} piece_job;

/* Piece i of the tensor, every third up to its end, at an address that is
 * aligned to nothing. */
static int read_piece(size_t i, void *ctx, bal_error *err)
{
    const piece_job *job = ctx;
    uint64_t seed = i * 0x9e3779b97f4a7c15u;
    uint64_t groups = job->size / job->bits;
    uint64_t start = seed % groups * job->bits;
    uint64_t most = (job->size - start) / job->bits;
    size_t len = (size_t)((seed >> 32) % (most + 1) * job->bits);
    len = i % 3 ? len : (size_t)(job->size - start);
    uint8_t *to = malloc(len + 1);
    if (!to)
        return BAL_ENOMEM;

    int rc =
        bal_model_read(job->model, found(job->model), start, to + 1, len, err);
    bool same = !memcmp(to + 1, job->whole + start, len);
    free(to);
    return rc || same ? rc : BAL_ECORRUPT;
}

static void check_pieces(size_t width, bal_dtype second)
{
    bal_model *model = mixed(width, second);
    bal_model *again = mixed(width, second);
    const bal_tensor *entry = bal_model_at(model, found(model));
    piece_job job = { again, malloc(entry->size), entry->size,
                      bal_dtype_bits(entry->dtype) };
    bal_work *work = NULL;

    CHECK(job.whole && entry->shape[0] == 20);
    CHECK_OK(bal_model_read(model, found(model), 0, job.whole, job.size,
                            &check_err));
    CHECK_OK(bal_work_new(&work, 4, &check_err));
    CHECK_OK(bal_pool_run(work, PIECES, read_piece, &job, &check_err));
    bal_work_free(work);
    free(job.whole);
    bal_model_free(model);
    bal_model_free(again);
}

static void any_range_may_be_read_by_any_thread(void)
{
    static const struct {
        size_t width;
        bal_dtype second;
    } rows[] = {
        { 5, BAL_F16 },   { 8, BAL_BF16 },     { 1, BAL_F16 },
        { 333, BAL_F16 }, { 20000, BAL_BF16 },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_pieces(rows[i].width, rows[i].second);
}

static const check_test tests[] = {
    { TEST(rows_beyond_the_vocabulary_are_torchs_mean) },
    { TEST(precise_means_of_rows_are_rounded_once) },
    { TEST(a_mean_is_rounded_at_each_step_or_once) },
    { TEST(the_common_dtype_holds_what_all_have) },
    { TEST(a_row_that_is_copied_keeps_every_bit) },
    { TEST(any_range_may_be_read_by_any_thread) },
};

CHECK_MAIN(tests)
