/* Every kind of adapter on tensors of more than one piece, against plain loops,
 * and read in parts. Small ones, by PEFT itself, are in tests/golden/peft. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/fold.h"
#include "support/check.h"
#include "support/made_model.h"

enum { OUT = 180, IN = 600, RANK = 3, EXPERTS = 2, WIDE = 70000 };

/* Factors, each of them larger than any kind needs. */
static float weights[EXPERTS * OUT * IN];
static float wide[2 * WIDE];
static float one[EXPERTS * RANK * WIDE], two[EXPERTS * RANK * IN];
static float three[RANK * IN], four[RANK * IN], lengths[IN];

static void fill(void)
{
    made_floats(weights, EXPERTS * OUT * IN, 1);
    made_floats(wide, 2 * WIDE, 2);
    made_floats(one, EXPERTS * RANK * WIDE, 3);
    made_floats(two, EXPERTS * RANK * IN, 4);
    made_floats(three, RANK * IN, 5);
    made_floats(four, RANK * IN, 6);
    made_floats(lengths, IN, 7);
}

typedef struct matrix {
    const char *name;
    uint64_t rows, cols;
    const float *values;
} matrix;

typedef struct kind {
    const char *what, *config, *base_config;
    matrix tensors[4]; /* of the adapter */
    matrix base;       /* "m.down" is a stack of them */
    double (*want)(const struct kind *self, uint64_t at);
} kind;

/* Row i of b, r columns, times column j of a, n columns. */
static double product(const float *b, const float *a, size_t i, size_t j,
                      size_t r, size_t n)
{
    double sum = 0;

    for (size_t k = 0; k < r; k++)
        sum += (double)b[i * r + k] * (double)a[k * n + j];
    return sum;
}

/* Outputs and inputs of a module whose weight is [in, out]. */
static double want_turned(const kind *self, uint64_t at)
{
    const float *w = self->base.values;
    uint64_t out = self->base.cols;
    uint64_t in = self->base.rows;

    return (double)w[at] + 2 * product(two, one, at % out, at / out, RANK, in);
}

static double dora_part(const kind *self, uint64_t output, uint64_t input)
{
    uint64_t in = self->base.cols;
    const float *w = self->base.values;

    return (double)w[output * in + input] +
           2 * product(two, one, output, input, RANK, in);
}

static double want_dora(const kind *self, uint64_t at)
{
    static uint64_t last = UINT64_MAX;
    static double norm;
    uint64_t in = self->base.cols;
    double squares = 0;

    if (!at || at / in != last) {
        for (uint64_t k = 0; k < in; k++)
            squares += pow(dora_part(self, at / in, k), 2);
        norm = sqrt(squares);
        last = at / in;
    }
    return dora_part(self, at / in, at % in) * (double)lengths[at / in] / norm;
}

static double want_loha(const kind *self, uint64_t at)
{
    const float *w = self->base.values;

    return (double)w[at] + 2 * product(two, one, at / IN, at % IN, RANK, IN) *
                               product(four, three, at / IN, at % IN, RANK, IN);
}

/* w1 is 12 x 20, w2 15 x 30 of rank 3. */
static double want_lokr(const kind *self, uint64_t at)
{
    const float *w = self->base.values;
    size_t i = at / IN;
    size_t j = at % IN;

    return (double)w[at] + 2 * (double)one[i / 15 * 20 + j / 30] *
                               product(two, three, i % 15, j % 30, RANK, 30);
}

static double want_ia3(const kind *self, uint64_t at)
{
    const float *w = self->base.values;

    return (double)w[at] * (double)one[at % IN];
}

/* [E, in, out]. */
static double want_stack(const kind *self, uint64_t at)
{
    const float *w = self->base.values;
    size_t e = at / (OUT * IN);
    size_t i = at % (OUT * IN) / OUT;
    size_t o = at % OUT;
    double sum = 0;

    for (size_t k = 0; k < RANK; k++)
        sum += (double)two[o * RANK * EXPERTS + k * EXPERTS + e] *
               (double)one[(e * RANK + k) * IN + i];
    return (double)w[at] + 2 * sum;
}

static double want_diagonal(const kind *self, uint64_t at)
{
    const float *w = self->base.values;
    double sum = 0;

    for (size_t k = 0; k < RANK; k++)
        sum += (double)two[at / IN * RANK + k] * (double)three[k] *
               (double)one[k * IN + at % IN];
    return (double)w[at] + 6 / (RANK + 1e-5) * sum;
}

static const kind kinds[] = {
    { "conv1d",
      "{\"peft_type\": \"LORA\", \"r\": 3, \"lora_alpha\": 6}",
      "{\"model_type\": \"gpt2\"}",
      { { "m.c_fc.lora_A.weight", RANK, IN, one },
        { "m.c_fc.lora_B.weight", OUT, RANK, two } },
      { "m.c_fc.weight", IN, OUT, weights },
      want_turned },
    { "embedding",
      "{\"peft_type\": \"LORA\", \"r\": 3, \"lora_alpha\": 6}",
      "{\"tie_word_embeddings\": false}",
      { { "m.lora_embedding_A", RANK, IN, one },
        { "m.lora_embedding_B", OUT, RANK, two } },
      { "m.weight", IN, OUT, weights },
      want_turned },
    { "rows wider than a piece",
      "{\"peft_type\": \"LORA\", \"r\": 3, \"lora_alpha\": 6, \"use_dora\": "
      "true}",
      "{\"model_type\": \"llama\"}",
      { { "m.lora_A.weight", RANK, WIDE, one },
        { "m.lora_B.weight", 2, RANK, two },
        { "m.lora_magnitude_vector", 1, 2, lengths } },
      { "m.weight", 2, WIDE, wide },
      want_dora },
    { "dora",
      "{\"peft_type\": \"LORA\", \"r\": 3, \"lora_alpha\": 6, \"use_dora\": "
      "true}",
      "{\"model_type\": \"llama\"}",
      { { "m.lora_A.weight", RANK, IN, one },
        { "m.lora_B.weight", OUT, RANK, two },
        { "m.lora_magnitude_vector", 1, OUT, lengths } },
      { "m.weight", OUT, IN, weights },
      want_dora },
    { "loha",
      "{\"peft_type\": \"LOHA\", \"r\": 3, \"alpha\": 6}",
      NULL,
      { { "m.hada_w1_a", OUT, RANK, two },
        { "m.hada_w1_b", RANK, IN, one },
        { "m.hada_w2_a", OUT, RANK, four },
        { "m.hada_w2_b", RANK, IN, three } },
      { "m.weight", OUT, IN, weights },
      want_loha },
    { "lokr",
      "{\"peft_type\": \"LOKR\", \"r\": 3, \"alpha\": 6}",
      NULL,
      { { "m.lokr_w1", 12, 20, one },
        { "m.lokr_w2_a", 15, RANK, two },
        { "m.lokr_w2_b", RANK, 30, three } },
      { "m.weight", OUT, IN, weights },
      want_lokr },
    { "ia3",
      "{\"peft_type\": \"IA3\"}",
      NULL,
      { { "m.ia3_l", 1, IN, one } },
      { "m.weight", OUT, IN, weights },
      want_ia3 },
    { "adalora",
      "{\"peft_type\": \"ADALORA\", \"init_r\": 3, \"lora_alpha\": 6, "
      "\"rank_pattern\": {\"m.lora_E\": [true, true, true]}}",
      NULL,
      { { "m.lora_A", RANK, IN, one },
        { "m.lora_B", OUT, RANK, two },
        { "m.lora_E", RANK, 1, three } },
      { "m.weight", OUT, IN, weights },
      want_diagonal },
    { "stack",
      "{\"peft_type\": \"LORA\", \"r\": 3, \"lora_alpha\": 6, "
      "\"target_parameters\": [\"m.down\"]}",
      NULL,
      { { "m.lora_A.weight", EXPERTS *RANK, IN, one },
        { "m.lora_B.weight", OUT, EXPERTS *RANK, two } },
      { "m.down", IN, OUT, weights },
      want_stack },
};

static made_row row_of(const matrix *self)
{
    return (made_row){ .name = self->name,
                       .dtype = BAL_F32,
                       .rank = 2,
                       .shape = { self->rows, self->cols },
                       .bytes = self->values };
}

static bal_model *adapter_of(const kind *self)
{
    made_row rows[5];
    size_t n = 0;

    for (; n < 4 && self->tensors[n].name; n++)
        rows[n] = row_of(&self->tensors[n]);
    rows[n++] = (made_row){ .name = "adapter_config.json",
                            .part = BAL_PART_FILE,
                            .bytes = self->config };
    return made_model(BAL_KIND_ADAPTER, NULL, rows, n);
}

static bal_model *base_of(const kind *self)
{
    made_row rows[] = { row_of(&self->base),
                        { .name = "config.json",
                          .part = BAL_PART_FILE,
                          .bytes = self->base_config } };

    if (self->want == want_stack) {
        rows[0].rank = 3;
        memmove(rows[0].shape + 1, rows[0].shape, 2 * sizeof(uint64_t));
        rows[0].shape[0] = EXPERTS;
    }
    return made_model(BAL_KIND_WEIGHTS, NULL, rows, self->base_config ? 2 : 1);
}

static void check_values(const kind *self, const float *got, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double want = self->want(self, i);
        CHECK(fabs((double)got[i] - want) <= 1e-7 * fabs(want) + 1e-12);
    }
}

static void check_parts(bal_model *folded, const float *whole, uint64_t size)
{
    const uint64_t step = 1234 * 32;
    uint8_t part[1234 * 32];

    for (uint64_t at = 0; at < size; at += step) {
        size_t len = (size_t)(size - at < step ? size - at : step);
        CHECK_OK(bal_model_read(folded, 0, at, part, len, &check_err));
        CHECK(!memcmp((const uint8_t *)whole + at, part, len));
    }
}

static void every_kind_is_its_formula(void)
{
    fill();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        const kind *row = &kinds[i];
        BAL_OWN(bal_model) adapter = adapter_of(row);
        BAL_OWN(bal_model) base = base_of(row);
        BAL_OWN(bal_model) folded = NULL;

        check_row(row->what);
        CHECK_OK(bal_fold_open(&folded, base, adapter, NULL, &check_err));
        uint64_t size = bal_model_at(folded, 0)->size;
        float *got = malloc(size);
        CHECK(got != NULL);
        CHECK_OK(bal_model_read(folded, 0, 0, got, size, &check_err));
        check_values(row, got, size / sizeof(*got));
        check_parts(folded, got, size);
        free(got);
    }
}

static const check_test tests[] = {
    { TEST(every_kind_is_its_formula) },
};

CHECK_MAIN(tests)
