#include <string.h>
#include <unistd.h>

#include "model/path.h"
#include "support/check.h"
#include "support/folders.h"

static const char one_a[] =
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";

/* ---- side files -----------------------------------------------------------
 */

static const struct {
    const char *path;
    bool carried, identity;
} sides[] = {
    { "config.json", true, false },
    { "generation_config.json", true, false },
    { "tokenizer.json", true, true },
    { "tokenizer_config.json", true, true },
    { "tokenizer.model", true, true },
    { "chat_template.jinja", true, true },
    { "additional_chat_templates/rag.jinja", true, true },
    { "additional_chat_templates/.x.jinja", false, false },
    { "additional_chat_templates/x/y.jinja", false, false },
    { "additional_chat_templates/notes.txt", false, false },
    { "modeling_x.py", true, false },
    { "README.md", true, false },
    { "LICENSE.txt", true, false },
    { "mergekit_config.yml", true, false },
    { "picture.png", true, false },
    { ".gitattributes", true, false },
    { ".git", false, false },
    { ".gitignore", false, false },
    { "ballast.json", false, false },
    { "pytorch_model.bin", false, false },
    { "training_args.bin", false, false },
    { "model.gguf", false, false },
    { "x.safetensors", false, false },
    { "original/params.json", false, false },
    { "../config.json", false, false },
    { "/config.json", false, false },
    { "", false, false },
};

static void side_files_go_by_their_rows(void)
{
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        check_row(sides[i].path);
        CHECK(bal_side_file(sides[i].path) == sides[i].carried);
        CHECK(bal_side_identity(sides[i].path) == sides[i].identity);
    }
}

static void names_that_are_not_portable_are_known(void)
{
    static const struct {
        const char *name;
        bool valid;
    } rows[] = {
        { "a", true },        { "a/b.c", true }, { "a b", true },
        { "\xc3\xa9", true }, { "a..b", true },  { "...", true },
        { "", false },        { ".", false },    { "..", false },
        { "/a", false },      { "a/", false },   { "a//b", false },
        { "a/../b", false },  { "a/.", false },  { "a\\b", false },
        { "c:x", false },     { "a/C:", false }, { "a\nb", false },
        { "a\x7f", false },   { "\xff", false },
    };
    char longest[257];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_row(rows[i].name);
        CHECK(bal_side_name_valid(rows[i].name) == rows[i].valid);
    }
    memset(longest, 'x', sizeof(longest) - 1);
    longest[256] = '\0';
    CHECK(!bal_side_name_valid(longest));
    longest[255] = '\0';
    CHECK(bal_side_name_valid(longest));
}

static void what_is_passed_over_is_told(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = file_dir();
    const char *name = strrchr(dir, '/') + 1;

    folder_tensors(dir, "model.safetensors", one_a, 2);
    folder_put(dir, "ballast.json", "{}");
    folder_put(dir, "training_args.bin", "x");
    folder_put(dir, ".hidden", "x");
    folder_put(dir, "a\nb", "x");
    file_text(file_path("%s/sub/x.json", name), "x");
    file_text(file_path("%s/additional_chat_templates/t.jinja", name), "t");
    CHECK(!symlink("sub", file_path("%s/link", name)));
    const char *large = file_path("%s/large.dat", name);
    file_text(large, "x");
    CHECK(!truncate(large, ((off_t)64 << 20) + 1));
    file_listen();
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(bal_model_count(model) == 3);
    CHECK(!strcmp(bal_model_at(model, 1)->name,
                  "additional_chat_templates/t.jinja"));
    CHECK(file_heard("training_args.bin why="));
    CHECK(file_heard(".hidden why=\"hidden\""));
    CHECK(file_heard("a\\x0ab why="));
    CHECK(file_heard("/sub why="));
    CHECK(file_heard("/link why="));
    CHECK(file_heard("large.dat why=\"large"));
    CHECK(!file_heard("ballast.json"));
}

static void links_to_files_are_followed(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = file_dir();
    const char *name = strrchr(dir, '/') + 1;

    file_tensors(file_path("blobs/1"), one_a, "\1\2", 2);
    file_text(file_path("blobs/2"), "{}");
    CHECK(!symlink("../blobs/1", file_path("%s/model.safetensors", name)));
    CHECK(!symlink("../blobs/2", file_path("%s/config.json", name)));
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(bal_model_count(model) == 3);
}

static const check_test tests[] = {
    { TEST(side_files_go_by_their_rows) },
    { TEST(names_that_are_not_portable_are_known) },
    { TEST(what_is_passed_over_is_told) },
    { TEST(links_to_files_are_followed) },
};

CHECK_MAIN(tests)
