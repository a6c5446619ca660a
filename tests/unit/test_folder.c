#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hash.h"
#include "model/digest.h"
#include "support/check.h"
#include "support/folders.h"

static const char one_a[] =
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
static const char two_ab[] =
    "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
    "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}";

/* ---- one file, one folder -------------------------------------------------
 */

static void a_single_file_is_a_model(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = file_dir();
    uint8_t bytes[2] = { 0 };

    folder_tensors(dir, "w.safetensors", two_ab, 4);
    folder_put(dir, "config.json", "{}");
    const char *path = file_path("%s/w.safetensors", strrchr(dir, '/') + 1);
    CHECK_OK(bal_model_from_path(&model, path, &check_err));
    CHECK(bal_model_count(model) == 3);
    CHECK(!strcmp(bal_model_at(model, 0)->name, "a"));
    CHECK(!strcmp(bal_model_at(model, 1)->name, "b"));
    CHECK(bal_model_at(model, 2)->part == BAL_PART_HEADER);
    CHECK(!strcmp(bal_model_at(model, 2)->name, "w.safetensors"));
    CHECK(bal_model_facts(model)->kind == BAL_KIND_WEIGHTS);
    CHECK_OK(bal_model_read(model, 0, 0, bytes, 2, &check_err));
    CHECK(bytes[0] == 3 && bytes[1] == 4);
}

static void entries_are_tensors_files_headers_by_name(void)
{
    static const char *const names[] = { "a",
                                         "b",
                                         "README.md",
                                         "config.json",
                                         "tokenizer.json",
                                         "model.safetensors" };
    static const bal_part parts[] = { BAL_PART_TENSOR, BAL_PART_TENSOR,
                                      BAL_PART_FILE,   BAL_PART_FILE,
                                      BAL_PART_FILE,   BAL_PART_HEADER };
    BAL_OWN(bal_model) model = NULL;
    const char *dir = file_dir();
    char text[64];

    folder_tensors(dir, "model.safetensors", two_ab, 4);
    folder_put(dir, "tokenizer.json", "{ }");
    folder_put(dir, "config.json", "{\"_name_or_path\":\"org/base\"}");
    folder_put(dir, "README.md", "# hi");
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(bal_model_count(model) == 6);
    for (size_t i = 0; i < 6; i++) {
        check_row(names[i]);
        CHECK(!strcmp(bal_model_at(model, i)->name, names[i]));
        CHECK(bal_model_at(model, i)->part == parts[i]);
        CHECK(bal_model_find(model, parts[i], names[i]) == i);
    }
    CHECK(bal_model_find(model, BAL_PART_TENSOR, "zz") == BAL_NONE);
    CHECK(bal_model_at(model, 2)->size == 4);
    CHECK_OK(bal_model_read(model, 2, 0, text, 4, &check_err));
    CHECK(!memcmp(text, "# hi", 4));
    CHECK(bal_model_at(model, 5)->size == strlen(two_ab));
    CHECK(!strcmp(bal_model_facts(model)->base_model, "org/base"));
}

static void a_range_outside_or_askew_is_refused(void)
{
    static const struct {
        uint64_t offset;
        size_t len;
        int rc;
    } rows[] = {
        { 0, 72, 0 },
        { 0, 32, 0 },
        { 32, 40, 0 },
        { 64, 8, 0 },
        { 72, 0, 0 },
        { 16, 56, BAL_EINVAL },
        { 0, 16, BAL_EINVAL },
        { 0, 73, BAL_EINVAL },
        { 73, 0, BAL_EINVAL },
        { 96, 32, BAL_EINVAL },
        { UINT64_MAX, 32, BAL_EINVAL },
    };
    BAL_OWN(bal_model) model = NULL;
    const char *path = file_path("range.safetensors");
    uint8_t data[128] = { 0 };

    file_tensors(path,
                 "{\"f\":{\"dtype\":\"F32\",\"shape\":[18],"
                 "\"data_offsets\":[0,72]}}",
                 data, 72);
    CHECK_OK(bal_model_from_path(&model, path, &check_err));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CHECK_RC(rows[i].rc, bal_model_read(model, 0, rows[i].offset, data,
                                            rows[i].len, &check_err));
}

static void a_model_of_no_tensors_is_a_model(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = file_dir();

    folder_tensors(dir, "model.safetensors", "{}      ", 0);
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(bal_model_count(model) == 1);
}

static void what_is_not_there_is_said(void)
{
    folder_refused(BAL_ENOTFOUND, file_path("nowhere"), "no file or folder");
    folder_refused(BAL_ENOTFOUND, file_dir(), "no .safetensors files under '");
}

static void weights_of_other_formats_come_with_a_hint(void)
{
    static const char *const names[] = { "pytorch_model.bin",
                                         "adapter_model.bin", "m.gguf",
                                         "consolidated.00.pth" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *dir = file_dir();
        check_row(names[i]);
        folder_put(dir, names[i], "x");
        folder_put(dir, "config.json", "{}");
        folder_put(dir, "adapter_config.json", "{}");
        folder_refused(BAL_EUNSUPPORTED, dir, "convert it");
        folder_says(names[i]);
    }
}

static void impostors_in_a_folder_are_called_what_they_are(void)
{
    static const struct {
        const char *text;
        const char *word;
    } rows[] = {
        { "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
          "git-lfs pointer" },
        { "PK\3\4\24\10\10abcdefghijklmnop", "zip" },
        { "\200\2}q\1X\5abcdefgh", "pickle" },
        { "<!doctype html><title>404</title>", "HTML" },
        { "GGUF\3\1\1\1aaaaaaaa", "GGUF" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *dir = file_dir();
        check_row(rows[i].word);
        folder_put(dir, "model.safetensors", rows[i].text);
        folder_refused(BAL_ECORRUPT, dir, rows[i].word);
        folder_says("model.safetensors");
    }
}

static void a_pipe_is_refused_and_not_waited_for(void)
{
    const char *dir = file_dir();
    const char *pipe = file_path("%s/notes", strrchr(dir, '/') + 1);

    folder_tensors(dir, "model.safetensors", one_a, 2);
    CHECK(!mkfifo(pipe, 0600));
    folder_refused(BAL_EINVAL, dir, "not a regular file");
    folder_refused(BAL_EINVAL, pipe, "neither a file nor a folder");
}

static void a_file_that_changes_is_noticed(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = file_dir();
    const char *path = file_path("%s/model.safetensors", strrchr(dir, '/') + 1);
    const char *side = file_path("%s/config.json", strrchr(dir, '/') + 1);
    char bytes[2];

    folder_tensors(dir, "model.safetensors", one_a, 2);
    folder_put(dir, "config.json", "{}");
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK_OK(bal_model_read(model, 0, 0, bytes, 2, &check_err));
    CHECK(!truncate(path, 9));
    CHECK_RC(BAL_EIO, bal_model_read(model, 0, 0, bytes, 2, &check_err));
    folder_says("changed while it was read");
    file_text(side, "{\"a\":1}");
    CHECK_RC(BAL_EIO, bal_model_read(model, 1, 0, bytes, 2, &check_err));
    folder_says("changed while it was read");
}

static void more_files_than_descriptors_are_read(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = file_dir();
    uint8_t bytes[2];

    for (unsigned i = 0; i < 1500; i++) {
        char json[96];
        char name[32];
        snprintf(json, sizeof(json),
                 "{\"t%04u\":{\"dtype\":\"U8\",\"shape\":"
                 "[2],\"data_offsets\":[0,2]}}",
                 i);
        snprintf(name, sizeof(name), "%04u.safetensors", i);
        folder_tensors(dir, name, json, 2);
    }
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(bal_model_count(model) == 3000);
    CHECK_OK(bal_model_read(model, 1499, 0, bytes, 2, &check_err));
    CHECK(bytes[0] == 1 && bytes[1] == 2);
}

/* ---- adapters and facts ---------------------------------------------------
 */

static const char lora[] =
    "{\"base_model.model.q_proj.lora_A.weight\":"
    "{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";

static void a_peft_folder_is_an_adapter(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = file_dir();

    folder_tensors(dir, "adapter_model.safetensors", lora, 2);
    folder_tensors(dir, "model.safetensors", one_a, 2);
    folder_put(
        dir, "adapter_config.json",
        "{\"base_model_name_or_path\":\"org/base\",\"revision\":\"main\"}");
    file_listen();
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(bal_model_facts(model)->kind == BAL_KIND_ADAPTER);
    CHECK(!strcmp(bal_model_facts(model)->base_model, "org/base"));
    CHECK(!strcmp(bal_model_facts(model)->revision, "main"));
    CHECK(bal_model_find(model, BAL_PART_TENSOR, "a") == BAL_NONE);
    CHECK(file_heard("model.safetensors why=\"not part of the model\""));
}

static void without_its_config_the_model_file_comes_first(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = file_dir();

    folder_tensors(dir, "adapter_model.safetensors", lora, 2);
    folder_tensors(dir, "model.safetensors", one_a, 2);
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(bal_model_facts(model)->kind == BAL_KIND_WEIGHTS);
    CHECK(bal_model_find(model, BAL_PART_TENSOR, "a") == 0);
}

static void a_lone_adapter_file_is_known_by_its_tensors(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *path = file_path("lone/adapter_model.safetensors");

    file_tensors(path, lora, "\1\2", 2);
    CHECK_OK(bal_model_from_path(&model, path, &check_err));
    CHECK(bal_model_facts(model)->kind == BAL_KIND_ADAPTER);
    CHECK(bal_model_count(model) == 2);
}

static const struct {
    const char *dir; /* below a folder of its own */
    const char *config;
    const char *base;
    const char *revision;
} facts[] = {
    { "my-model", NULL, "my-model", NULL },
    { "my-model2", "{\"_name_or_path\":\"\"}", "my-model2", NULL },
    { "my-model3", "{\"_name_or_path\":\"/home/me/llama\"}", "llama", NULL },
    { "my-model4", "{\"_name_or_path\":\"org/m\",\"_commit_hash\":\"abc\"}",
      "org/m", "abc" },
    { "my-model5", "not json", "my-model5", NULL },
    { "my-model6", "[1]", "my-model6", NULL },
    { "models--org--name/snapshots/0123456789abcdef0123456789abcdef01234567",
      NULL, "org/name", "0123456789abcdef0123456789abcdef01234567" },
};

static void folders_tell_their_base(void)
{
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        BAL_OWN(bal_model) model = NULL;
        check_row(facts[i].dir);
        const char *dir = file_path("facts/%s", facts[i].dir);
        file_tensors(file_path("facts/%s/model.safetensors", facts[i].dir),
                     one_a, "\1\2", 2);
        if (facts[i].config)
            folder_put(dir, "config.json", facts[i].config);
        CHECK_OK(bal_model_from_path(&model, dir, &check_err));
        const bal_facts *is = bal_model_facts(model);
        CHECK(!strcmp(is->base_model, facts[i].base));
        CHECK(!is->revision == !facts[i].revision);
        CHECK(!is->revision || !strcmp(is->revision, facts[i].revision));
    }
}

/* ---- digests --------------------------------------------------------------
 */

/* Hashed by hand, as digest.h says. */
static void a_digest_is_what_its_header_says(void)
{
    BAL_OWN(bal_model) model = NULL;
    BAL_OWN(bal_work) work = NULL;
    const char *path = file_path("digest.safetensors");
    bal_id ids[2];
    bal_id tile;
    bal_id want;
    uint8_t text[3 + 4 + 8 + 32] = { 'U', '8', 0, 1, 0, 0, 0, 2 };

    file_tensors(path, one_a, "\1\2", 2);
    CHECK_OK(bal_work_new(&work, 2, &check_err));
    CHECK_OK(bal_model_from_path(&model, path, &check_err));
    CHECK_OK(bal_digest_model(ids, model, work, &check_err));
    bal_hash_of(&tile, "\1\2", 2);
    memcpy(text + 15, tile.bytes, 32);
    bal_hash_of(&want, text, sizeof(text));
    CHECK(bal_id_equal(&ids[0], &want));
}

static const check_test tests[] = {
    { TEST(a_single_file_is_a_model) },
    { TEST(entries_are_tensors_files_headers_by_name) },
    { TEST(a_range_outside_or_askew_is_refused) },
    { TEST(a_model_of_no_tensors_is_a_model) },
    { TEST(what_is_not_there_is_said) },
    { TEST(weights_of_other_formats_come_with_a_hint) },
    { TEST(impostors_in_a_folder_are_called_what_they_are) },
    { TEST(a_pipe_is_refused_and_not_waited_for) },
    { TEST(a_file_that_changes_is_noticed) },
    { TEST(more_files_than_descriptors_are_read) },
    { TEST(a_peft_folder_is_an_adapter) },
    { TEST(without_its_config_the_model_file_comes_first) },
    { TEST(a_lone_adapter_file_is_known_by_its_tensors) },
    { TEST(folders_tell_their_base) },
    { TEST(a_digest_is_what_its_header_says) },
};

CHECK_MAIN(tests)
