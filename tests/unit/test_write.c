#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "model/index.h"
#include "support/check.h"
#include "support/memory_model.h"
#include "support/writes.h"

static const char two_ba[] =
    "{\"__metadata__\":{\"k\":\"v\"}, \"b\":{\"dtype\":\"U8\",\"shape\":[2],"
    "\"data_offsets\":[0,2]},\"a\":{\"dtype\":\"U8\",\"shape\":[2],"
    "\"data_offsets\":[2,4]}}   ";
static const char one_c[] =
    "{\"c\":{\"shape\":[3],\"dtype\":\"U8\",\"data_offsets\":[0,3]}}";
static const char index_text[] =
    "{\"weight_map\": {\"a\": \"m-1.safetensors\",\n\"b\": "
    "\"m-1.safetensors\", \"c\": \"m-2.safetensors\"},\n \"metadata\": "
    "{\"total_size\": 7}}\n\n";

static const uint64_t two[] = { 2 };
static const uint64_t three[] = { 3 };

/* A file of dir: its header is json, its data are the text. */
static void check_tensors(const char *dir, const char *name, const char *json,
                          const char *data)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    BAL_LOCAL(bal_buf) is = { 0 };
    size_t len = strlen(json);

    check_row(name);
    CHECK_OK(bal_buf_format(&path, &check_err, "%s/%s", dir, name));
    file_get(&is, path.data);
    CHECK(is.len >= 8 && bal_get64(is.data) <= is.len - 8);
    size_t head = (size_t)bal_get64(is.data);
    if (head < len || strncmp(is.data + 8, json, len) != 0)
        print_error("header: %.*s\n", (int)head, is.data + 8);
    CHECK(head >= len && !strncmp(is.data + 8, json, len));
    CHECK(strspn(is.data + 8 + len, " ") >= head - len);
    CHECK(is.len == 8 + head + strlen(data));
    CHECK(!memcmp(is.data + 8 + head, data, strlen(data)));
}

/* ---- as it was ------------------------------------------------------------
 */

/* Sharded, oddly written, with side files. */
static const char *odd_folder(void)
{
    const char *dir = file_dir();
    const char *name = strrchr(dir, '/') + 1;

    file_tensors(file_path("%s/m-1.safetensors", name), two_ba, "BbAa", 4);
    file_tensors(file_path("%s/m-2.safetensors", name), one_c, "ccc", 3);
    file_text(file_path("%s/%s", name, BAL_INDEX_NAME), index_text);
    file_text(file_path("%s/config.json", name), "{ }");
    file_text(file_path("%s/empty.txt", name), "");
    file_text(file_path("%s/additional_chat_templates/t.jinja", name), "{{t}}");
    return dir;
}

static const char *const odd_names[] = {
    "m-1.safetensors", "m-2.safetensors", BAL_INDEX_NAME,
    "config.json",     "empty.txt",       "additional_chat_templates/t.jinja",
};

static void a_folder_comes_out_byte_for_byte(void)
{
    for (unsigned jobs = 1; jobs <= 3; jobs++) {
        BAL_OWN(bal_model) model = NULL;
        const char *dir = odd_folder();
        const char *out = write_place();
        bal_written written = { 0 };

        CHECK_OK(bal_model_from_path(&model, dir, &check_err));
        CHECK_OK(write_with(model, out, NULL, &written, jobs));
        CHECK(written.tensors == 3 && written.bytes == 7);
        CHECK(file_count(out) == 6);
        for (size_t i = 0; i < 6; i++) {
            BAL_LOCAL(bal_buf) a = { 0 };
            BAL_LOCAL(bal_buf) b = { 0 };
            check_row(odd_names[i]);
            CHECK_OK(
                bal_buf_format(&a, &check_err, "%s/%s", dir, odd_names[i]));
            CHECK_OK(
                bal_buf_format(&b, &check_err, "%s/%s", out, odd_names[i]));
            CHECK(file_same(a.data, b.data));
        }
        CHECK(write_alone(out));
    }
}

static void a_large_file_comes_out_byte_for_byte(void)
{
    BAL_OWN(bal_model) model = NULL;
    size_t len = (size_t)3 * BAL_TILE + 20;
    uint8_t *data = malloc(len);
    const char *path = file_path("large/x.safetensors");
    const char *out = write_place();
    char json[256];

    CHECK(data != NULL);
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    snprintf(json, sizeof(json),
             "{\"s\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,6]},"
             "\"l\":{\"dtype\":\"F6_E2M3\",\"shape\":[%zu],\"data_offsets\":"
             "[6,%zu]},\"t\":{\"dtype\":\"F32\",\"shape\":[2],"
             "\"data_offsets\":[%zu,%zu]}}",
             (len - 14) / 3 * 4, len - 8, len - 8, len);
    file_tensors(path, json, data, len);
    free(data);
    CHECK_OK(bal_model_from_path(&model, path, &check_err));
    CHECK_OK(write_plain(model, out));
    BAL_LOCAL(bal_buf) to = { 0 };
    CHECK_OK(bal_buf_format(&to, &check_err, "%s/x.safetensors", out));
    CHECK(file_same(path, to.data));
}

static void many_small_files_come_out(void)
{
    bal_model *made = memory_new(BAL_KIND_WEIGHTS, "many");
    BAL_OWN(bal_model) model = made;
    const char *out = write_place();

    memory_file(made, BAL_PART_HEADER, "model.safetensors", "{}", 2);
    for (unsigned i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%03u.txt", i);
        memory_file(made, BAL_PART_FILE, name, name, strlen(name));
    }
    memory_finish(made);
    CHECK_OK(write_plain(model, out));
    CHECK(file_count(out) == 201);
    write_holds(out, "000.txt", "000.txt");
    write_holds(out, "199.txt", "199.txt");
}

/* ---- what changed ---------------------------------------------------------
 */

static const char index_head[] = "{\n  \"metadata\": {\n    \"total_size\": ";

/* The odd folder's headers and index over other tensors. */
static bal_model *changed(void)
{
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, "changed");

    memory_file(model, BAL_PART_HEADER, "m-1.safetensors", two_ba,
                strlen(two_ba));
    memory_file(model, BAL_PART_HEADER, "m-2.safetensors", one_c,
                strlen(one_c));
    memory_file(model, BAL_PART_FILE, BAL_INDEX_NAME, index_text,
                strlen(index_text));
    return model;
}

static void a_tensor_that_is_new_goes_to_the_end(void)
{
    bal_model *made = changed();
    BAL_OWN(bal_model) model = made;
    const char *out = write_place();

    memory_tensor(made, "a", BAL_U8, 1, two, "Aa");
    memory_tensor(made, "b", BAL_U8, 1, two, "Bb");
    memory_tensor(made, "c", BAL_U8, 1, three, "ccc");
    memory_tensor(made, "d", BAL_U8, 1, two, "Dd");
    memory_tensor(made, "e", BAL_I16, 0, NULL, "Ee");
    memory_finish(made);
    CHECK_OK(write_plain(model, out));
    check_tensors(out, "m-1.safetensors", two_ba, "BbAa");
    check_tensors(out, "m-2.safetensors",
                  "{\"__metadata__\":{\"format\":\"pt\"},\"c\":{\"dtype\":"
                  "\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},\"e\":{"
                  "\"dtype\":\"I16\",\"shape\":[],\"data_offsets\":[3,5]},"
                  "\"d\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":"
                  "[5,7]}}",
                  "cccEeDd");
    write_holds(out, BAL_INDEX_NAME,
                "{\n  \"metadata\": {\n    \"total_size\": 11\n  },\n"
                "  \"weight_map\": {\n    \"a\": \"m-1.safetensors\",\n"
                "    \"b\": \"m-1.safetensors\",\n"
                "    \"c\": \"m-2.safetensors\",\n"
                "    \"d\": \"m-2.safetensors\",\n"
                "    \"e\": \"m-2.safetensors\"\n  }\n}\n");
}

static void a_tensor_that_is_gone_is_left_out(void)
{
    bal_model *made = changed();
    BAL_OWN(bal_model) model = made;
    BAL_OWN(bal_model) again = NULL;
    const char *out = write_place();

    memory_tensor(made, "a", BAL_U8, 1, two, "Aa");
    memory_tensor(made, "c", BAL_U8, 1, three, "ccc");
    memory_finish(made);
    CHECK_OK(write_plain(model, out));
    check_tensors(out, "m-1.safetensors",
                  "{\"__metadata__\":{\"k\":\"v\",\"format\":\"pt\"},"
                  "\"a\":{\"dtype\":\"U8\",\"shape\":[2],"
                  "\"data_offsets\":[0,2]}}",
                  "Aa");
    check_tensors(out, "m-2.safetensors", one_c, "ccc");
    file_listen();
    CHECK_OK(bal_model_from_path(&again, out, &check_err));
    CHECK(!file_heard("="));
}

static void a_file_that_lost_all_is_left_out(void)
{
    bal_model *made = changed();
    BAL_OWN(bal_model) model = made;
    BAL_OWN(bal_model) again = NULL;
    const char *out = write_place();

    memory_tensor(made, "a", BAL_U8, 1, two, "Aa");
    memory_tensor(made, "b", BAL_U8, 1, two, "Bb");
    memory_finish(made);
    CHECK_OK(write_plain(model, out));
    write_holds(out, "m-2.safetensors", NULL);
    check_tensors(out, "m-1.safetensors", two_ba, "BbAa");
    file_listen();
    CHECK_OK(bal_model_from_path(&again, out, &check_err));
    CHECK(!file_heard("="));
}

static void a_changed_dtype_makes_a_header_in_the_same_order(void)
{
    bal_model *made = changed();
    BAL_OWN(bal_model) model = made;
    const char *out = write_place();
    BAL_LOCAL(bal_buf) index = { 0 };

    memory_tensor(made, "a", BAL_I16, 1, two, "AaAa");
    memory_tensor(made, "b", BAL_U8, 1, two, "Bb");
    memory_tensor(made, "c", BAL_U8, 1, three, "ccc");
    memory_finish(made);
    CHECK_OK(write_plain(model, out));
    check_tensors(out, "m-1.safetensors",
                  "{\"__metadata__\":{\"k\":\"v\",\"format\":\"pt\"},"
                  "\"b\":{\"dtype\":\"U8\",\"shape\":[2],"
                  "\"data_offsets\":[0,2]},\"a\":{\"dtype\":\"I16\","
                  "\"shape\":[2],\"data_offsets\":[2,6]}}",
                  "BbAaAa");
    CHECK_OK(bal_buf_format(&index, &check_err, "%s/%s", out, BAL_INDEX_NAME));
    BAL_LOCAL(bal_buf) text = { 0 };
    file_get(&text, index.data);
    CHECK(!strncmp(text.data, index_head, strlen(index_head)));
    CHECK(text.data[strlen(index_head)] == '9');
}

static void canonical_headers_are_of_our_own_making(void)
{
    bal_model *made = changed();
    BAL_OWN(bal_model) model = made;
    const char *out = write_place();
    const bal_write_options options = { .flags = BAL_WRITE_CANONICAL };

    memory_tensor(made, "a", BAL_U8, 1, two, "Aa");
    memory_tensor(made, "b", BAL_U8, 1, two, "Bb");
    memory_tensor(made, "c", BAL_U8, 1, three, "ccc");
    memory_finish(made);
    CHECK_OK(write_with(model, out, &options, NULL, 2));
    check_tensors(out, "m-1.safetensors",
                  "{\"__metadata__\":{\"k\":\"v\",\"format\":\"pt\"},"
                  "\"a\":{\"dtype\":\"U8\",\"shape\":[2],"
                  "\"data_offsets\":[0,2]},\"b\":{\"dtype\":\"U8\","
                  "\"shape\":[2],\"data_offsets\":[2,4]}}",
                  "AaBb");
    write_holds(out, BAL_INDEX_NAME, index_text);
}

static void without_headers_all_goes_into_one_file(void)
{
    static const struct {
        bal_kind kind;
        const char *name;
    } rows[] = {
        { BAL_KIND_WEIGHTS, "model.safetensors" },
        { BAL_KIND_ADAPTER, "adapter_model.safetensors" },
    };

    for (size_t i = 0; i < 2; i++) {
        bal_model *made = memory_new(rows[i].kind, "made");
        BAL_OWN(bal_model) model = made;
        const char *out = write_place();
        memory_tensor(made, "a", BAL_U8, 1, two, "Aa");
        memory_tensor(made, "z", BAL_I16, 0, NULL, "zz");
        memory_finish(made);
        CHECK_OK(write_plain(model, out));
        check_tensors(out, rows[i].name,
                      "{\"__metadata__\":{\"format\":\"pt\"},\"z\":{\"dtype\":"
                      "\"I16\",\"shape\":[],\"data_offsets\":[0,2]},\"a\":{"
                      "\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
                      "zzAa");
        CHECK(file_count(out) == 1);
    }
}

static void a_delta_is_one_file_of_differences_and_residuals(void)
{
    bal_model *made = memory_new(BAL_KIND_DELTA, "delta");
    BAL_OWN(bal_model) model = made;
    const char *out = write_place();
    bal_written written = { 0 };
    bal_tensor entry = { .name = "w",
                         .part = BAL_PART_TENSOR,
                         .form = BAL_FORM_DIFFERENCE,
                         .dtype = BAL_F32,
                         .of = BAL_BF16 };

    memory_entry(made, &entry, "dddd");
    entry.form = BAL_FORM_RESIDUAL;
    entry.dtype = BAL_U16;
    memory_entry(made, &entry, "rr");
    entry.name = "same";
    entry.form = BAL_FORM_SAME;
    memory_entry(made, &entry, NULL);
    entry.name = "gone";
    entry.form = BAL_FORM_REMOVED;
    memory_entry(made, &entry, NULL);
    memory_tensor(made, "new", BAL_U8, 1, two, "Nn");
    memory_file(made, BAL_PART_HEADER, "m-1.safetensors", two_ba,
                strlen(two_ba));
    memory_file(made, BAL_PART_FILE, BAL_INDEX_NAME, index_text,
                strlen(index_text));
    memory_finish(made);
    CHECK_OK(write_with(model, out, NULL, &written, 2));
    CHECK(written.tensors == 3 && written.bytes == 8);
    CHECK(file_count(out) == 1);
    check_tensors(out, "model.safetensors",
                  "{\"__metadata__\":{\"format\":\"pt\"},\"w\":{\"dtype\":"
                  "\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                  "\"w.__residual__\":{\"dtype\":\"U16\",\"shape\":[],"
                  "\"data_offsets\":[4,6]},\"new\":{\"dtype\":\"U8\","
                  "\"shape\":[2],\"data_offsets\":[6,8]}}",
                  "ddddrrNn");
}

static void a_model_of_no_tensors_is_written(void)
{
    bal_model *made = memory_new(BAL_KIND_WEIGHTS, "none");
    BAL_OWN(bal_model) model = made;
    BAL_OWN(bal_model) again = NULL;
    const char *out = write_place();

    memory_finish(made);
    CHECK_OK(write_plain(model, out));
    CHECK_OK(bal_model_from_path(&again, out, &check_err));
    CHECK(bal_model_count(again) == 1);
}

static void provenance_is_ballast_json(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *out = write_place();
    const bal_write_options options = { .provenance = "{\"schema\":1}" };

    CHECK_OK(bal_model_from_path(&model, odd_folder(), &check_err));
    CHECK_OK(write_with(model, out, &options, NULL, 2));
    write_holds(out, "ballast.json", "{\"schema\":1}");
}

static void names_out_of_a_commit_do_no_harm(void)
{
    static const struct {
        bal_part part;
        const char *name;
    } rows[] = {
        { BAL_PART_FILE, "../x" },      { BAL_PART_FILE, "/tmp/x" },
        { BAL_PART_FILE, "a/../../x" }, { BAL_PART_FILE, "ballast.json" },
        { BAL_PART_FILE, "a\nb" },      { BAL_PART_HEADER, "../x.safetensors" },
        { BAL_PART_HEADER, "x.txt" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bal_model *made = memory_new(BAL_KIND_WEIGHTS, "hostile");
        BAL_OWN(bal_model) model = made;
        const char *out = write_place();
        check_row(rows[i].name);
        memory_file(made, rows[i].part, rows[i].name, "{}", 2);
        memory_finish(made);
        CHECK_RC(BAL_ECORRUPT, write_plain(model, out));
        CHECK(!file_exists(out) && write_alone(out));
    }
}

static const check_test tests[] = {
    { TEST(a_folder_comes_out_byte_for_byte) },
    { TEST(a_large_file_comes_out_byte_for_byte) },
    { TEST(many_small_files_come_out) },
    { TEST(a_tensor_that_is_new_goes_to_the_end) },
    { TEST(a_tensor_that_is_gone_is_left_out) },
    { TEST(a_file_that_lost_all_is_left_out) },
    { TEST(a_changed_dtype_makes_a_header_in_the_same_order) },
    { TEST(canonical_headers_are_of_our_own_making) },
    { TEST(without_headers_all_goes_into_one_file) },
    { TEST(a_delta_is_one_file_of_differences_and_residuals) },
    { TEST(a_model_of_no_tensors_is_written) },
    { TEST(provenance_is_ballast_json) },
    { TEST(names_out_of_a_commit_do_no_harm) },
};

CHECK_MAIN(tests)
