/* Small whole models with a vocabulary, for the tests of merge/vocab.h. */
#ifndef UNIT_VOCAB_INPUTS_H
#define UNIT_VOCAB_INPUTS_H

#include <string.h>

#include "merge/vocab.h"
#include "support/check.h"
#include "support/memory_model.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

enum { MOST = 8, WIDTH = 3 };

static const char embed[] = "model.embed_tokens.weight";

/* A model whose row of a token is its value, and twice and half of it. */
typedef struct input {
    const char *tokens[MOST]; /* by id */
    float values[MOST];
    size_t rows;             /* 0: as many as there are tokens */
    const char *added[MOST]; /* some of the tokens, or others */
    uint64_t vocab_size;     /* in config.json, 0: there is none */
} input;

static inline void put_words(bal_buf *to, const input *from)
{
    CHECK_OK(bal_buf_text(to, "{\"added_tokens\":[", &check_err));
    for (size_t i = 0; from->added[i]; i++)
        CHECK_OK(bal_buf_format(to, &check_err, "%s{\"content\":\"%s\"}",
                                i ? "," : "", from->added[i]));
    CHECK_OK(bal_buf_text(to, "],\"model\":{\"vocab\":{", &check_err));
    for (size_t i = 0; i < MOST && from->tokens[i]; i++)
        CHECK_OK(bal_buf_format(to, &check_err, "%s\"%s\":%zu", i ? "," : "",
                                from->tokens[i], i));
    CHECK_OK(bal_buf_text(to, "}}}", &check_err));
}

static inline size_t rows_of(const input *from)
{
    size_t rows = from->rows;

    while (!from->rows && rows < MOST && from->tokens[rows])
        rows++;
    return rows;
}

static inline bal_model *unfinished(const char *name, const input *from)
{
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, name);
    BAL_LOCAL(bal_buf) text = { 0 };
    uint64_t shape[2] = { rows_of(from), WIDTH };
    float values[MOST * WIDTH];

    for (size_t i = 0; i < shape[0]; i++) {
        values[i * WIDTH] = from->values[i];
        values[i * WIDTH + 1] = from->values[i] * 2;
        values[i * WIDTH + 2] = from->values[i] / 2;
    }
    memory_tensor(model, embed, BAL_F32, 2, shape, values);
    put_words(&text, from);
    memory_file(model, BAL_PART_FILE, "tokenizer.json", text.data, text.len);
    bal_buf_clear(&text);
    if (!from->vocab_size)
        return model;
    CHECK_OK(bal_buf_format(&text, &check_err,
                            "{\"vocab_size\": %llu, \"x\": 1}",
                            (unsigned long long)from->vocab_size));
    memory_file(model, BAL_PART_FILE, "config.json", text.data, text.len);
    return model;
}

static inline bal_model *make(const char *name, const input *from)
{
    bal_model *model = unfinished(name, from);

    memory_finish(model);
    return model;
}

static const input x_y = { .tokens = { "x", "y" }, .values = { 1, 2 } };
static const input x_z = { .tokens = { "x", "z" }, .values = { 10, 20 } };
static const input z_x_w = { .tokens = { "z", "x", "w" },
                             .values = { 100, 200, 300 } };

#endif
