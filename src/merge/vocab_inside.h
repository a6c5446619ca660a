/* The new vocabulary inside: what its plan leaves for the models in front of
 * the inputs. */
#ifndef MERGE_VOCAB_INSIDE_H
#define MERGE_VOCAB_INSIDE_H

#include "merge/arith.h"
#include "merge/vocab.h"
#include "merge/vocab_words.h"

/* An input has no such row. */
#define BAL_ROW_LACKING UINT32_MAX
/* Elements that a row may have. */
#define BAL_ROW_MAX ((uint64_t)1 << 20)

/* Where a row comes from. */
typedef enum bal_row_kind {
    BAL_FROM_NOWHERE, /* nobody may ask for it */
    BAL_FROM_ZEROS,
    BAL_FROM_INPUT,
    BAL_FROM_MEAN, /* of the inputs that have the token */
} bal_row_kind;

typedef struct bal_row_from {
    bal_row_kind kind;
    size_t input;
    uint64_t id;
} bal_row_from;

/* A token of the want. */
typedef struct bal_row_told {
    bal_row_from from;
    bool force;
} bal_row_told;

/* A tensor with a row a token, of all inputs. */
typedef struct bal_row_tensor {
    const char *name;
    size_t *entries; /* by input, BAL_NONE: it has no such tensor */
    bal_dtype dtype; /* of the result */
    uint64_t width;  /* elements of a row */
} bal_row_tensor;

/* Shared by the models of one bal_vocab_open. Nothing in it changes once it is
 * planned. */
typedef struct bal_vocab {
    atomic_uint refs;
    bal_arena arena;
    bal_model **inputs;
    size_t count;
    size_t base;  /* BAL_NONE: none */
    size_t donor; /* of the files */
    bool mergekit;
    uint64_t *bounds; /* by input: its tokens of this id and above have no
                         rows */
    uint32_t rows;    /* the vocabulary */
    uint32_t padded;  /* and what goes beyond it */
    uint32_t *ids;    /* count times rows: which row of an input it is */
    uint32_t *told;   /* rows: which of told_rows, BAL_ROW_LACKING: none */
    bal_row_told *told_rows;
    bal_row_tensor *tensors;
    size_t tensor_count;
    bal_map names;  /* of tensors */
    bool same;      /* the donor's tokenizer is the result's */
    bal_buf text;   /* tokenizer.json, unless it is the same */
    bal_buf config; /* tokenizer_config.json, where ids were cut */
} bal_vocab;

/* True for a tensor that has a row a token. */
bool bal_vocab_named(const char *name);
/* "input 2 ('name')" for messages. */
#define BAL_INPUT_LABEL 128
void bal_vocab_label(char out[BAL_INPUT_LABEL], const bal_vocab *self,
                     size_t input);
/* A file of an input, whole, of so many bytes at most; *found false: it has
 * none. */
BAL_CHECK int bal_vocab_file(bal_buf *out, bool *found, const bal_vocab *self,
                             size_t input, const char *name, uint64_t most,
                             bal_error *err);

/* The inputs' tensors of a vocabulary, what they have in common, and how many
 * rows each has: tensors, names and bounds. inputs and count are set. */
BAL_CHECK int bal_vocab_tensors(bal_vocab *self, bal_error *err);
/* The new vocabulary, which row of which input is whose, and the tokenizer's
 * files. */
BAL_CHECK int bal_vocab_plan(bal_vocab *self, const bal_vocab_want *want,
                             bal_error *err);

/* Where the row of a model in front of input comes from; row is one of the
 * vocabulary. */
bal_row_from bal_vocab_row(const bal_vocab *self, const bal_row_tensor *tensor,
                           size_t input, uint32_t row);
/* Elements [start, start + n) of a tensor of the model in front of input, all
 * of rows of the vocabulary, in the tensor's dtype. */
BAL_CHECK int bal_vocab_read(void *to, const bal_vocab *self,
                             const bal_row_tensor *tensor, size_t input,
                             uint64_t start, uint64_t n, bal_error *err);
/* The mean of all those rows, width elements; free() it. */
BAL_CHECK int bal_vocab_pad(void **out, const bal_vocab *self,
                            const bal_row_tensor *tensor, size_t input,
                            bal_error *err);
/* True if the tensor of the model is that of the input, byte for byte. */
bool bal_vocab_passes(const bal_vocab *self, const bal_row_tensor *tensor,
                      size_t input);

#endif
