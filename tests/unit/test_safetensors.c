#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "model/safetensors.h"
#include "safetensors_rows.h"
#include "support/check.h"

static int parse(bal_st_header *out, const char *json, size_t len,
                 uint64_t data)
{
    bal_bytes bytes = { json, len };

    return bal_st_parse(out, bytes, data, "x.safetensors", &check_err);
}

static int parse_row(bal_st_header *out, const st_row *row)
{
    size_t len = strlen(row->json);
    char *copy = malloc(len + 1);

    CHECK(copy != NULL);
    memcpy(copy, row->json, len);
    if (row->nul_at)
        copy[row->nul_at] = '\0';
    int rc = parse(out, copy, len, row->data);
    free(copy);
    return rc;
}

static void every_row_gets_its_verdict(void)
{
    for (size_t i = 0; i < ST_ROWS; i++) {
        const st_row *row = &st_rows[i];
        BAL_LOCAL(bal_st_header) header = { 0 };
        check_row(row->name);
        int rc = parse_row(&header, row);
        if (row->taken == ROW_BOTH) {
            CHECK_OK(rc);
            continue;
        }
        CHECK_RC(BAL_ECORRUPT, rc);
        CHECK(!strncmp(check_err.text, "x.safetensors: ", 15));
        if (!strstr(check_err.text, row->word))
            print_error("message: %s\n", check_err.text);
        CHECK(strstr(check_err.text, row->word) != NULL);
    }
}

static void a_message_names_tensor_rule_and_byte(void)
{
    BAL_LOCAL(bal_st_header) header = { 0 };
    const char *json = "{\"a.b\":{\"dtype\":\"F99\"}}";

    CHECK_RC(BAL_ECORRUPT, parse(&header, json, strlen(json), 0));
    CHECK(!strcmp(check_err.text,
                  "x.safetensors: tensor 'a.b': header: unknown dtype 'F99' "
                  "at byte 16"));
}

/* Names, order and widths of the format's own table. */
static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {
    { "BOOL", 8 },        { "F4", 4 },          { "F6_E2M3", 6 },
    { "F6_E3M2", 6 },     { "U8", 8 },          { "I8", 8 },
    { "F8_E5M2", 8 },     { "F8_E4M3", 8 },     { "F8_E8M0", 8 },
    { "F8_E4M3FNUZ", 8 }, { "F8_E5M2FNUZ", 8 }, { "I16", 16 },
    { "U16", 16 },        { "F16", 16 },        { "BF16", 16 },
    { "I32", 32 },        { "U32", 32 },        { "F32", 32 },
    { "C64", 64 },        { "F64", 64 },        { "I64", 64 },
    { "U64", 64 },
};

static void all_dtypes_are_read(void)
{
    for (size_t i = 0; i < BAL_DTYPES; i++) {
        BAL_LOCAL(bal_st_header) header = { 0 };
        char json[160];
        check_row(dtypes[i].name);
        snprintf(json, sizeof(json),
                 "{\"t\":{\"dtype\":\"%s\",\"shape\":[4,2],"
                 "\"data_offsets\":[0,%u]}}",
                 dtypes[i].name, dtypes[i].bits);
        CHECK_OK(parse(&header, json, strlen(json), dtypes[i].bits));
        CHECK(header.count == 1 && header.tensors[0].dtype == (bal_dtype)i);
        CHECK(header.tensors[0].rank == 2 && header.tensors[0].shape[0] == 4);
        CHECK(bal_dtype_bits((bal_dtype)i) == dtypes[i].bits);
        CHECK(!strcmp(bal_dtype_name((bal_dtype)i), dtypes[i].name));
    }
}

static const char vector_json[] =
    "{\"__metadata__\":{\"format\":\"pt\"},\"b\":{\"dtype\":\"F32\","
    "\"shape\":[2],\"data_offsets\":[0,8]},\"a\":{\"dtype\":\"BF16\","
    "\"shape\":[1],\"data_offsets\":[8,10]}}";

static void the_vector_is_read(void)
{
    BAL_LOCAL(bal_st_header) header = { 0 };

    CHECK_OK(parse(&header, vector_json, strlen(vector_json), 10));
    CHECK(header.count == 2 && header.data_size == 10);
    CHECK(!strcmp(header.tensors[0].name, "b"));
    CHECK(header.tensors[0].end == 8 && header.tensors[1].begin == 8);
    CHECK(header.metadata_count == 1);
    CHECK(!strcmp(header.metadata[0].key, "format"));
    CHECK(!strcmp(header.metadata[0].value, "pt"));
}

/* The bytes that the reference writes for it: 144 of header, spaces and all. */
static void the_vector_is_written(void)
{
    static const uint64_t two[] = { 2 };
    static const uint64_t one[] = { 1 };
    static const bal_str_pair pt = { "format", "pt" };
    const bal_tensor b = {
        .name = "b", .dtype = BAL_F32, .rank = 1, .shape = two, .size = 8
    };
    const bal_tensor a = {
        .name = "a", .dtype = BAL_BF16, .rank = 1, .shape = one, .size = 2
    };
    const bal_tensor *const tensors[] = { &b, &a };
    BAL_LOCAL(bal_buf) to = { 0 };

    CHECK_OK(bal_st_write(&to, tensors, 2, &pt, 1, &check_err));
    CHECK(to.len == 144);
    CHECK(!strncmp(to.data, vector_json, strlen(vector_json)));
    CHECK(strspn(to.data + strlen(vector_json), " ") ==
          144 - strlen(vector_json));
}

static void an_empty_map_is_written_as_the_reference_does(void)
{
    BAL_LOCAL(bal_buf) to = { 0 };

    CHECK_OK(bal_st_write(&to, NULL, 0, NULL, 0, &check_err));
    CHECK(!strcmp(to.data, "{}      "));
}

static void names_are_escaped_as_needed(void)
{
    const bal_tensor odd = { .name = "a\"\\\n\xc3\xa9\x01", .dtype = BAL_U8 };
    const bal_tensor *const tensors[] = { &odd };
    BAL_LOCAL(bal_buf) to = { 0 };
    BAL_LOCAL(bal_st_header) header = { 0 };

    CHECK_OK(bal_st_write(&to, tensors, 1, NULL, 0, &check_err));
    CHECK(strstr(to.data, "\"a\\\"\\\\\\n\xc3\xa9\\u0001\"") != NULL);
    /* A scalar of U8 takes a byte; here size was 0. */
    CHECK_RC(BAL_ECORRUPT, parse(&header, to.data, to.len, 0));
}

/* ---- the first bytes ------------------------------------------------------
 */

static const struct {
    const char *name;
    const char *head;
    size_t len;
    uint64_t size;
    const char *word;
} heads[] = {
    { "an empty file", "", 0, 0, "shorter than 8" },
    { "seven bytes", "\2\0\0\0\0\0\0", 7, 7, "shorter than 8" },
    { "length 0", "\0\0\0\0\0\0\0\0{}", 10, 10, "NUL" },
    { "length 1", "\1\0\0\0\0\0\0\0{", 9, 9, "empty" },
    { "length 1000 over a tiny body", "\350\3\0\0\0\0\0\0{}", 10, 10,
      "only 2 follow" },
    { "length 100000000 in a short file", "\0\341\365\5\0\0\0\0{}", 10, 10,
      "only 2 follow" },
    { "length 100000001", "\1\341\365\5\0\0\0\0{}", 10, 200000000,
      "over 100000000" },
    { "length 2^63", "\0\0\0\0\0\0\0\200{}", 10, 10, "over 100000000" },
    { "length 2^64 - 1", "\377\377\377\377\377\377\377\377{}", 10, 10,
      "over 100000000" },
    { "an array", "\2\0\0\0\0\0\0\0[]", 10, 10, "not a JSON object" },
    { "a git-lfs pointer", "version https://git-lfs.github.com/spec/v1\noid ",
      47, 134, "git-lfs pointer" },
    { "a pickle", "\200\2}q\1(X\6\0\0\0", 12, 4000, "pickle" },
    { "a pickle of protocol 4", "\200\4\225\27\0\0\0\0\0\0\0}", 12, 4000,
      "pickle" },
    { "a zip", "PK\3\4\0\0\10\10\0\0\0\0", 12, 4000, "zip archive (PyTorch" },
    { "a zip of 100 MB", "PK\3\4\0\0\0\0\0\0\0\0", 12, 200000000, "zip" },
    { "an HTML page", "\n <!DOCTYPE HTML><html>", 22, 4000, "HTML" },
    { "HTML without a doctype", "<html lang=en>", 14, 4000, "HTML" },
    { "an XML error", "<?xml version=\"1.0\"?>", 21, 4000, "XML" },
    { "a GGUF file", "GGUF\3\0\0\0\1\0\0\0", 12, 4000, "GGUF" },
    { "JSON", "{\"error\":\"not found\"}", 21, 21, "JSON text" },
    { "all NUL", "\0\0\0\0\0\0\0\0\0\0\0\0", 12, 4000, "NUL" },
};

static void what_is_not_safetensors_is_called_what_it_is(void)
{
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        uint64_t length = 77;
        check_row(heads[i].name);
        CHECK_RC(BAL_ECORRUPT,
                 bal_st_length(&length, heads[i].head, heads[i].len,
                               heads[i].size, "x", &check_err));
        CHECK(length == 77);
        if (!strstr(check_err.text, heads[i].word))
            print_error("message: %s\n", check_err.text);
        CHECK(strstr(check_err.text, heads[i].word) != NULL);
    }
}

static void a_length_that_fits_is_given(void)
{
    uint64_t length = 0;

    CHECK_OK(
        bal_st_length(&length, "\3\0\0\0\0\0\0\0{} ", 11, 11, "x", &check_err));
    CHECK(length == 3);
}

/* ---- limits ---------------------------------------------------------------
 */

static void a_name_may_have_4096_bytes_and_no_more(void)
{
    static const char tail[] =
        "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";

    for (size_t len = 4096; len <= 4097; len++) {
        BAL_LOCAL(bal_st_header) header = { 0 };
        BAL_LOCAL(bal_buf) json = { 0 };
        CHECK_OK(bal_buf_text(&json, "{\"", &check_err));
        for (size_t i = 0; i < len; i++)
            CHECK_OK(bal_buf_append(&json, "n", 1, &check_err));
        CHECK_OK(bal_buf_text(&json, tail, &check_err));
        CHECK_RC(len == 4096 ? 0 : BAL_ECORRUPT,
                 parse(&header, json.data, json.len, 1));
    }
}

static void a_rank_may_be_64_and_no_more(void)
{
    for (size_t rank = 64; rank <= 65; rank++) {
        BAL_LOCAL(bal_st_header) header = { 0 };
        BAL_LOCAL(bal_buf) json = { 0 };
        CHECK_OK(bal_buf_text(&json, "{\"a\":{\"dtype\":\"U8\",\"shape\":[",
                              &check_err));
        for (size_t i = 0; i < rank; i++)
            CHECK_OK(bal_buf_text(&json, i ? ",1" : "1", &check_err));
        CHECK_OK(bal_buf_text(&json, "],\"data_offsets\":[0,1]}}", &check_err));
        CHECK_RC(rank == 64 ? 0 : BAL_ECORRUPT,
                 parse(&header, json.data, json.len, 1));
    }
}

/* count tensors of a byte, the one named last first in the data. */
static void many(bal_buf *json, size_t count)
{
    CHECK_OK(bal_buf_text(json, "{", &check_err));
    for (size_t i = 0; i < count; i++)
        CHECK_OK(bal_buf_format(json, &check_err,
                                "%s\"t%zu\":{\"dtype\":\"U8\",\"shape\":[1],"
                                "\"data_offsets\":[%zu,%zu]}",
                                i ? "," : "", i, count - i - 1, count - i));
    CHECK_OK(bal_buf_text(json, "}", &check_err));
}

static void a_million_tensors_are_read(void)
{
    BAL_LOCAL(bal_st_header) header = { 0 };
    BAL_LOCAL(bal_buf) json = { 0 };

    many(&json, BAL_TENSORS_MAX);
    CHECK_OK(parse(&header, json.data, json.len, BAL_TENSORS_MAX));
    CHECK(header.count == BAL_TENSORS_MAX);
    CHECK(!strcmp(header.tensors[BAL_TENSORS_MAX - 1].name, "t0"));
}

static void one_more_is_refused(void)
{
    BAL_LOCAL(bal_st_header) header = { 0 };
    BAL_LOCAL(bal_buf) json = { 0 };

    many(&json, BAL_TENSORS_MAX + 1);
    CHECK_RC(BAL_ECORRUPT,
             parse(&header, json.data, json.len, BAL_TENSORS_MAX + 1));
    CHECK(strstr(check_err.text, "more than 1048576 tensors") != NULL);
}

static void a_bomb_of_names_on_the_same_bytes_is_refused(void)
{
    BAL_LOCAL(bal_st_header) header = { 0 };
    BAL_LOCAL(bal_buf) json = { 0 };

    CHECK_OK(bal_buf_text(&json, "{", &check_err));
    for (size_t i = 0; i < 100000; i++)
        CHECK_OK(bal_buf_format(&json, &check_err,
                                "%s\"t%zu\":{\"dtype\":\"F32\",\"shape\":"
                                "[200,200],\"data_offsets\":[0,160000]}",
                                i ? "," : "", i));
    CHECK_OK(bal_buf_text(&json, "}", &check_err));
    CHECK_RC(BAL_ECORRUPT, parse(&header, json.data, json.len, 160000));
    CHECK(strstr(check_err.text, "an overlap") != NULL);
}

static void deep_nesting_is_refused_where_it_begins(void)
{
    BAL_LOCAL(bal_st_header) header = { 0 };
    BAL_LOCAL(bal_buf) json = { 0 };

    for (size_t i = 0; i < 1000000; i++)
        CHECK_OK(bal_buf_text(&json, "{\"a\":", &check_err));
    CHECK_RC(BAL_ECORRUPT, parse(&header, json.data, json.len, 0));
    CHECK(strstr(check_err.text, "unknown key") != NULL);
}

static const check_test tests[] = {
    { TEST(every_row_gets_its_verdict) },
    { TEST(a_message_names_tensor_rule_and_byte) },
    { TEST(all_dtypes_are_read) },
    { TEST(the_vector_is_read) },
    { TEST(the_vector_is_written) },
    { TEST(an_empty_map_is_written_as_the_reference_does) },
    { TEST(names_are_escaped_as_needed) },
    { TEST(what_is_not_safetensors_is_called_what_it_is) },
    { TEST(a_length_that_fits_is_given) },
    { TEST(a_name_may_have_4096_bytes_and_no_more) },
    { TEST(a_rank_may_be_64_and_no_more) },
    { TEST(a_million_tensors_are_read) },
    { TEST(one_more_is_refused) },
    { TEST(a_bomb_of_names_on_the_same_bytes_is_refused) },
    { TEST(deep_nesting_is_refused_where_it_begins) },
};

CHECK_MAIN(tests)
