/* What a model in front of another has beside the rows of its vocabulary. */
#include "core/hash.h"
#include "merge/vocab_inside.h"
#include "unit/vocab_inputs.h"

static void check_file(bal_model *model, const char *name, const char *want)
{
    size_t i = bal_model_find(model, BAL_PART_FILE, name);
    char got[1024] = { 0 };

    check_row(name);
    CHECK((i == BAL_NONE) == !want);
    if (!want)
        return;
    CHECK(bal_model_at(model, i)->size == strlen(want));
    CHECK_OK(bal_model_read(model, i, 0, got, strlen(want), &check_err));
    if (strcmp(got, want))
        print_error("got %s\n", got);
    CHECK(!strcmp(got, want));
}

static void put_file(bal_model *model, const char *name, const char *text)
{
    memory_file(model, BAL_PART_FILE, name, text, strlen(text));
}

/* Two models with all kinds of files, of which the second is the donor. */
static void open_with_files(bal_model *out[2], const input *second,
                            const bal_vocab_want *want)
{
    static const uint64_t shape[] = { 2 };
    static const float two[] = { 1, 2 };
    bal_model *models[] = { unfinished("A", &x_y), unfinished("B", second) };

    for (size_t i = 0; i < 2; i++) {
        memory_tensor(models[i], "w", BAL_F32, 1, shape, two);
        put_file(models[i], "README.md", i ? "b" : "a");
        put_file(models[i], "tokenizer_config.json", i ? "{\"b\":1}" : "{}");
        put_file(models[i], "vocab.json", i ? "bv" : "av");
        put_file(models[i], "chat_template.jinja", i ? "bc" : "ac");
        put_file(models[i], "model.safetensors.index.json", "{}");
    }
    put_file(models[0], "config.json",
             "{\n \"vocab_size\": 2,\n \"text_config\": {\n  \"a\": 1.0\n }\n"
             "}");
    put_file(models[0], "tokenizer.model", "sp");
    for (size_t i = 0; i < 2; i++)
        memory_finish(models[i]);
    CHECK_OK(bal_vocab_open(out, want, models, 2, 1, &check_err));
    bal_model_free(models[0]);
    bal_model_free(models[1]);
}

static void files_of_the_tokenizer_are_the_donors(void)
{
    static const input second = { .tokens = { "x", "z" },
                                  .values = { 10, 20 },
                                  .vocab_size = 2 };
    static const bal_vocab_want want = { .source = BAL_VOCAB_BASE,
                                         .multiple = 4 };
    bal_model *out[2];

    open_with_files(out, &second, &want);
    for (size_t i = 0; i < 2; i++) {
        check_file(out[i], "README.md", i ? "b" : "a");
        check_file(out[i], "tokenizer_config.json", "{\"b\":1}");
        check_file(out[i], "vocab.json", "bv");
        check_file(out[i], "chat_template.jinja", "bc");
        check_file(out[i], "tokenizer.model", NULL);
        check_file(out[i], "tokenizer.json",
                   "{\"added_tokens\":[],\"model\":{\"vocab\":{\"x\":0,\"z\":1}"
                   "}}");
    }
    check_file(out[0], "config.json",
               "{\n \"vocab_size\": 4,\n \"text_config\": {\n  \"a\": 1.0,\n  "
               "\"vocab_size\": 4\n }\n}");
    check_file(out[1], "config.json", "{\"vocab_size\": 4, \"x\": 1}");
    CHECK(bal_model_facts(out[0])->kind == BAL_KIND_WEIGHTS);
    CHECK(!strcmp(bal_model_facts(out[0])->name, "A"));
    bal_model_free(out[0]);
    bal_model_free(out[1]);
}

static void files_that_no_longer_tell_the_vocabulary_are_left_out(void)
{
    static const bal_vocab_want want = { 0 };
    bal_model *out[2];

    open_with_files(out, &x_z, &want);
    for (size_t i = 0; i < 2; i++) {
        check_file(out[i], "tokenizer_config.json", "{\"b\":1}");
        check_file(out[i], "chat_template.jinja", "bc");
        check_file(out[i], "vocab.json", NULL);
        check_file(out[i], "tokenizer.json",
                   "{\"added_tokens\":[{\"id\":2,\"content\":\"y\",\"single_"
                   "word\":false,\"lstrip\":false,\"rstrip\":false,"
                   "\"normalized\":false,\"special\":false}],\"model\":{"
                   "\"vocab\":{\"x\":0,\"z\":1}}}");
    }
    check_file(out[1], "config.json", NULL);
    bal_model_free(out[0]);
    bal_model_free(out[1]);
}

/* Two tensors of two rows, whose digests are known. */
static bal_model *digested(const char *name, const char *words,
                           const bal_id *digest)
{
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, name);
    bal_tensor entry = {
        .name = embed,
        .dtype = BAL_F32,
        .of = BAL_F32,
        .rank = 2,
        .shape = (uint64_t[]){ 2, WIDTH },
        .tuned = digest,
    };
    static const float values[2 * WIDTH] = { 1, 2, 3, 4, 5, 6 };

    memory_entry(model, &entry, values);
    entry.name = "blocks.0.lm_head.weight";
    memory_entry(model, &entry, values);
    put_file(model, "tokenizer.json", words);
    memory_finish(model);
    return model;
}

static const bal_id *digest_of(bal_model *model, const char *name)
{
    size_t i = bal_model_find(model, BAL_PART_TENSOR, name);

    CHECK(i != BAL_NONE);
    return bal_model_at(model, i)->tuned;
}

static void tensors_of_no_vocabulary_stay_and_so_do_rows_that_fit(void)
{
    static const bal_vocab_want want = { .source = BAL_VOCAB_BASE };
    bal_id digest = { { 7 } };
    bal_model *models[] = {
        digested("A", "{\"model\":{\"vocab\":{\"x\":0,\"y\":1}}}", &digest),
        digested("B", "{\"model\":{\"vocab\":{\"x\":1,\"y\":0}}}", &digest),
    };
    bal_model *out[2] = { NULL };

    CHECK_OK(bal_vocab_open(out, &want, models, 2, 0, &check_err));
    memory_check_equal(models[0], out[0]);
    for (size_t i = 0; i < 2; i++) {
        const bal_id *stays = digest_of(out[i], "blocks.0.lm_head.weight");
        CHECK(stays && bal_id_equal(stays, &digest));
    }
    CHECK(digest_of(out[0], embed) != NULL);
    CHECK(!digest_of(out[1], embed));
    for (size_t k = 0; k < 2; k++) {
        bal_model_free(models[k]);
        bal_model_free(out[k]);
    }
}

static void config_json_tells_how_many_rows_there_are(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "{\"vocab_size\": 2}", "{\"vocab_size\": 4}" },
        { "{\"a\": 1}", "{\"a\": 1, \"vocab_size\": 4}" },
        { "{\"vocab_size\": null}", "{\"vocab_size\": 4}" },
        { "{\"text_config\": {}}", "{\"text_config\": {\"vocab_size\": 4}}" },
        { "{\"text_config\": {\"vocab_size\": 9}, \"vocab_size\": 2}",
          "{\"text_config\": {\"vocab_size\": 4}, \"vocab_size\": 4}" },
        { "{\"text_config\": null}",
          "{\"text_config\": null, \"vocab_size\": 4}" },
        { "{\"vision_config\": {\"vocab_size\": 1}, \"vocab_size\": 2}",
          "{\"vision_config\": {\"vocab_size\": 1}, \"vocab_size\": 4}" },
    };
    static const bal_vocab_want want = { .multiple = 4 };

    for (size_t i = 0; i < COUNT(rows); i++) {
        bal_model *model = unfinished("A", &x_y);
        bal_model *out = NULL;

        put_file(model, "config.json", rows[i].text);
        memory_finish(model);
        CHECK_OK(bal_vocab_open(&out, &want, &model, 1, BAL_NONE, &check_err));
        check_file(out, "config.json", rows[i].want);
        bal_model_free(model);
        bal_model_free(out);
    }
}

static void the_text_part_of_a_config_tells_how_many_tokens_count(void)
{
    static const bal_vocab_want want = { 0 };
    bal_model *model = unfinished("A", &x_y);
    bal_model *out = NULL;

    put_file(model, "config.json",
             "{\"vocab_size\": 9, \"text_config\": {\"vocab_size\": 1}}");
    memory_finish(model);
    CHECK_OK(bal_vocab_open(&out, &want, &model, 1, BAL_NONE, &check_err));
    check_file(out, "tokenizer.json",
               "{\"added_tokens\":[],\"model\":{\"vocab\":{\"x\":0}}}");
    bal_model_free(model);
    bal_model_free(out);
}

static void tensors_with_a_row_a_token_are_known_by_their_names(void)
{
    static const struct {
        const char *name;
        bool known;
    } rows[] = {
        { "model.embed_tokens.weight", true },
        { "lm_head.weight", true },
        { "lm_head.bias", true },
        { "language_model.model.embed_tokens.weight", true },
        { "gpt_neox.embed_in.weight", true },
        { "cls.predictions.decoder.weight", true },
        { "layers.0.wte.weight", true },
        { "layers.25.linear.weight", true },
        { "layers.25.linear.bias", true },
        { "layers..linear.weight", false },
        { "layers.x.linear.weight", false },
        { "layers.25.mlp.linear.weight", false },
        { "layers.1.wte.weight", false },
        { "model.layers.0.mlp.up_proj.weight", false },
        { "lm_head.weight.scale", false },
        { "lm_head", false },
        { "xlm_head.weight", false },
        { "", false },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(rows[i].name);
        CHECK(bal_vocab_named(rows[i].name) == rows[i].known);
    }
}

static const check_test tests[] = {
    { TEST(files_of_the_tokenizer_are_the_donors) },
    { TEST(files_that_no_longer_tell_the_vocabulary_are_left_out) },
    { TEST(tensors_of_no_vocabulary_stay_and_so_do_rows_that_fit) },
    { TEST(config_json_tells_how_many_rows_there_are) },
    { TEST(the_text_part_of_a_config_tells_how_many_tokens_count) },
    { TEST(tensors_with_a_row_a_token_are_known_by_their_names) },
};

CHECK_MAIN(tests)
