/* Models in front of whole models, with the rows of another vocabulary. What is
 * wanted was computed with numpy by the rules of mergekit 0.1.5. */
#include "unit/vocab_inputs.h"

static void check_values(bal_model *model, const double *want, size_t count)
{
    size_t i = bal_model_find(model, BAL_PART_TENSOR, embed);
    float got[MOST * WIDTH];

    CHECK(i != BAL_NONE && count <= MOST);
    const bal_tensor *entry = bal_model_at(model, i);
    CHECK(entry->rank == 2 && entry->shape[0] == count &&
          entry->shape[1] == WIDTH && entry->dtype == BAL_F32);
    CHECK_OK(bal_model_read(model, i, 0, got, count * WIDTH * sizeof(float),
                            &check_err));
    for (size_t k = 0; k < count; k++) {
        if ((double)got[k * WIDTH] != want[k])
            print_error("row %zu is %g, not %g\n", k, (double)got[k * WIDTH],
                        want[k]);
        CHECK((double)got[k * WIDTH] == want[k] &&
              (double)got[k * WIDTH + 1] == want[k] * 2 &&
              (double)got[k * WIDTH + 2] == want[k] / 2);
    }
}

typedef struct rows_case {
    const char *name;
    bal_vocab_want want;
    size_t base;
    size_t rows;
    double values[3][MOST];
} rows_case;

static void check_case(const rows_case *self, const input *const *inputs,
                       size_t count)
{
    static const char *const names[] = { "A", "B", "C" };
    bal_model *models[3];
    bal_model *out[3] = { NULL };

    check_row(self->name);
    for (size_t i = 0; i < count; i++)
        models[i] = make(names[i], inputs[i]);
    CHECK_OK(bal_vocab_open(out, &self->want, models, count, self->base,
                            &check_err));
    for (size_t i = 0; i < count; i++)
        bal_model_free(models[i]);
    for (size_t i = 0; i < count; i++) {
        check_values(out[i], self->values[i], self->rows);
        bal_model_free(out[i]);
    }
}

static bal_vocab_token tokens_c[] = {
    { .token = "x", .source = BAL_ROW_INPUT, .input = 2, .force = true },
};
static bal_vocab_token tokens_zero[] = {
    { .token = "z", .source = BAL_ROW_ZERO },
};
static bal_vocab_token tokens_all_zero[] = {
    { .token = "z", .source = BAL_ROW_ZERO, .force = true },
};
static bal_vocab_token tokens_other[] = {
    { .token = "v", .source = BAL_ROW_TOKEN, .input = 2, .other = "z" },
};
static bal_vocab_token tokens_id[] = {
    { .token = "v", .source = BAL_ROW_ID, .input = 1, .id = 1 },
    { .token = "u", .source = BAL_ROW_ZERO },
};

/* mergekit's own numbers, in the order x, y, z, w. */
static const rows_case gathered[] = {
    { "no base: means",
      { 0 },
      BAL_NONE,
      4,
      { { 1, 2, 60, 300 }, { 10, 2, 20, 300 }, { 200, 2, 100, 300 } } },
    { "padded",
      { .multiple = 6 },
      BAL_NONE,
      6,
      { { 1, 2, 60, 300, 90.75, 90.75 },
        { 10, 2, 20, 300, 83, 83 },
        { 200, 2, 100, 300, 150.5, 150.5 } } },
    { "forced",
      { .tokens = tokens_c, .count = 1 },
      BAL_NONE,
      4,
      { { 200, 2, 60, 300 }, { 200, 2, 20, 300 }, { 200, 2, 100, 300 } } },
    { "zero where it is lacking",
      { .tokens = tokens_zero, .count = 1 },
      BAL_NONE,
      4,
      { { 1, 2, 0, 300 }, { 10, 2, 20, 300 }, { 200, 2, 100, 300 } } },
    { "zero for all",
      { .tokens = tokens_all_zero, .count = 1 },
      BAL_NONE,
      4,
      { { 1, 2, 0, 300 }, { 10, 2, 0, 300 }, { 200, 2, 0, 300 } } },
    { "a copy of another token",
      { .tokens = tokens_other, .count = 1 },
      BAL_NONE,
      5,
      { { 1, 2, 60, 300, 100 },
        { 10, 2, 20, 300, 100 },
        { 200, 2, 100, 300, 100 } } },
    { "new tokens, by their bytes",
      { .tokens = tokens_id, .count = 2 },
      BAL_NONE,
      6,
      { { 1, 2, 60, 300, 0, 20 },
        { 10, 2, 20, 300, 0, 20 },
        { 200, 2, 100, 300, 0, 20 } } },
    { "that of one input",
      { .source = BAL_VOCAB_INPUT, .input = 2 },
      BAL_NONE,
      3,
      { { 60, 1, 300 }, { 20, 10, 300 }, { 100, 200, 300 } } },
    { "that of no base is the first's",
      { .source = BAL_VOCAB_BASE },
      BAL_NONE,
      2,
      { { 1, 2 }, { 10, 2 }, { 200, 2 } } },
    /* The order is x, z of the base, then y, w. */
    { "the base's row",
      { 0 },
      1,
      4,
      { { 1, 20, 2, 300 }, { 10, 20, 2, 300 }, { 200, 100, 2, 300 } } },
    { "the base's tokens and a new one",
      { .source = BAL_VOCAB_BASE, .tokens = tokens_other, .count = 1 },
      1,
      3,
      { { 1, 20, 100 }, { 10, 20, 100 }, { 200, 100, 100 } } },
};

static void rows_are_gathered_by_mergekits_rules(void)
{
    static const input *const inputs[] = { &x_y, &x_z, &z_x_w };
    for (size_t i = 0; i < COUNT(gathered); i++) {
        rows_case twice = gathered[i];
        check_case(&twice, inputs, 3);
        twice.want.mergekit = true;
        check_case(&twice, inputs, 3);
    }
}

static void ids_without_a_row_are_left_out(void)
{
    static const input more = { .tokens = { "x", "q", "y", "r" },
                                .values = { 1, 5, 2 },
                                .rows = 3,
                                .vocab_size = 3 };
    static const input less = { .tokens = { "x", "y", "s" },
                                .values = { 10, 20, 30 },
                                .vocab_size = 2 };
    static const input *const inputs[] = { &more, &less };
    static const rows_case cases[] = {
        { "union", { 0 }, 0, 3, { { 1, 5, 2 }, { 10, 5, 20 } } },
        { "the second's",
          { .source = BAL_VOCAB_INPUT, .input = 1 },
          0,
          2,
          { { 1, 2 }, { 10, 20 } } },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        check_case(&cases[i], inputs, 2);
}

/* A row that is there but not told of in config.json is padding. */
static void an_id_without_a_row_is_a_token_that_is_lacking(void)
{
    static const input less = { .tokens = { "x", "y", "s" },
                                .values = { 10, 20, 30 },
                                .vocab_size = 2 };
    static const input base = { .tokens = { "x", "s" }, .values = { 1, 2 } };
    static const input *const inputs[] = { &less, &base };
    static const rows_case one = {
        "union", { 0 }, 1, 3, { { 10, 2, 20 }, { 1, 2, 20 } }
    };

    check_case(&one, inputs, 2);
}

static void added_tokens_come_after_plain_ones(void)
{
    static const input base = { .tokens = { "x" }, .values = { 1 } };
    static const input b = { .tokens = { "x", "p", "q" },
                             .added = { "p", "a" },
                             .values = { 10, 20, 30, 40 },
                             .rows = 4 };
    static const input c = { .tokens = { "p", "x", "r" },
                             .values = { 100, 200, 300 } };
    static const input *const inputs[] = { &base, &b, &c };
    /* q and r are plain everywhere; p and a are added ones of b. */
    static const rows_case cases[] = {
        { "union",
          { 0 },
          0,
          5,
          { { 1, 30, 300, 60, 40 },
            { 10, 30, 300, 20, 40 },
            { 200, 30, 300, 100, 40 } } },
    };

    check_case(&cases[0], inputs, 3);
}

static void ids_that_no_token_has_keep_their_rows(void)
{
    bal_model *models[2] = { NULL, make("B", &x_z) };
    bal_model *out[2] = { NULL };
    static const char text[] = "{\"added_tokens\":[],\"model\":{\"vocab\":{"
                               "\"x\":0,\"y\":2}}}";
    static const bal_vocab_want want = { 0 };
    static const double a[] = { 1, 2, 3, 20 };
    static const double b[] = { 10, 2, 3, 20 };
    float values[3 * WIDTH] = { 1, 2, 0.5, 2, 4, 1, 3, 6, 1.5 };
    uint64_t shape[] = { 3, WIDTH };

    models[0] = memory_new(BAL_KIND_WEIGHTS, "A");
    memory_tensor(models[0], embed, BAL_F32, 2, shape, values);
    memory_file(models[0], BAL_PART_FILE, "tokenizer.json", text,
                sizeof(text) - 1);
    memory_finish(models[0]);
    CHECK_OK(bal_vocab_open(out, &want, models, 2, 0, &check_err));
    check_values(out[0], a, 4);
    check_values(out[1], b, 4);
    for (size_t i = 0; i < 2; i++) {
        bal_model_free(models[i]);
        bal_model_free(out[i]);
    }
}

static const check_test tests[] = {
    { TEST(rows_are_gathered_by_mergekits_rules) },
    { TEST(ids_without_a_row_are_left_out) },
    { TEST(an_id_without_a_row_is_a_token_that_is_lacking) },
    { TEST(added_tokens_come_after_plain_ones) },
    { TEST(ids_that_no_token_has_keep_their_rows) },
};

CHECK_MAIN(tests)
