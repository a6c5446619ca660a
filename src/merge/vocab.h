/* Another vocabulary for whole models, before they are merged: what mergekit's
 * tokenizer_source and tokenizer do. Token embeddings have a row a token, and
 * models whose tokens differ, or stand in another order, can only be merged
 * once their rows mean the same. */
#ifndef MERGE_VOCAB_H
#define MERGE_VOCAB_H

#include <jansson.h>

#include "model/model.h"

/* Which tokens there will be, by which ids. */
typedef enum bal_vocab_source {
    BAL_VOCAB_UNION, /* the base's, then what the others have beside */
    BAL_VOCAB_BASE,
    BAL_VOCAB_INPUT,
} bal_vocab_source;

/* What the row of a token is where a model lacks it, or is not asked. */
typedef enum bal_row_source {
    BAL_ROW_NONE,  /* not told: a model that lacks the token is an error */
    BAL_ROW_ZERO,  /* zeros */
    BAL_ROW_INPUT, /* an input's row of this token */
    BAL_ROW_TOKEN, /* an input's row of another token */
    BAL_ROW_ID,    /* an input's row of this number */
} bal_row_source;

typedef struct bal_vocab_token {
    const char *token;
    bal_row_source source;
    size_t input;      /* of INPUT, TOKEN, ID */
    const char *other; /* of TOKEN */
    uint64_t id;       /* of ID */
    bool force;        /* for every model, whether it has the token or not */
} bal_vocab_token;

/* Zero is valid: a union, without more. */
typedef struct bal_vocab_want {
    bal_vocab_source source;
    size_t input;            /* of BAL_VOCAB_INPUT */
    uint64_t multiple;       /* rows are padded to a multiple of it; 0: they are
                                not */
    bal_vocab_token *tokens; /* each once; added to the vocabulary if it has
                                them not */
    size_t count;
    bool mergekit;   /* means in mergekit's arithmetic; not part of the JSON */
    bal_arena arena; /* of the tokens, where they were parsed */
} bal_vocab_want;

/* Limits, beyond which a vocabulary is refused. */
#define BAL_VOCAB_TOKENS_MAX   ((size_t)4 << 20)
#define BAL_VOCAB_FILE_MAX     ((uint64_t)256 << 20)
#define BAL_VOCAB_MULTIPLE_MAX ((uint64_t)1 << 20)

/* As a recipe has it: {"source": "union" | "base" | N, "pad_to_multiple_of"?:
 * n, "tokens"?: {TOKEN: {"source"?: {"input": N} | "zero" | {"input": N,
 * "token": T} | {"input": N, "token_id": n}, "force"?: true}}}, N being the
 * index of an input, below inputs. Tokens come out in the order of their bytes,
 * whatever the text's was, so that a canonical recipe means the same. ECORRUPT:
 * anything else. */
BAL_CHECK int bal_vocab_want_parse(bal_vocab_want *out, const json_t *json,
                                   size_t inputs, bal_error *err);
BAL_CHECK int bal_vocab_want_json(json_t **out, const bal_vocab_want *self,
                                  bal_error *err);
void bal_vocab_want_done(bal_vocab_want *self);

/* count models, out[i] standing in front of inputs[i], which it keeps a
 * reference on. Where the input has a tensor with a row a token (by name, see
 * vocab_names.c), it has the rows of the new vocabulary, in the dtype that all
 * inputs' have in common; its config.json tells the number of rows; tokenizer
 * and chat template are those of the donor, tokenizer.json with the new
 * vocabulary; all else is the input's. Rows are gathered as they are read, by
 * any number of threads.
 *
 * The donor is the base, an index or BAL_NONE, without which it is the first
 * input; of BAL_VOCAB_INPUT, that input. Its tokens whose ids its config.json
 * or its tensors have no rows for are left out. A union then has, of the other
 * inputs in order, by ascending id, what is lacking: plain tokens of all, then
 * added ones of all. Then the tokens that `want` names, by their bytes.
 *
 * A model's row of a token is its own, unless forced; else the one that `want`
 * tells; else, of the inputs that have both tensor and token: that of the only
 * one, the base's, the mean; else zeros. A mean is a sum from 0, input by
 * input, in the common dtype, and one division. Rows beyond the tokens are the
 * mean of the model's other rows.
 *
 * EINVAL: an input without tokenizer.json, or with tensors of no vocabulary or
 * of other widths, a token of `want` whose row is nowhere or not told though
 * needed. EUNSUPPORTED: an input that has its vocabulary in other files alone,
 * tensors that are not of floats, what the limits forbid, a vocabulary that
 * tokenizer.json has no form for. ECORRUPT: files that are not what they should
 * be. All name the input. Out is set on success only. */
BAL_CHECK int bal_vocab_open(bal_model **out, const bal_vocab_want *want,
                             bal_model *const *inputs, size_t count,
                             size_t base, bal_error *err);

#endif
