/* What there is no vocabulary for: wants that cannot be met, inputs that do not
 * fit. */
#include <stdlib.h>

#include "unit/vocab_inputs.h"

typedef struct refused_case {
    const char *why;
    bal_vocab_want want;
    int rc;
    const char *text; /* in the message */
} refused_case;

static bal_vocab_token untold[] = { { .token = "z" } };
static bal_vocab_token forced_untold[] = { { .token = "x", .force = true } };
static bal_vocab_token not_there[] = {
    { .token = "y", .source = BAL_ROW_INPUT, .input = 1 },
};
static bal_vocab_token no_other[] = {
    { .token = "v", .source = BAL_ROW_TOKEN, .input = 1, .other = "y" },
};
static bal_vocab_token no_row[] = {
    { .token = "v", .source = BAL_ROW_ID, .input = 1, .id = 2 },
};
static bal_vocab_token no_input[] = {
    { .token = "v", .source = BAL_ROW_ID, .input = 9 },
};
static bal_vocab_token twice[] = {
    { .token = "v", .source = BAL_ROW_ZERO },
    { .token = "v", .source = BAL_ROW_ZERO },
};

static void what_cannot_be_told_is_refused(void)
{
    static const refused_case cases[] = {
        { "untold",
          { .tokens = untold, .count = 1 },
          BAL_EINVAL,
          "token 'z' is not in input 1 ('A')" },
        { "forced",
          { .tokens = forced_untold, .count = 1 },
          BAL_EINVAL,
          "token 'x' is forced" },
        { "not there",
          { .tokens = not_there, .count = 1 },
          BAL_EINVAL,
          "token 'y': its source is input 2 ('B'), which has no token 'y'" },
        { "no other",
          { .tokens = no_other, .count = 1 },
          BAL_EINVAL,
          "token 'v': its source is input 2 ('B'), which has no token 'y'" },
        { "no row",
          { .tokens = no_row, .count = 1 },
          BAL_EINVAL,
          "row 2 of input 2 ('B')" },
        { "no input",
          { .tokens = no_input, .count = 1 },
          BAL_EINVAL,
          "of no input" },
        { "twice",
          { .tokens = twice, .count = 2 },
          BAL_EINVAL,
          "token 'v' is told twice" },
        { "source",
          { .source = BAL_VOCAB_INPUT, .input = 2 },
          BAL_EINVAL,
          "of no input" },
    };
    bal_model *models[] = { make("A", &x_y), make("B", &x_z) };
    bal_model *out[2] = { NULL };

    for (size_t i = 0; i < COUNT(cases); i++) {
        check_row(cases[i].why);
        CHECK_RC(cases[i].rc, bal_vocab_open(out, &cases[i].want, models, 2,
                                             BAL_NONE, &check_err));
        if (!strstr(check_err.text, cases[i].text))
            print_error("%s\n", check_err.text);
        CHECK(strstr(check_err.text, cases[i].text) && !out[0] && !out[1]);
    }
    CHECK_RC(BAL_EINVAL,
             bal_vocab_open(out, &cases[0].want, models, 2, 2, &check_err));
    bal_model_free(models[0]);
    bal_model_free(models[1]);
}

/* What stands beside a model of x and y as the second input, and why not. */
typedef struct bad_input {
    const char *why;
    const char *tensor;
    bal_dtype dtype;
    uint64_t shape[2];
    uint32_t rank;
    const char *file, *text;
    int rc;
    const char *message;
} bad_input;

static const char words[] = "{\"model\":{\"vocab\":{\"x\":0}}}";
static const bad_input bad_inputs[] = {
    { "long rows",
      embed,
      BAL_BF16,
      { 1, (1 << 20) + 1 },
      2,
      "tokenizer.json",
      words,
      BAL_EUNSUPPORTED,
      "has rows of more than 1048576 numbers" },
    { "width",
      embed,
      BAL_F32,
      { 2, 4 },
      2,
      "tokenizer.json",
      words,
      BAL_EINVAL,
      "input 2 ('B') has rows of another shape" },
    { "rank",
      embed,
      BAL_F32,
      { 2 },
      1,
      "tokenizer.json",
      words,
      BAL_EINVAL,
      "rows of another shape" },
    { "no rows",
      embed,
      BAL_F32,
      { 0, WIDTH },
      2,
      "tokenizer.json",
      words,
      BAL_EINVAL,
      "has no rows" },
    { "scalar",
      embed,
      BAL_F32,
      { 0 },
      0,
      "tokenizer.json",
      words,
      BAL_EINVAL,
      "has no rows" },
    { "integers",
      embed,
      BAL_I32,
      { 2, WIDTH },
      2,
      "tokenizer.json",
      words,
      BAL_EUNSUPPORTED,
      "is not of BF16, F16, F32 or F64" },
    { "no tensor",
      "w",
      BAL_F32,
      { 2, WIDTH },
      2,
      "tokenizer.json",
      words,
      BAL_EINVAL,
      "input 2 ('B') has no tensor" },
    { "no file",
      embed,
      BAL_F32,
      { 2, WIDTH },
      2,
      "README.md",
      words,
      BAL_EINVAL,
      "input 2 ('B') has no tokenizer.json" },
    { "another file",
      embed,
      BAL_F32,
      { 2, WIDTH },
      2,
      "tokenizer.model",
      words,
      BAL_EUNSUPPORTED,
      "tokenizer.model" },
    { "not JSON",
      embed,
      BAL_F32,
      { 2, WIDTH },
      2,
      "tokenizer.json",
      "{",
      BAL_ECORRUPT,
      "input 2 ('B'): tokenizer.json" },
    { "bad config",
      embed,
      BAL_F32,
      { 2, WIDTH },
      2,
      "config.json",
      "{",
      BAL_ECORRUPT,
      "input 2 ('B'): config.json" },
};

static void inputs_that_do_not_fit_are_refused(void)
{
    void *zeros = calloc(2, ((size_t)1 << 20) + 1);
    static const bal_vocab_want want = { 0 };

    CHECK(zeros != NULL);
    for (size_t i = 0; i < COUNT(bad_inputs); i++) {
        const bad_input *row = &bad_inputs[i];
        bal_model *models[] = { make("A", &x_y),
                                memory_new(BAL_KIND_WEIGHTS, "B") };
        bal_model *out[2] = { NULL };

        check_row(row->why);
        memory_tensor(models[1], row->tensor, row->dtype, row->rank, row->shape,
                      zeros);
        memory_file(models[1], BAL_PART_FILE, row->file, row->text,
                    strlen(row->text));
        memory_finish(models[1]);
        CHECK_RC(row->rc,
                 bal_vocab_open(out, &want, models, 2, BAL_NONE, &check_err));
        if (!strstr(check_err.text, row->message))
            print_error("%s\n", check_err.text);
        CHECK(strstr(check_err.text, row->message) && !out[0]);
        bal_model_free(models[0]);
        bal_model_free(models[1]);
    }
    free(zeros);
}

static const check_test tests[] = {
    { TEST(what_cannot_be_told_is_refused) },
    { TEST(inputs_that_do_not_fit_are_refused) },
};

CHECK_MAIN(tests)
