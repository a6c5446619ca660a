#include <string.h>

#include "model/index.h"
#include "support/check.h"
#include "support/folders.h"

static const char one_a[] =
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
static const char one_b[] =
    "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
static const char one_c[] =
    "{\"c\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
static const char two_ab[] =
    "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
    "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}";

/* ---- the index ------------------------------------------------------------
 */

/* A folder of two shards, a in the first, b in the second. */
static const char *shards(const char *map)
{
    const char *dir = file_dir();
    BAL_LOCAL(bal_buf) index = { 0 };

    folder_tensors(dir, "s-1.safetensors", one_a, 2);
    folder_tensors(dir, "s-2.safetensors", one_b, 2);
    CHECK_OK(bal_buf_format(
        &index, &check_err,
        "{\"metadata\":{\"total_size\":4},\"weight_map\":{%s}}", map));
    folder_put(dir, BAL_INDEX_NAME, index.data);
    file_listen();
    return dir;
}

static void a_sharded_folder_is_read_by_its_index(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir =
        shards("\"a\":\"s-1.safetensors\",\"b\":\"s-2.safetensors\"");

    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(bal_model_count(model) == 5);
    CHECK(!strcmp(bal_model_at(model, 2)->name, BAL_INDEX_NAME));
    CHECK(!file_heard("="));
}

static const struct {
    const char *name;
    const char *map;
    const char *word;
} maps[] = {
    { "an absent shard",
      "\"a\":\"s-1.safetensors\",\"b\":\"s-2.safetensors\","
      "\"c\":\"s-3.safetensors\",\"d\":\"s-4.safetensors\"",
      "2 shards that model.safetensors.index.json names are missing: "
      "'s-3.safetensors', 's-4.safetensors'" },
    { "a mapped tensor that is nowhere",
      "\"a\":\"s-1.safetensors\",\"b\":\"s-2.safetensors\","
      "\"c\":\"s-2.safetensors\"",
      "1 tensor that model.safetensors.index.json maps is not in the shards: "
      "'c'" },
    { "a tensor in another shard",
      "\"a\":\"s-2.safetensors\",\"b\":\"s-2.safetensors\"",
      "not in the shards" },
    { "tensors that changed places",
      "\"a\":\"s-2.safetensors\",\"b\":\"s-1.safetensors\"",
      "tensor 'a' is in 's-1.safetensors'" },
    { "a path above", "\"a\":\"../s-1.safetensors\"", "not the plain name" },
    { "a path below", "\"a\":\"x/s-1.safetensors\"", "not the plain name" },
    { "an absolute path", "\"a\":\"/etc/s.safetensors\"",
      "not the plain name" },
    { "a backslash", "\"a\":\"..\\\\s-1.safetensors\"", "not the plain name" },
    { "a drive letter", "\"a\":\"C:s-1.safetensors\"", "not the plain name" },
    { "a NUL", "\"a\":\"s-1.safetensors\\u0000\"", "not the plain name" },
    { "a control character", "\"a\":\"s\\n.safetensors\"",
      "not the plain name" },
    { "dots", "\"a\":\"..\"", "not the plain name" },
    { "nothing", "\"a\":\"\"", "not the plain name" },
    { "another format", "\"a\":\"pytorch_model.bin\"", "not the plain name" },
    { "a number", "\"a\":1", "expected a string" },
    { "a duplicate tensor",
      "\"a\":\"s-1.safetensors\",\"a\":\"s-2.safetensors\"",
      "duplicate key 'a'" },
    { "a duplicate tensor by an escape",
      "\"a\":\"s-1.safetensors\",\"\\u0061\":\"s-2.safetensors\"",
      "duplicate key 'a'" },
    { "a tensor without a name", "\"\":\"s-1.safetensors\"", "without a name" },
};

static void maps_that_do_not_hold_are_refused(void)
{
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        check_row(maps[i].name);
        folder_refused(BAL_ECORRUPT, shards(maps[i].map), maps[i].word);
    }
}

static const struct {
    const char *name;
    const char *json;
    const char *word;
} indexes[] = {
    { "empty", "", "expected '{'" },
    { "a list", "[]", "expected '{'" },
    { "no map", "{\"metadata\":{}}", "no weight_map" },
    { "a map that is a list", "{\"weight_map\":[]}", "expected '{'" },
    { "two maps", "{\"weight_map\":{},\"weight_map\":{}}", "duplicate key" },
    { "two totals",
      "{\"metadata\":{\"total_size\":1,\"total_size\":2},\"weight_map\":{}}",
      "duplicate key 'total_size'" },
    { "cut off", "{\"weight_map\":{", "expected" },
    { "something behind", "{\"weight_map\":{}} x", "behind the end" },
};

static void indexes_that_are_none_are_refused(void)
{
    for (size_t i = 0; i < sizeof(indexes) / sizeof(indexes[0]); i++) {
        const char *dir = file_dir();
        check_row(indexes[i].name);
        folder_tensors(dir, "s-1.safetensors", one_a, 2);
        folder_put(dir, BAL_INDEX_NAME, indexes[i].json);
        folder_refused(BAL_ECORRUPT, dir, indexes[i].word);
        folder_says(BAL_INDEX_NAME);
    }
}

static void what_an_index_does_not_name_is_told(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = shards("\"b\":\"s-2.safetensors\"");

    folder_tensors(
        dir, "s-2.safetensors",
        "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
        "\"extra\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
        4);
    folder_tensors(dir, "consolidated.safetensors", two_ab, 4);
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(bal_model_find(model, BAL_PART_TENSOR, "a") == BAL_NONE);
    CHECK(bal_model_find(model, BAL_PART_TENSOR, "extra") != BAL_NONE);
    CHECK(file_heard("s-1.safetensors why=\"not in the index\""));
    CHECK(file_heard("consolidated.safetensors why="));
    CHECK(file_heard("unmapped=extra file=s-2.safetensors"));
    CHECK(!file_heard("total_size"));
}

static void a_wrong_total_is_told(void)
{
    static const char *const totals[] = { "5", "1e9", "\"4\"", "4.0", "-1" };

    for (size_t i = 0; i < 5; i++) {
        BAL_OWN(bal_model) model = NULL;
        BAL_LOCAL(bal_buf) index = { 0 };
        const char *dir = shards("");
        check_row(totals[i]);
        CHECK_OK(bal_buf_format(&index, &check_err,
                                "{\"weight_map\":{\"a\":\"s-1.safetensors\"},"
                                "\"metadata\":{\"total_size\":%s}}",
                                totals[i]));
        folder_put(dir, BAL_INDEX_NAME, index.data);
        CHECK_OK(bal_model_from_path(&model, dir, &check_err));
        CHECK(file_heard("total_size=5 tensors=2") == !i);
    }
}

static void an_index_of_an_older_save_is_passed_over(void)
{
    const char *dir = file_dir();
    BAL_OWN(bal_model) model = NULL;

    folder_tensors(dir, "model.safetensors", one_a, 2);
    folder_put(dir, BAL_INDEX_NAME,
               "{\"metadata\":{},\"weight_map\":{\"b\":\"s-1.safetensors\"}}");
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(bal_model_find(model, BAL_PART_TENSOR, "a") != BAL_NONE);
    CHECK(bal_model_find(model, BAL_PART_FILE, BAL_INDEX_NAME) == BAL_NONE);
}

static void shards_without_an_index_are_all_read(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = file_dir();

    folder_tensors(dir, "m-00001-of-00002.safetensors", one_a, 2);
    folder_tensors(dir, "m-00002-of-00002.safetensors", one_b, 2);
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(bal_model_count(model) == 4);
}

static void a_gap_in_the_numbering_is_told(void)
{
    const char *dir = file_dir();

    folder_tensors(dir, "m-00001-of-00003.safetensors", one_a, 2);
    folder_tensors(dir, "m-00003-of-00003.safetensors", one_c, 2);
    folder_refused(BAL_ECORRUPT, dir, "'m-00002-of-00003.safetensors'");
}

static void a_tensor_in_two_shards_is_refused(void)
{
    const char *dir = file_dir();

    folder_tensors(dir, "x.safetensors", one_a, 2);
    folder_tensors(dir, "y.safetensors", two_ab, 4);
    folder_refused(BAL_ECORRUPT, dir,
                   "tensor 'a' is in 'x.safetensors' and in 'y.safetensors'");
}

static void stale_shards_beside_one_file_are_told(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = file_dir();

    folder_tensors(dir, "model.safetensors", two_ab, 4);
    folder_tensors(dir, "model-00001-of-00002.safetensors", one_a, 2);
    file_listen();
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(bal_model_count(model) == 3);
    CHECK(file_heard("model-00001-of-00002.safetensors why="));
}

static const check_test tests[] = {
    { TEST(a_sharded_folder_is_read_by_its_index) },
    { TEST(maps_that_do_not_hold_are_refused) },
    { TEST(indexes_that_are_none_are_refused) },
    { TEST(what_an_index_does_not_name_is_told) },
    { TEST(a_wrong_total_is_told) },
    { TEST(an_index_of_an_older_save_is_passed_over) },
    { TEST(shards_without_an_index_are_all_read) },
    { TEST(a_gap_in_the_numbering_is_told) },
    { TEST(a_tensor_in_two_shards_is_refused) },
    { TEST(stale_shards_beside_one_file_are_told) },
};

CHECK_MAIN(tests)
