/* GGUF adapters: byte for byte a file that was made apart from this program,
 * and by a reader that knows no more than the format. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/sha256.h"
#include "kernel/kernels.h"
#include "model/elements.h"
#include "support/check.h"
#include "support/files.h"
#include "support/memory_model.h"
#include "support/served.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define CONFIG_OF(r, targets, more)                                            \
    "{\"peft_type\": \"LORA\", \"r\": " r                                      \
    ", \"lora_alpha\": 4, \"target_modules\": " targets more "}"
#define CONFIG(more)                                                           \
    CONFIG_OF("2", "[\"q_proj\", \"k_proj\", \"v_proj\", \"o_proj\"]", more)
#define ATTN  SERVED_LAYER(0) "self_attn."
#define MLP   SERVED_LAYER(1) "mlp."
#define EMBED "base_model.model.model.embed_tokens"

enum { MOST = 1024, TENSORS = 16 };

/* ---- a reader ----------------------------------------------------------- */

typedef struct tensor {
    char name[64];
    uint64_t dims[2], offset;
    uint32_t type;
} tensor;

typedef struct file {
    bal_buf bytes;
    size_t at, data;
    char architecture[32];
    float alpha;
    tensor tensors[TENSORS];
    size_t count;
} file;

static const void *take(file *self, size_t len)
{
    const void *here = self->bytes.data + self->at;

    CHECK(self->bytes.len - self->at >= len);
    self->at += len;
    return here;
}

static uint32_t take32(file *self)
{
    return bal_get32(take(self, 4));
}

static uint64_t take64(file *self)
{
    return bal_get64(take(self, 8));
}

static void take_text(file *self, char *to, size_t room)
{
    size_t len = (size_t)take64(self);

    CHECK(len < room);
    snprintf(to, room, "%.*s", (int)len, (const char *)take(self, len));
}

static void take_keys(file *self)
{
    char key[64];
    char text[64] = "";
    uint64_t count = take64(self);

    for (uint64_t i = 0; i < count; i++) {
        take_text(self, key, sizeof(key));
        uint32_t type = take32(self);

        CHECK(type == 8 || type == 6);
        if (type == 8) {
            take_text(self, text, sizeof(text));
        } else {
            CHECK(!strcmp(key, "adapter.lora.alpha"));
            uint32_t bits = take32(self);
            memcpy(&self->alpha, &bits, sizeof(bits));
        }
        if (!strcmp(key, "general.architecture"))
            memcpy(self->architecture, text, sizeof(self->architecture));
    }
}

static void read_file(file *self, const char *path)
{
    *self = (file){ .alpha = -1 };
    file_get(&self->bytes, path);
    CHECK(!memcmp(take(self, 4), "GGUF", 4));
    CHECK(take32(self) == 3);
    self->count = (size_t)take64(self);
    CHECK(self->count <= TENSORS);
    take_keys(self);
    for (size_t i = 0; i < self->count; i++) {
        tensor *to = &self->tensors[i];

        take_text(self, to->name, sizeof(to->name));
        CHECK(take32(self) == 2);
        to->dims[0] = take64(self);
        to->dims[1] = take64(self);
        to->type = take32(self);
        to->offset = take64(self);
        CHECK(to->offset % 32 == 0);
    }
    self->data = (self->at + 31) / 32 * 32;
}

/* Its values; what is returned is its dimensions. */
static const tensor *get(const file *self, const char *name, double *out)
{
    static const struct {
        uint32_t type;
        bal_dtype dtype;
    } types[] = { { 0, BAL_F32 }, { 1, BAL_F16 }, { 30, BAL_BF16 } };

    for (size_t i = 0; i < self->count; i++) {
        const tensor *of = &self->tensors[i];
        size_t n = (size_t)(of->dims[0] * of->dims[1]);

        if (strcmp(of->name, name) != 0)
            continue;
        for (size_t k = 0; k < COUNT(types); k++) {
            if (types[k].type == of->type)
                bal_kernels_use()->to_f64[types[k].dtype](
                    out, self->bytes.data + self->data + of->offset, n);
        }
        return of;
    }
    print_message("no tensor %s\n", name);
    CHECK(false);
    return NULL;
}

static void source(bal_model *adapter, const char *name, double *out)
{
    size_t i = bal_model_find(adapter, BAL_PART_TENSOR, name);

    CHECK(i != BAL_NONE);
    uint64_t n = bal_elements_of(bal_model_at(adapter, i));
    CHECK(n <= MOST);
    CHECK_OK(bal_elements_read(out, adapter, i, 0, (size_t)n, &check_err));
}

static const char *write_it(const char *config, const served_tensor *tensors,
                            bal_model *base, bal_model **adapter)
{
    static unsigned number;
    const char *path = file_path("adapter-%u.gguf", number++);

    *adapter = served_adapter(config, tensors, NULL);
    CHECK_OK(bal_gguf_write(path, *adapter, base, &check_err));
    return path;
}

/* ---- tests -------------------------------------------------------------- */

static void a_known_file_comes_out_byte_for_byte(void)
{
    static const char config[] =
        "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 16, "
        "\"target_modules\": [\"q_proj\"]}";
    static const char base_config[] =
        "{\"architectures\": [\"LlamaForCausalLM\"], "
        "\"num_attention_heads\": 1, \"num_key_value_heads\": 1}";
    static const char want[] =
        "4d4b610cccf44841f8c7b2e16a362f80c066d6df386c35252f6058814d4fca9a";
    float ones[16];
    float halves[16];
    const uint64_t a[] = { 2, 4 };
    const uint64_t b[] = { 4, 2 };
    const uint64_t square[] = { 4, 4 };
    bal_model *base = memory_new(BAL_KIND_WEIGHTS, "base");
    bal_model *adapter = memory_new(BAL_KIND_ADAPTER, "adapter");
    BAL_LOCAL(bal_buf) bytes = { 0 };
    bal_sha256 digest;
    char hex[65] = "";

    for (size_t i = 0; i < 16; i++) {
        ones[i] = 1;
        halves[i] = 0.5f;
    }
    memory_tensor(adapter, ATTN "q_proj.lora_A.weight", BAL_F32, 2, a, ones);
    memory_tensor(adapter, ATTN "q_proj.lora_B.weight", BAL_F32, 2, b, halves);
    memory_file(adapter, BAL_PART_FILE, "adapter_config.json", config,
                strlen(config));
    memory_finish(adapter);
    memory_tensor(base, "model.layers.0.self_attn.q_proj.weight", BAL_F32, 2,
                  square, ones);
    memory_file(base, BAL_PART_FILE, "config.json", base_config,
                strlen(base_config));
    memory_finish(base);

    const char *path = file_path("known.gguf");
    CHECK_OK(bal_gguf_write(path, adapter, base, &check_err));
    file_get(&bytes, path);
    CHECK(bytes.len == 384);
    const bal_bytes all = { bytes.data, bytes.len };
    CHECK_OK(bal_sha256_of(&digest, &all, 1, &check_err));
    bal_sha256_hex(hex, &digest);
    CHECK(!strcmp(hex, want));
    bal_model_free(adapter);
    bal_model_free(base);
}

/* Row h * 4 + 2 i + p of a head of 4 was row h * 4 + 2 p + i. */
static void rows_of_q_and_k_change_places(void)
{
    static const served_tensor tensors[] = {
        SERVED_PAIR(ATTN "q_proj", 2, 8, 8),
        SERVED_PAIR(ATTN "k_proj", 2, 8, 4),
        SERVED_PAIR(ATTN "v_proj", 2, 8, 4),
        { NULL }
    };
    static const struct {
        const char *class_name, *architecture;
        size_t order[8];
    } rows[] = {
        { "LlamaForCausalLM", "llama", { 0, 2, 1, 3, 4, 6, 5, 7 } },
        { "MistralForCausalLM", "llama", { 0, 2, 1, 3, 4, 6, 5, 7 } },
        { "Qwen2ForCausalLM", "qwen2", { 0, 1, 2, 3, 4, 5, 6, 7 } },
        { "Qwen3ForCausalLM", "qwen3", { 0, 1, 2, 3, 4, 5, 6, 7 } },
        { "GemmaForCausalLM", "gemma", { 0, 1, 2, 3, 4, 5, 6, 7 } },
        { "Gemma2ForCausalLM", "gemma2", { 0, 1, 2, 3, 4, 5, 6, 7 } },
    };
    static const struct {
        const char *from, *to;
        size_t count;
        bool ordered;
    } factors[] = {
        { ATTN "q_proj.lora_B.weight", "blk.0.attn_q.weight.lora_b", 8, true },
        { ATTN "k_proj.lora_B.weight", "blk.0.attn_k.weight.lora_b", 4, true },
        { ATTN "v_proj.lora_B.weight", "blk.0.attn_v.weight.lora_b", 4, false },
        { ATTN "q_proj.lora_A.weight", "blk.0.attn_q.weight.lora_a", 8, false },
    };
    double want[MOST];
    double got[MOST] = { 0 };

    for (size_t i = 0; i < COUNT(rows); i++) {
        bal_model *base = served_base(rows[i].class_name, false);
        bal_model *adapter = NULL;
        file read;

        check_row(rows[i].class_name);
        read_file(&read, write_it(CONFIG(""), tensors, base, &adapter));
        CHECK(!strcmp(read.architecture, rows[i].architecture));
        CHECK(read.count == 6 && read.alpha == 4);
        for (size_t k = 0; k < COUNT(factors); k++) {
            source(adapter, factors[k].from, want);
            get(&read, factors[k].to, got);
            for (size_t j = 0; j < 2 * factors[k].count; j++) {
                size_t row = factors[k].ordered ? rows[i].order[j / 2] : j / 2;
                CHECK(!(fabs(got[j] - want[2 * row + j % 2]) > 0));
            }
        }
        bal_buf_done(&read.bytes);
        bal_model_free(adapter);
        bal_model_free(base);
    }
}

static void an_embeddings_a_is_turned_over(void)
{
    static const served_tensor tensors[] = {
        { EMBED ".lora_embedding_A", 2, 16 },
        { EMBED ".lora_embedding_B", 8, 2 },
        SERVED_PAIR("base_model.model.lm_head", 2, 8, 16),
        { NULL }
    };
    double want[MOST];
    double got[MOST] = { 0 };
    bal_model *base = served_base("LlamaForCausalLM", false);
    bal_model *adapter = NULL;
    file read;

    read_file(&read,
              write_it(CONFIG_OF("2", "[\"embed_tokens\", \"lm_head\"]", ""),
                       tensors, base, &adapter));
    const tensor *a = get(&read, "token_embd.weight.lora_a", got);
    CHECK(a->dims[0] == 2 && a->dims[1] == 16);
    source(adapter, EMBED ".lora_embedding_A", want);
    for (size_t i = 0; i < 16; i++) {
        for (size_t k = 0; k < 2; k++)
            CHECK(!(fabs(got[2 * i + k] - want[16 * k + i]) > 0));
    }
    const tensor *b = get(&read, "token_embd.weight.lora_b", got);
    CHECK(b->dims[0] == 2 && b->dims[1] == 8);
    CHECK(get(&read, "output.weight.lora_a", got)->dims[0] == 8);
    bal_buf_done(&read.bytes);
    bal_model_free(adapter);
    bal_model_free(base);
}

/* What llama.cpp multiplies by: alpha / rank, or 1 where alpha is 0. */
static void scales_come_out_whatever_they_are_by(void)
{
    static const served_tensor tensors[] = {
        SERVED_PAIR(ATTN "o_proj", 2, 8, 8),
        SERVED_PAIR(MLP "down_proj", 4, 12, 8),
        { NULL }
    };
#define RANKS ", \"rank_pattern\": {\"down_proj\": 4}"
    static const struct {
        const char *what, *config;
        double o, down;
        float alpha;
    } rows[] = {
        { "one alpha, two ranks", CONFIG_OF("2", "\".*proj\"", RANKS), 2, 1,
          4 },
        { "rslora of two ranks",
          CONFIG_OF("2", "\".*proj\"", RANKS ", \"use_rslora\": true"),
          2.8284271247461903, 2, 0 },
        { "alphas that give one scale",
          CONFIG_OF("2", "\".*proj\"",
                    RANKS ", \"alpha_pattern\": {\"down_proj\": 8}"),
          2, 2, 0 },
    };
    double want[MOST];
    double got[MOST] = { 0 };
    bal_model *base = served_base("LlamaForCausalLM", false);

    for (size_t i = 0; i < COUNT(rows); i++) {
        bal_model *adapter = NULL;
        file read;

        check_row(rows[i].what);
        read_file(&read, write_it(rows[i].config, tensors, base, &adapter));
        CHECK(read.alpha == rows[i].alpha);
        const tensor *b = get(&read, "blk.0.attn_output.weight.lora_b", got);
        double by =
            read.alpha > 0 ? (double)read.alpha / (double)b->dims[0] : 1;
        source(adapter, ATTN "o_proj.lora_B.weight", want);
        for (size_t k = 0; k < 16; k++)
            CHECK(fabs(got[k] * by - want[k] * rows[i].o) <=
                  1e-7 * fabs(want[k] * rows[i].o));
        b = get(&read, "blk.1.ffn_down.weight.lora_b", got);
        CHECK(b->dims[0] == 4);
        by = read.alpha > 0 ? (double)read.alpha / (double)b->dims[0] : 1;
        source(adapter, MLP "down_proj.lora_B.weight", want);
        for (size_t k = 0; k < 32; k++)
            CHECK(fabs(got[k] * by - want[k] * rows[i].down) <=
                  1e-7 * fabs(want[k] * rows[i].down));
        bal_buf_done(&read.bytes);
        bal_model_free(adapter);
    }
    bal_model_free(base);
}

static void dtypes_are_kept_where_there_are_such(void)
{
    static const struct {
        bal_dtype dtype;
        uint32_t type;
    } rows[] = {
        { BAL_F32, 0 },
        { BAL_F16, 1 },
        { BAL_BF16, 30 },
        { BAL_F64, 0 },
    };
    double want[MOST];
    double got[MOST] = { 0 };
    bal_model *base = served_base("LlamaForCausalLM", false);

    for (size_t i = 0; i < COUNT(rows); i++) {
        const served_tensor tensors[] = {
            { ATTN "o_proj.lora_A.weight", 2, 8, rows[i].dtype },
            { ATTN "o_proj.lora_B.weight", 8, 2, rows[i].dtype },
            { NULL },
        };
        bal_model *adapter = NULL;
        file read;

        read_file(&read, write_it(CONFIG(""), tensors, base, &adapter));
        CHECK(get(&read, "blk.0.attn_output.weight.lora_a", got)->type ==
              rows[i].type);
        source(adapter, ATTN "o_proj.lora_A.weight", want);
        for (size_t k = 0; k < 16; k++)
            CHECK(fabs(got[k] - want[k]) <= 1e-7);
        bal_buf_done(&read.bytes);
        bal_model_free(adapter);
    }
    bal_model_free(base);
}

static const struct {
    const char *what, *class_name, *config, *names;
    served_tensor tensors[4];
    int code;
    bool tied;
} refused[] = {
    { "an architecture",
      "PhiForCausalLM",
      CONFIG(""),
      "PhiForCausalLM",
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8) },
      BAL_EUNSUPPORTED,
      false },
    { "a module",
      "LlamaForCausalLM",
      CONFIG_OF("2", "[\"input_layernorm\"]", ""),
      "input_layernorm",
      { SERVED_PAIR(SERVED_LAYER(0) "input_layernorm", 2, 8, 8) },
      BAL_EUNSUPPORTED,
      false },
    { "a layer",
      "LlamaForCausalLM",
      CONFIG(""),
      "layers.2",
      { SERVED_PAIR(SERVED_LAYER(2) "self_attn.o_proj", 2, 8, 8) },
      BAL_EUNSUPPORTED,
      false },
    { "a shape",
      "LlamaForCausalLM",
      CONFIG(""),
      "o_proj",
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 9) },
      BAL_ECORRUPT,
      false },
    { "a tied head",
      "LlamaForCausalLM",
      CONFIG_OF("2", "\"lm_head\"", ""),
      "lm_head",
      { SERVED_PAIR("base_model.model.lm_head", 2, 8, 16) },
      BAL_EUNSUPPORTED,
      true },
    { "a whole tensor",
      "LlamaForCausalLM",
      CONFIG(""),
      "lm_head",
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8),
        { "base_model.model.lm_head.weight", 16, 8 } },
      BAL_EUNSUPPORTED,
      false },
    { "DoRA",
      "LlamaForCausalLM",
      CONFIG(", \"use_dora\": true"),
      "use_dora",
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8) },
      BAL_EUNSUPPORTED,
      false },
};

static void what_has_no_form_there_is_refused_by_name(void)
{

    for (size_t i = 0; i < COUNT(refused); i++) {
        bal_model *base = served_base(refused[i].class_name, refused[i].tied);
        bal_model *adapter =
            served_adapter(refused[i].config, refused[i].tensors, NULL);
        const char *path = file_path("refused/%zu.gguf", i);

        check_row(refused[i].what);
        CHECK_RC(refused[i].code,
                 bal_gguf_write(path, adapter, base, &check_err));
        CHECK(strstr(check_err.text, refused[i].names));
        CHECK(!file_exists(path));
        bal_model_free(adapter);
        bal_model_free(base);
    }
    CHECK(file_count(file_path("refused")) == 0);
}

static void a_file_that_is_there_stays(void)
{
    static const served_tensor tensors[] = {
        SERVED_PAIR(ATTN "o_proj", 2, 8, 8), { NULL }
    };
    bal_model *base = served_base("LlamaForCausalLM", false);
    bal_model *adapter = served_adapter(CONFIG(""), tensors, NULL);
    const char *path = file_path("there/is.gguf");

    file_text(path, "mine");
    CHECK_RC(BAL_EEXISTS, bal_gguf_write(path, adapter, base, &check_err));
    CHECK(file_is(path, "mine"));
    CHECK_RC(BAL_EINVAL, bal_gguf_write(file_path("there/new.gguf"), adapter,
                                        NULL, &check_err));
    CHECK(file_count(file_path("there")) == 1);
    bal_model_free(adapter);
    bal_model_free(base);
}

static const check_test tests[] = {
    { TEST(a_known_file_comes_out_byte_for_byte) },
    { TEST(rows_of_q_and_k_change_places) },
    { TEST(an_embeddings_a_is_turned_over) },
    { TEST(scales_come_out_whatever_they_are_by) },
    { TEST(dtypes_are_kept_where_there_are_such) },
    { TEST(what_has_no_form_there_is_refused_by_name) },
    { TEST(a_file_that_is_there_stays) },
};
CHECK_MAIN(tests)
