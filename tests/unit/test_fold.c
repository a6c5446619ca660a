/* Adapters folded onto a base: W + s B A, by plain loops in double, on adapters
 * that PEFT trained and on made ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/fold.h"
#include "support/check.h"
#include "support/made_model.h"

/* ---- real adapters ------------------------------------------------------ */

typedef struct target {
    const char *adapter, *module;
    uint64_t out, in, rank;
    double scale; /* read in the config by eye */
} target;

static const target targets[] = {
    { "lora_r8_qv", "model.layers.2.self_attn.q_proj", 192, 192, 8, 2 },
    { "lora_r4_patterns", "model.layers.0.self_attn.q_proj", 192, 192, 12,
      8.0 / 12.0 },
    { "lora_r4_patterns", "model.layers.3.self_attn.o_proj", 192, 192, 6,
      3.0 / 6.0 },
    { "lora_r4_patterns", "model.layers.3.mlp.down_proj", 192, 512, 2,
      10.0 / 2.0 },
    { "lora_r4_patterns", "model.layers.1.self_attn.v_proj", 96, 192, 4,
      4.0 / 4.0 },
    { "lora_r16_all_rslora", "model.layers.1.mlp.up_proj", 512, 192, 16, 4 },
};

static bal_model *open_adapter(const char *name)
{
    const char *tree = getenv("BALLAST_TREE");
    char path[512];
    bal_model *model = NULL;

    snprintf(path, sizeof(path), "%s/tests/data/adapters/%s", tree ? tree : ".",
             name);
    CHECK_OK(bal_model_from_path(&model, path, &check_err));
    return model;
}

static bool is_factor(const char *name, const char *tail)
{
    return strstr(name, tail) != NULL;
}

/* A base with a weight for each module of the adapter, all of dtype, with the
 * same values. */
static bal_model *base_for(bal_model *adapter, bal_dtype dtype,
                           const void *values)
{
    static made_row rows[64];
    static char names[64][128];
    size_t n = 0;

    for (size_t i = 0; i + 1 < bal_model_count(adapter); i++) {
        const bal_tensor *a = bal_model_at(adapter, i);
        const char *tail = strstr(a->name, ".lora_A.");
        if (a->part != BAL_PART_TENSOR || !tail)
            continue;
        const bal_tensor *b = bal_model_at(adapter, i + 1);
        CHECK(is_factor(b->name, ".lora_B.") && n < 63);
        const char *module = a->name + strlen("base_model.model.");
        snprintf(names[n], sizeof(names[n]), "%.*s.weight",
                 (int)(tail - module), module);
        rows[n] = (made_row){ .name = names[n],
                              .dtype = dtype,
                              .rank = 2,
                              .shape = { b->shape[0], a->shape[1] },
                              .bytes = values };
        n++;
    }
    rows[n++] = (made_row){ .name = "config.json",
                            .part = BAL_PART_FILE,
                            .bytes = "{\"model_type\": \"llama\"}" };
    return made_model(BAL_KIND_WEIGHTS, "base", rows, n);
}

static float *factor(bal_model *adapter, const char *module, char letter)
{
    char name[256];

    snprintf(name, sizeof(name), "base_model.model.%s.lora_%c.weight", module,
             letter);
    size_t i = bal_model_find(adapter, BAL_PART_TENSOR, name);
    CHECK(i != BAL_NONE);
    uint64_t size = bal_model_at(adapter, i)->size;
    float *values = malloc(size);
    CHECK(values != NULL);
    CHECK_OK(bal_model_read(adapter, i, 0, values, size, &check_err));
    return values;
}

/* s B A of one module. */
static double *product_of(bal_model *adapter, const target *row)
{
    float *a = factor(adapter, row->module, 'A');
    float *b = factor(adapter, row->module, 'B');
    double *out = calloc(row->out * row->in, sizeof(*out));

    CHECK(out != NULL);
    for (size_t i = 0; i < row->out * row->in; i++) {
        size_t r = i / row->in;
        size_t c = i % row->in;
        double sum = 0;

        for (size_t k = 0; k < row->rank; k++)
            sum += (double)b[r * row->rank + k] * (double)a[k * row->in + c];
        out[i] = row->scale * sum;
    }
    free(a);
    free(b);
    return out;
}

static void *read_weight(bal_model *model, const target *row, size_t width)
{
    char name[256];
    uint8_t *got = malloc(row->out * row->in * width);

    snprintf(name, sizeof(name), "%s.weight", row->module);
    size_t i = bal_model_find(model, BAL_PART_TENSOR, name);
    CHECK(i != BAL_NONE && got);
    CHECK(bal_model_at(model, i)->size == row->out * row->in * width);
    CHECK_OK(bal_model_read(model, i, 0, got, row->out * row->in * width,
                            &check_err));
    return got;
}

static void weights_get_the_scaled_product(void)
{
    enum { MOST = 512 * 192 };
    float *values = malloc(MOST * sizeof(*values));
    uint16_t *halves = malloc(MOST * sizeof(*halves));

    made_floats(values, MOST, 5);
    made_bf16(halves, MOST, 6);
    for (size_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++) {
        const target *row = &targets[t];
        BAL_OWN(bal_model) adapter = open_adapter(row->adapter);
        BAL_OWN(bal_model) wide = base_for(adapter, BAL_F32, values);
        BAL_OWN(bal_model) narrow = base_for(adapter, BAL_BF16, halves);
        BAL_OWN(bal_model) wide_fold = NULL;
        BAL_OWN(bal_model) narrow_fold = NULL;

        check_row(row->module);
        CHECK_OK(bal_fold_open(&wide_fold, wide, adapter, NULL, &check_err));
        CHECK_OK(
            bal_fold_open(&narrow_fold, narrow, adapter, NULL, &check_err));
        double *product = product_of(adapter, row);
        float *got = read_weight(wide_fold, row, sizeof(float));
        uint16_t *got16 = read_weight(narrow_fold, row, sizeof(uint16_t));
        for (size_t i = 0; i < row->out * row->in; i++) {
            double low = (double)bf16_value(halves[i]);
            CHECK(got[i] == (float)((double)values[i] + product[i]));
            CHECK(got16[i] == bf16_round(low + product[i]));
        }
        CHECK(bal_model_facts(wide_fold)->kind == BAL_KIND_WEIGHTS);
        free(product);
        free(got);
        free(got16);
    }
    free(values);
    free(halves);
}

static void any_range_reads_as_the_whole_does(void)
{
    enum { MOST = 512 * 192 };
    float *values = malloc(MOST * sizeof(*values));
    BAL_OWN(bal_model) adapter = open_adapter("lora_r4_patterns");
    BAL_OWN(bal_model) folded = NULL;

    made_floats(values, MOST, 5);
    BAL_OWN(bal_model) base = base_for(adapter, BAL_F32, values);
    CHECK_OK(bal_fold_open(&folded, base, adapter, NULL, &check_err));
    for (size_t i = 0; i < bal_model_count(folded); i++) {
        uint64_t size = bal_model_at(folded, i)->size;
        uint8_t *whole = malloc(size);
        uint8_t *parts = malloc(size);
        const uint64_t step = 77 * 32;

        CHECK_OK(bal_model_read(folded, i, 0, whole, size, &check_err));
        for (uint64_t at = 0; at < size; at += step) {
            size_t len = (size_t)(size - at < step ? size - at : step);
            CHECK_OK(
                bal_model_read(folded, i, at, parts + at, len, &check_err));
        }
        CHECK(!memcmp(whole, parts, size));
        free(whole);
        free(parts);
    }
    free(values);
}

/* ---- made ones ---------------------------------------------------------- */

/* Wider than what is computed at once, so that rows are cut. */
static void rows_wider_than_a_piece_come_out_right(void)
{
    enum { IN = 150000, OUT = 3, RANK = 2 };
    float *a = malloc(RANK * IN * sizeof(*a));
    float *w = malloc(OUT * IN * sizeof(*w));
    float *got = malloc(OUT * IN * sizeof(*got));
    static const float b[OUT * RANK] = { 1, 2, -1, 0.5F, 0, 3 };

    made_floats(a, RANK * IN, 1);
    made_floats(w, OUT * IN, 2);
    made_row parts[] = {
        { .name = "m.lora_A.weight",
          .dtype = BAL_F32,
          .rank = 2,
          .shape = { RANK, IN },
          .bytes = a },
        { .name = "m.lora_B.weight",
          .dtype = BAL_F32,
          .rank = 2,
          .shape = { OUT, RANK },
          .bytes = b },
        { .name = "adapter_config.json",
          .part = BAL_PART_FILE,
          .bytes = "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 6}" },
    };
    made_row weight = { .name = "m.weight",
                        .dtype = BAL_F32,
                        .rank = 2,
                        .shape = { OUT, IN },
                        .bytes = w };
    BAL_OWN(bal_model) adapter = made_model(BAL_KIND_ADAPTER, NULL, parts, 3);
    BAL_OWN(bal_model) base = made_model(BAL_KIND_WEIGHTS, NULL, &weight, 1);
    BAL_OWN(bal_model) folded = NULL;

    CHECK_OK(bal_fold_open(&folded, base, adapter, NULL, &check_err));
    CHECK_OK(bal_model_read(folded, 0, 0, got, OUT * IN * sizeof(float),
                            &check_err));
    for (size_t i = 0; i < OUT * IN; i++) {
        size_t r = i / IN;
        size_t c = i % IN;
        double sum = (double)b[2 * r] * (double)a[c];
        sum += (double)b[2 * r + 1] * (double)a[IN + c];
        CHECK(got[i] == (float)((double)w[i] + 3 * sum));
    }
    free(a);
    free(w);
    free(got);
}

static const float some[4096] = { 1, 2, 3 };
static const float zeros[256];
static const uint16_t threes[2] = { 0x4040, 0x4040 };

typedef struct fit_row {
    const char *what;
    const char *base_config;    /* NULL: none */
    const char *adapter_config; /* beside the type and r */
    const char *module;         /* B is 16 x 4, A 4 x 32 */
    const char *weight;
    uint64_t rows, cols;
    bal_dtype dtype;
    int rc;
    const char *says;
} fit_row;

static const fit_row fits[] = {
    { "fits", "{\"model_type\": \"llama\"}", "", "l.0.q", "l.0.q.weight", 16,
      32, BAL_BF16, 0, NULL },
    { "no such module", NULL, "", "l.0.q", "l.0.k.weight", 16, 32, BAL_BF16,
      BAL_ECORRUPT, "module 'l.0.q' of the adapter is not in the base" },
    { "another shape", NULL, "", "l.0.q", "l.0.q.weight", 16, 48, BAL_BF16,
      BAL_ECORRUPT,
      "module 'l.0.q' of the adapter is 16 x 32, the base's is "
      "16 x 48" },
    { "one dimension", NULL, "", "l.0.q", "l.0.q.weight", 512, 0, BAL_BF16,
      BAL_ECORRUPT, "module 'l.0.q'" },
    { "quantised", NULL, "", "l.0.q", "l.0.q.weight", 16, 32, BAL_I8,
      BAL_EUNSUPPORTED, "tensor 'l.0.q.weight' of the base is I8" },
    { "fp8", NULL, "", "l.0.q", "l.0.q.weight", 16, 32, BAL_F8_E4M3,
      BAL_EUNSUPPORTED, "F8_E4M3" },
    { "conv1d", "{\"model_type\": \"gpt2\"}", "", "h.0.c_attn",
      "h.0.c_attn.weight", 32, 16, BAL_F32, 0, NULL },
    { "conv1d where there is none", "{\"model_type\": \"llama\"}", "", "l.0.q",
      "l.0.q.weight", 32, 16, BAL_F32, BAL_ECORRUPT,
      "is 16 x 32, the base's is 32 x 16" },
    { "fan_in_fan_out is not believed", NULL, ", \"fan_in_fan_out\": true",
      "l.0.q", "l.0.q.weight", 16, 32, BAL_F32, 0, NULL },
    { "a head of its own", "{\"tie_word_embeddings\": false}", "", "lm_head",
      "lm_head.weight", 16, 32, BAL_F32, 0, NULL },
    { "a tied head", "{\"tie_word_embeddings\": true}", "", "lm_head",
      "model.embed_tokens.weight", 16, 32, BAL_F32, 0, NULL },
    { "a tied head of text and images",
      "{\"text_config\": {\"tie_word_embeddings\": true}}", "", "lm_head",
      "model.embed_tokens.weight", 16, 32, BAL_F32, 0, NULL },
    { "an embedding without a head", NULL, "", "model.embed_tokens",
      "model.embed_tokens.weight", 16, 32, BAL_F32, BAL_EUNSUPPORTED,
      "which may be one tensor in this base: it has no config.json" },
    { "an embedding whose head has no known name",
      "{\"tie_word_embeddings\": true}", "", "odd.embed_tokens",
      "odd.embed_tokens.weight", 16, 32, BAL_F32, BAL_EUNSUPPORTED,
      "tensor 'odd.embed_tokens.weight' may be both" },
    { "saved without its head", NULL, "", "transformer.h.0.q", "h.0.q.weight",
      16, 32, BAL_F32, 0, NULL },
};

static bal_model *fit_adapter(const fit_row *row)
{
    char a[64];
    char b[64];
    static char config[256]; /* read after this has returned */

    snprintf(a, sizeof(a), "base_model.model.%s.lora_A.weight", row->module);
    snprintf(b, sizeof(b), "base_model.model.%s.lora_B.weight", row->module);
    snprintf(config, sizeof(config), "{\"peft_type\": \"LORA\", \"r\": 4%s}",
             row->adapter_config);
    made_row parts[] = {
        { .name = a,
          .dtype = BAL_F32,
          .rank = 2,
          .shape = { 4, 32 },
          .bytes = some },
        { .name = b,
          .dtype = BAL_F32,
          .rank = 2,
          .shape = { 16, 4 },
          .bytes = some },
        { .name = "adapter_config.json",
          .part = BAL_PART_FILE,
          .bytes = config },
    };
    return made_model(BAL_KIND_ADAPTER, NULL, parts, 3);
}

static void an_adapter_fits_its_base_or_is_refused(void)
{
    for (size_t i = 0; i < sizeof(fits) / sizeof(fits[0]); i++) {
        const fit_row *row = &fits[i];
        made_row parts[] = {
            { .name = row->weight,
              .dtype = row->dtype,
              .rank = row->cols ? 2 : 1,
              .shape = { row->rows, row->cols },
              .bytes = some },
            { .name = "config.json",
              .part = BAL_PART_FILE,
              .bytes = row->base_config },
        };
        BAL_OWN(bal_model) adapter = fit_adapter(row);
        BAL_OWN(bal_model)
        base =
            made_model(BAL_KIND_WEIGHTS, NULL, parts, row->base_config ? 2 : 1);
        BAL_OWN(bal_model) folded = NULL;

        check_row(row->what);
        CHECK_RC(row->rc,
                 bal_fold_open(&folded, base, adapter, NULL, &check_err));
        CHECK(!row->says || strstr(check_err.text, row->says) != NULL);
    }
}

/* A square c_proj can be told by nothing but its class. */
static void a_square_conv1d_is_told_by_its_class(void)
{
    static const char *const types[] = { "{\"model_type\": \"gpt2\"}",
                                         "{\"model_type\": \"gpt_bigcode\"}",
                                         "{}" };
    static const float a[64] = { [0] = 1 };        /* A[0, 0] */
    static const float b[64] = { [3 * 4] = 0.5F }; /* B[3, 0] */

    for (size_t i = 0; i < 3; i++) {
        made_row factors[] = {
            { .name = "h.0.c_proj.lora_A.weight",
              .dtype = BAL_F32,
              .rank = 2,
              .shape = { 4, 16 },
              .bytes = a },
            { .name = "h.0.c_proj.lora_B.weight",
              .dtype = BAL_F32,
              .rank = 2,
              .shape = { 16, 4 },
              .bytes = b },
            { .name = "adapter_config.json",
              .part = BAL_PART_FILE,
              .bytes = "{\"peft_type\": \"LORA\", \"r\": 4}" },
        };
        made_row parts[] = {
            { .name = "h.0.c_proj.weight",
              .dtype = BAL_F32,
              .rank = 2,
              .shape = { 16, 16 },
              .bytes = zeros },
            { .name = "config.json", .part = BAL_PART_FILE, .bytes = types[i] },
        };
        BAL_OWN(bal_model)
        adapter = made_model(BAL_KIND_ADAPTER, NULL, factors, 3);
        BAL_OWN(bal_model) base = made_model(BAL_KIND_WEIGHTS, NULL, parts, 2);
        BAL_OWN(bal_model) folded = NULL;

        float got[256];
        check_row(types[i]);
        CHECK_RC(i < 2 ? 0 : BAL_EUNSUPPORTED,
                 bal_fold_open(&folded, base, adapter, NULL, &check_err));
        if (i == 2)
            break;
        CHECK_OK(bal_model_read(folded, 0, 0, got, sizeof(got), &check_err));
        CHECK(got[i ? 3 * 16 : 3] == 1); /* alpha / r is 2 */
    }
}

static void whole_tensors_replace_the_bases(void)
{
    static const float trained[2] = { 1.5F, 3.0078125F };
    made_row factors[] = {
        { .name = "base_model.model.score.bias",
          .dtype = BAL_F32,
          .rank = 1,
          .shape = { 2 },
          .bytes = trained },
        { .name = "adapter_config.json",
          .part = BAL_PART_FILE,
          .bytes = "{\"peft_type\": \"LORA\", \"bias\": \"all\"}" },
    };
    made_row parts[] = {
        { .name = "score.bias",
          .dtype = BAL_BF16,
          .rank = 1,
          .shape = { 2 },
          .bytes = threes },
        { .name = "other.bias",
          .dtype = BAL_BF16,
          .rank = 1,
          .shape = { 2 },
          .bytes = threes },
        { .name = "model.safetensors", .part = BAL_PART_HEADER, .bytes = "{}" },
    };
    uint16_t got[2];
    BAL_OWN(bal_model) adapter = made_model(BAL_KIND_ADAPTER, NULL, factors, 2);
    BAL_OWN(bal_model) base = made_model(BAL_KIND_WEIGHTS, NULL, parts, 3);
    BAL_OWN(bal_model) folded = NULL;

    CHECK_OK(bal_fold_open(&folded, base, adapter, NULL, &check_err));
    CHECK(bal_model_count(folded) == 3);
    size_t i = bal_model_find(folded, BAL_PART_TENSOR, "score.bias");
    CHECK_OK(bal_model_read(folded, i, 0, got, sizeof(got), &check_err));
    CHECK(got[0] == 0x3fc0 && got[1] == 0x4040);
    i = bal_model_find(folded, BAL_PART_TENSOR, "other.bias");
    CHECK_OK(bal_model_read(folded, i, 0, got, sizeof(got), &check_err));
    CHECK(!memcmp(got, threes, sizeof(got)));

    parts[0].shape[0] = 1;
    BAL_OWN(bal_model) small = made_model(BAL_KIND_WEIGHTS, NULL, parts, 3);
    BAL_OWN(bal_model) refused = NULL;
    CHECK_RC(BAL_EUNSUPPORTED,
             bal_fold_open(&refused, small, adapter, NULL, &check_err));
    CHECK(strstr(check_err.text, "score.bias") != NULL);
}

static const check_test tests[] = {
    { TEST(weights_get_the_scaled_product) },
    { TEST(any_range_reads_as_the_whole_does) },
    { TEST(rows_wider_than_a_piece_come_out_right) },
    { TEST(an_adapter_fits_its_base_or_is_refused) },
    { TEST(a_square_conv1d_is_told_by_its_class) },
    { TEST(whole_tensors_replace_the_bases) },
};

CHECK_MAIN(tests)
