/* .wdelta files as a library sees them: whatever a file holds it is read to the
 * right bits, or refused by name. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/file.h"
#include "core/sha256.h"
#include "support/check.h"
#include "wdelta/file.h"

enum { MOST = 1 << 16 };

static const struct {
    const char *file, *base;
} files[] = {
    { "v1_paths_int4", "base_bf16" },      { "v1_paths_sparse", "base_bf16" },
    { "v1_paths_quantized", "base_bf16" }, { "v1_f16_int4", "base_f16" },
    { "v1_f32_sparse", "base_f32" },       { "v2_spec_int4", "base_bf16" },
    { "v2_spec_sparse", "base_bf16" },
};
enum { FILES = sizeof(files) / sizeof(files[0]) };

static const char *golden(char path[512], const char *name, const char *ending)
{
    const char *tree = getenv("BALLAST_TREE");

    snprintf(path, 512, "%s/tests/golden/wdelta/%s%s", tree ? tree : ".", name,
             ending);
    return path;
}

static bal_work *work;

static const char *put_file(const char *name, const void *data, size_t len)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", check_dir(), name);
    CHECK_OK(bal_file_replace(path, data, len, &check_err));
    return path;
}

/* ---- right bits, whatever is read ---------------------------------------- */

static void read_whole(uint8_t *to, bal_model *model, size_t i)
{
    CHECK_OK(bal_model_read(model, i, 0, to, bal_model_at(model, i)->size,
                            &check_err));
}

/* Each range of eight elements and more that begins at `at`. */
static void read_ranges(bal_model *model, size_t i, const uint8_t *whole,
                        uint64_t at)
{
    static uint8_t part[MOST];
    const bal_tensor *entry = bal_model_at(model, i);
    uint64_t step = bal_dtype_bits(entry->dtype);

    for (uint64_t len = step; at + len <= entry->size; len += 13 * step) {
        CHECK_OK(bal_model_read(model, i, at, part, len, &check_err));
        CHECK(!memcmp(part, whole + at, len));
    }
}

static void any_range_reads_as_the_whole_does(void)
{
    static uint8_t whole[MOST];
    char path[512];

    for (size_t f = 0; f < FILES; f++) {
        bal_wdelta *file = NULL;
        bal_model *base = NULL;
        bal_model *model = NULL;
        check_row(files[f].file);
        CHECK_OK(bal_wdelta_open(&file, golden(path, files[f].file, ".wdelta"),
                                 &check_err));
        CHECK_OK(bal_model_from_path(&base, golden(path, files[f].base, ""),
                                     &check_err));
        CHECK_OK(bal_model_from_wdelta(&model, base, &file, 1, &check_err));
        for (size_t i = 0; i < file->count; i++) {
            const bal_tensor *entry = bal_model_at(model, i);
            read_whole(whole, model, i);
            for (uint64_t at = 0; at < entry->size;
                 at += 7 * (uint64_t)bal_dtype_bits(entry->dtype))
                read_ranges(model, i, whole, at);
        }
        bal_model_free(model);
        bal_model_free(base);
        bal_wdelta_free(file);
    }
}

/* ---- damage -------------------------------------------------------------- */

/* Opens it, and where that goes well checks it against the base. */
static int look(const char *path, const char *base_name)
{
    char base_path[512];
    bal_wdelta *file = NULL;
    bal_model *base = NULL;
    int rc = bal_wdelta_open(&file, path, &check_err);

    if (!rc)
        rc = bal_model_from_path(&base, golden(base_path, base_name, ""),
                                 &check_err);
    if (!rc)
        rc = bal_wdelta_verify(&file, 1, base, work, NULL, &check_err);
    bal_model_free(base);
    bal_wdelta_free(file);
    return rc;
}

static void a_file_cut_anywhere_is_corrupt(void)
{
    char path[512];
    BAL_LOCAL(bal_buf) all = { 0 };

    CHECK_OK(bal_file_slurp(&all, golden(path, "v1_paths_quantized", ".wdelta"),
                            MOST, &check_err));
    for (size_t len = 0; len < all.len; len++)
        CHECK_RC(BAL_ECORRUPT,
                 look(put_file("cut", all.data, len), "base_bf16"));
    CHECK_OK(look(put_file("cut", all.data, all.len), "base_bf16"));
}

static void a_byte_changed_anywhere_is_noticed(void)
{
    char path[512];
    BAL_LOCAL(bal_buf) all = { 0 };

    CHECK_OK(bal_file_slurp(&all, golden(path, "v1_paths_int4", ".wdelta"),
                            MOST, &check_err));
    for (size_t at = 0; at < all.len; at += 11) {
        all.data[at] ^= 0x10;
        int rc = look(put_file("flip", all.data, all.len), "base_bf16");
        CHECK(rc == BAL_ECORRUPT || rc == BAL_EUNSUPPORTED);
        all.data[at] ^= 0x10;
    }
}

/* ---- files that say what cannot be, with the right hash at their end ------
 */

static void add_text(bal_buf *to, const char *text)
{
    uint8_t len[4];

    bal_put32(len, (uint32_t)strlen(text));
    CHECK_OK(bal_buf_append(to, len, 4, &check_err));
    CHECK_OK(bal_buf_text(to, text, &check_err));
}

static void add_record(bal_buf *to, const char *name, const char *field,
                       const char *dtype, const void *data, size_t count)
{
    bool wide = !strcmp(dtype, "int64");
    uint64_t len = count * (wide ? 8 : !strcmp(dtype, "float32") ? 4 : 1);
    uint8_t head[20];

    add_text(to, name);
    add_text(to, field);
    add_text(to, dtype);
    bal_put32(head, 1);
    bal_put64(head + 4, count);
    bal_put64(head + 12, len);
    CHECK_OK(bal_buf_append(to, head, sizeof(head), &check_err));
    CHECK_OK(bal_buf_append(to, data, (size_t)len, &check_err));
}

static void begin(bal_buf *to, const char *tensors)
{
    static const char parent[] = "0123456789abcdef0123456789abcdef"
                                 "0123456789abcdef0123456789abcdef";
    uint8_t head[BAL_WD_HEAD] = BAL_WD_MAGIC;

    CHECK_OK(bal_buf_append(to, head, sizeof(head), &check_err));
    CHECK_OK(bal_buf_format(to, &check_err,
                            "{\"parent_hash\":\"%s\",\"strategy\":\"sparse\","
                            "\"tensors\":{%s}}",
                            parent, tensors));
    bal_put32(to->data + 7, 1);
    bal_put32(to->data + 11, (uint32_t)(to->len - BAL_WD_HEAD));
}

static const char *finish(bal_buf *to)
{
    bal_sha256 own;
    bal_bytes all = { to->data, to->len };

    CHECK_OK(bal_sha256_of(&own, &all, 1, &check_err));
    CHECK_OK(bal_buf_append(to, own.bytes, sizeof(own.bytes), &check_err));
    return put_file("made", to->data, to->len);
}

static const char one[] = "\"embed\":{\"strategy\":\"sparse\","
                          "\"shape\":[101,16],\"dtype\":\"float32\"}";

static const struct {
    const char *name, *tensors;
} headers[] = {
    { "no strategy", "\"w\":{\"shape\":[2],\"dtype\":\"float32\"}" },
    { "no shape", "\"w\":{\"strategy\":\"sparse\"}" },
    { "a key twice", "\"w\":{\"strategy\":\"sparse\",\"strategy\":\"sparse\","
                     "\"shape\":[2]}" },
    { "a tensor twice", "\"w\":{\"strategy\":\"sparse\",\"shape\":[0]},"
                        "\"w\":{\"strategy\":\"sparse\",\"shape\":[0]}" },
    { "a negative dimension", "\"w\":{\"strategy\":\"sparse\","
                              "\"shape\":[-1]}" },
    { "a shape of 2^64", "\"w\":{\"strategy\":\"sparse\",\"shape\":"
                         "[4294967296,4294967296]}" },
    { "no records", one },
    { "an empty name", "\"\":{\"strategy\":\"sparse\",\"shape\":[2]}" },
};

static void a_header_that_cannot_be_is_corrupt(void)
{
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        BAL_LOCAL(bal_buf) made = { 0 };
        check_row(headers[i].name);
        begin(&made, headers[i].tensors);
        CHECK_RC(BAL_ECORRUPT, look(finish(&made), "base_bf16"));
    }
}

static void an_unknown_strategy_is_unsupported(void)
{
    BAL_LOCAL(bal_buf) made = { 0 };

    begin(&made, "\"w\":{\"strategy\":\"hadamard\",\"shape\":[2]}");
    CHECK_RC(BAL_EUNSUPPORTED, look(finish(&made), "base_bf16"));
    CHECK(strstr(check_err.text, "unknown strategy 'hadamard'") != NULL);
}

static const struct {
    const char *name;
    int64_t index[3];
} indices[] = {
    { "descending", { 5, 4, 9 } },          { "the same twice", { 4, 4, 9 } },
    { "negative", { -1, 4, 9 } },           { "one too far", { 3, 4, 1616 } },
    { "far too far", { 3, 4, INT64_MAX } },
};

static void reads_as(const char *path, int want)
{
    static uint8_t whole[MOST];
    char base_path[512];
    bal_wdelta *file = NULL;
    bal_model *base = NULL;
    bal_model *model = NULL;

    CHECK_OK(bal_wdelta_open(&file, path, &check_err));
    CHECK_OK(bal_model_from_path(&base, golden(base_path, "base_bf16", ""),
                                 &check_err));
    CHECK_OK(bal_model_from_wdelta(&model, base, &file, 1, &check_err));
    CHECK_RC(want, bal_model_read(model, 0, 0, whole,
                                  bal_model_at(model, 0)->size, &check_err));
    bal_model_free(model);
    bal_model_free(base);
    bal_wdelta_free(file);
}

static void indices_that_do_not_ascend_within_are_corrupt(void)
{
    static const float values[3] = { 1.0f, 2.0f, 3.0f };

    for (size_t i = 0; i < sizeof(indices) / sizeof(indices[0]); i++) {
        BAL_LOCAL(bal_buf) made = { 0 };
        check_row(indices[i].name);
        begin(&made, one);
        add_record(&made, "embed", "indices", "int64", indices[i].index, 3);
        add_record(&made, "embed", "values", "float32", values, 3);
        reads_as(finish(&made), BAL_ECORRUPT);
    }
}

typedef struct record_row {
    const char *name;
    const char *field[3], *dtype[3];
    size_t count[3];
} record_row;

static const record_row records[] = {
    { "an array missing", { "indices" }, { "int64" }, { 1 } },
    { "an array twice",
      { "indices", "indices", "values" },
      { "int64", "int64", "float32" },
      { 1, 1, 1 } },
    { "an unknown array",
      { "indices", "values", "more" },
      { "int64", "float32", "uint8" },
      { 1, 1, 1 } },
    { "indices of bytes",
      { "indices", "values" },
      { "uint8", "float32" },
      { 1, 1 } },
    { "more indices than values",
      { "indices", "values" },
      { "int64", "float32" },
      { 2, 1 } },
    { "more of them than elements",
      { "indices", "values" },
      { "int64", "float32" },
      { 1617, 1617 } },
};

static void records_that_do_not_fit_are_corrupt(void)
{
    static const uint8_t zeros[1617 * 8];

    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        const record_row *row = &records[i];
        BAL_LOCAL(bal_buf) made = { 0 };
        check_row(row->name);
        begin(&made, one);
        for (size_t k = 0; k < 3 && row->field[k]; k++)
            add_record(&made, "embed", row->field[k], row->dtype[k], zeros,
                       row->count[k]);
        CHECK_RC(BAL_ECORRUPT, look(finish(&made), "base_bf16"));
    }
}

/* What a version does to the elements that a sparse file lacks is its own: 1
 * adds zeros, and a -0 becomes 0; 2 leaves them alone. */
static void a_minus_zero_goes_in_version_1_only(void)
{
    static const uint16_t minus[8] = { 0x8000, 0x8000, 0x8000, 0x8000,
                                       0x8000, 0x8000, 0x8000, 0x8000 };
    static const char json[] = "{\"w\":{\"dtype\":\"BF16\",\"shape\":[8],"
                               "\"data_offsets\":[0,16]}}   ";
    uint8_t model_bytes[8 + sizeof(json) - 1 + sizeof(minus)];

    bal_put64(model_bytes, sizeof(json) - 1);
    memcpy(model_bytes + 8, json, sizeof(json) - 1);
    memcpy(model_bytes + 8 + sizeof(json) - 1, minus, sizeof(minus));
    for (uint32_t version = 1; version <= 2; version++) {
        BAL_LOCAL(bal_buf) made = { 0 };
        bal_wdelta *file = NULL;
        bal_model *base = NULL;
        bal_model *model = NULL;
        uint16_t got[8];
        begin(&made, "\"w\":{\"strategy\":\"sparse\",\"shape\":[8]}");
        bal_put32(made.data + 7, version);
        add_record(&made, "w", "indices", "int64", "", 0);
        add_record(&made, "w", "values", "float32", "", 0);
        CHECK_OK(bal_wdelta_open(&file, finish(&made), &check_err));
        CHECK_OK(bal_model_from_path(
            &base, put_file("m.safetensors", model_bytes, sizeof(model_bytes)),
            &check_err));
        CHECK_OK(bal_model_from_wdelta(&model, base, &file, 1, &check_err));
        CHECK_OK(bal_model_read(model, 0, 0, got, 16, &check_err));
        CHECK(got[3] == (version == 1 ? 0 : 0x8000));
        bal_model_free(model);
        bal_model_free(base);
        bal_wdelta_free(file);
    }
}

static const check_test tests[] = {
    { TEST(any_range_reads_as_the_whole_does) },
    { TEST(a_file_cut_anywhere_is_corrupt) },
    { TEST(a_byte_changed_anywhere_is_noticed) },
    { TEST(a_header_that_cannot_be_is_corrupt) },
    { TEST(an_unknown_strategy_is_unsupported) },
    { TEST(indices_that_do_not_ascend_within_are_corrupt) },
    { TEST(records_that_do_not_fit_are_corrupt) },
    { TEST(a_minus_zero_goes_in_version_1_only) },
};

int main(void)
{
    if (bal_work_new(&work, 1, NULL))
        return 1;
    int failed = check_main(tests, sizeof(tests) / sizeof(tests[0]));

    bal_work_free(work);
    return failed;
}
