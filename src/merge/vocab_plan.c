/* The new vocabulary: which tokens there are, by which ids, and which row of
 * which input is whose. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/vocab_inside.h"

/* Numbers of rows that are remembered, of all inputs. */
#define IDS_MAX ((uint64_t)1 << 28)

typedef struct planning {
    bal_vocab *vocab;
    const bal_vocab_want *want;
    bal_words *words;   /* by input */
    bal_buf donor_text; /* its tokenizer.json */
    bal_words out;      /* texts borrowed */
    size_t kept;        /* the first so many are the donor's */
    uint64_t next;      /* the next token's id */
} planning;

static void planning_done(planning *self)
{
    for (size_t i = 0; self->words && i < self->vocab->count; i++)
        bal_words_done(&self->words[i]);
    free(self->words);
    bal_buf_done(&self->donor_text);
    bal_words_done(&self->out);
}

/* ---- reading the inputs' ------------------------------------------------- */

/* What a vocabulary is in where there is no tokenizer.json. */
static const char *const others[] = { "tokenizer.model", "vocab.json",
                                      "merges.txt", "vocab.txt",
                                      "spiece.model" };

static int no_vocabulary(const bal_vocab *self, size_t input, bal_error *err)
{
    char label[BAL_INPUT_LABEL];

    bal_vocab_label(label, self, input);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (bal_model_find(self->inputs[input], BAL_PART_FILE, others[i]) ==
            BAL_NONE)
            continue;
        return bal_hint(err,
                        bal_fail(err, BAL_EUNSUPPORTED,
                                 "%s has no tokenizer.json: its vocabulary is "
                                 "in %s, which is not read",
                                 label, others[i]),
                        "saving its tokenizer with transformers makes one");
    }
    return bal_fail(err, BAL_EINVAL, "%s has no tokenizer.json", label);
}

static int read_words(planning *self, size_t input, bal_error *err)
{
    bal_vocab *vocab = self->vocab;
    BAL_LOCAL(bal_buf) text = { 0 };
    char label[BAL_INPUT_LABEL];
    bool found = false;
    int rc = bal_vocab_file(&text, &found, vocab, input, "tokenizer.json",
                            BAL_VOCAB_FILE_MAX, err);

    if (!rc && !found)
        rc = no_vocabulary(vocab, input, err);
    if (rc)
        return rc;
    bal_vocab_label(label, vocab, input);
    rc = bal_words_read(&self->words[input], (bal_bytes){ text.data, text.len },
                        "tokenizer.json", err);
    if (rc)
        return bal_within(err, rc, "%s", label);
    if (input == vocab->donor) {
        self->donor_text = text;
        text = (bal_buf){ 0 };
    }
    return 0;
}

static int read_all(planning *self, bal_error *err)
{
    size_t count = self->vocab->count;
    int rc = 0;

    self->words = calloc(count, sizeof(*self->words));
    if (!self->words)
        return bal_fail_memory(err, "a vocabulary");
    for (size_t i = 0; i < count && !rc; i++)
        rc = read_words(self, i, err);
    return rc;
}

/* ---- the tokens ---------------------------------------------------------- */

static bool lacks(const planning *self, const bal_word *word)
{
    return !bal_words_find(&self->out, word->text, word->len);
}

static int append(planning *self, const bal_word *from, bal_error *err)
{
    bal_word word = *from;

    if (self->next >= BAL_VOCAB_TOKENS_MAX)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "a vocabulary of more than %zu tokens",
                        BAL_VOCAB_TOKENS_MAX);
    word.id = (uint32_t)self->next++;
    return bal_words_add(&self->out, &word, err);
}

static int keep_donor(planning *self, bal_error *err)
{
    const bal_words *donor = &self->words[self->vocab->donor];
    uint64_t bound = self->vocab->bounds[self->vocab->donor];
    int rc = 0;

    for (size_t i = 0; i < donor->count && !rc; i++) {
        if (donor->words[i].id >= bound)
            continue;
        rc = bal_words_add(&self->out, &donor->words[i], err);
        self->next = bal_max(self->next, (uint64_t)donor->words[i].id + 1);
    }
    self->kept = self->out.count;
    return rc;
}

/* A token that one input has among its added ones is an added one. */
static bool added_anywhere(const planning *self, const bal_word *word)
{
    for (size_t i = 0; i < self->vocab->count; i++) {
        const bal_word *there =
            bal_words_find(&self->words[i], word->text, word->len);
        if (there && there->added && there->id < self->vocab->bounds[i])
            return true;
    }
    return false;
}

static int unite_input(planning *self, size_t input, bool added, bal_error *err)
{
    const bal_words *words = &self->words[input];
    uint64_t bound = self->vocab->bounds[input];
    size_t *order = NULL;
    int rc = bal_words_order(&order, words, err);

    for (size_t i = 0; i < words->count && !rc; i++) {
        const bal_word *word = &words->words[order[i]];
        if (word->id >= bound)
            break;
        if (word->added == added && lacks(self, word) &&
            (added || !added_anywhere(self, word)))
            rc = append(self, word, err);
    }
    free(order);
    return rc;
}

static int unite(planning *self, bal_error *err)
{
    int rc = 0;

    for (int added = 0; added < 2; added++) {
        for (size_t i = 0; i < self->vocab->count && !rc; i++) {
            if (i != self->vocab->donor)
                rc = unite_input(self, i, added != 0, err);
        }
    }
    return rc;
}

/* The order of the want is that of its parsing, which a caller that built it by
 * hand need not have kept: so it is not relied on. */
static int by_text(const void *a, const void *b)
{
    const bal_word *left = a;
    const bal_word *right = b;

    return strcmp(left->text, right->text);
}

static int append_wanted(planning *self, bal_error *err)
{
    size_t count = self->want->count;
    bal_word *words = calloc(count + 1, sizeof(*words));
    if (!words)
        return bal_fail_memory(err, "a vocabulary");
    int rc = 0;

    for (size_t i = 0; i < count; i++) {
        words[i].text = self->want->tokens[i].token;
        words[i].len = strlen(words[i].text);
        words[i].added = true;
    }
    qsort(words, count, sizeof(*words), by_text);
    for (size_t i = 0; i < count && !rc; i++) {
        if (i && !strcmp(words[i].text, words[i - 1].text))
            rc = bal_fail(err, BAL_EINVAL, "token '%.200s' is told twice",
                          words[i].text);
        else if (lacks(self, &words[i]))
            rc = append(self, &words[i], err);
    }
    free(words);
    return rc;
}

static int count_rows(planning *self, bal_error *err)
{
    bal_vocab *vocab = self->vocab;
    uint64_t multiple = bal_max(self->want->multiple, 1);

    if (!self->next)
        return bal_fail(err, BAL_EINVAL, "a vocabulary without tokens");
    if (multiple > BAL_VOCAB_MULTIPLE_MAX ||
        self->next > BAL_VOCAB_TOKENS_MAX ||
        self->next * vocab->count > IDS_MAX)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "a vocabulary of too many tokens, for so many inputs");
    vocab->rows = (uint32_t)self->next;
    vocab->padded =
        (uint32_t)((self->next + multiple - 1) / multiple * multiple);
    return 0;
}

/* ---- whose rows they are ------------------------------------------------- */

static void match_input(planning *self, size_t input)
{
    bal_vocab *vocab = self->vocab;
    const bal_words *words = &self->words[input];
    uint32_t *ids = vocab->ids + input * (size_t)vocab->rows;

    for (size_t i = 0; i < words->count; i++) {
        const bal_word *word = &words->words[i];
        const bal_word *row = bal_words_find(&self->out, word->text, word->len);
        if (row && word->id < vocab->bounds[input] &&
            ids[row->id] == BAL_ROW_LACKING)
            ids[row->id] = word->id;
    }
}

/* Ids below the last of the donor's that no token has keep their rows. */
static void fill_holes(planning *self)
{
    bal_vocab *vocab = self->vocab;
    uint32_t *ids = vocab->ids + vocab->donor * (size_t)vocab->rows;
    uint32_t end = 0;

    for (size_t i = 0; i < self->kept; i++)
        end = (uint32_t)bal_max(end, (uint64_t)self->out.words[i].id + 1);
    for (uint32_t row = 0; row < end; row++) {
        if (ids[row] == BAL_ROW_LACKING)
            ids[row] = row;
    }
}

static int match(planning *self, bal_error *err)
{
    bal_vocab *vocab = self->vocab;
    size_t count = vocab->count * (size_t)vocab->rows;

    vocab->ids = bal_arena_alloc(&vocab->arena, count * sizeof(*vocab->ids));
    vocab->told =
        bal_arena_alloc(&vocab->arena, vocab->rows * sizeof(*vocab->told));
    vocab->told_rows = bal_arena_alloc(
        &vocab->arena, (self->want->count + 1) * sizeof(*vocab->told_rows));
    if (!vocab->ids || !vocab->told || !vocab->told_rows)
        return bal_fail_memory(err, "a vocabulary");
    memset(vocab->ids, 0xff, count * sizeof(*vocab->ids));
    memset(vocab->told, 0xff, vocab->rows * sizeof(*vocab->told));
    for (size_t i = 0; i < vocab->count; i++)
        match_input(self, i);
    fill_holes(self);
    return 0;
}

/* ---- what is told of a token --------------------------------------------- */

static uint32_t id_of(const bal_vocab *self, size_t input, uint32_t row)
{
    return self->ids[input * (size_t)self->rows + row];
}

static int nothing_told(const planning *self, const bal_vocab_token *token,
                        uint32_t row, bal_error *err)
{
    char label[BAL_INPUT_LABEL];

    if (token->force)
        return bal_fail(err, BAL_EINVAL,
                        "token '%.200s' is forced, and no source told for it",
                        token->token);
    for (size_t i = 0; i < self->vocab->count; i++) {
        if (id_of(self->vocab, i, row) != BAL_ROW_LACKING)
            continue;
        bal_vocab_label(label, self->vocab, i);
        return bal_fail(err, BAL_EINVAL,
                        "token '%.200s' is not in %s, and no source told for "
                        "it",
                        token->token, label);
    }
    return 0;
}

static int no_such_token(const planning *self, const bal_vocab_token *token,
                         const char *text, bal_error *err)
{
    char label[BAL_INPUT_LABEL];

    bal_vocab_label(label, self->vocab, token->input);
    return bal_fail(err, BAL_EINVAL,
                    "token '%.200s': its source is %s, which has no token "
                    "'%.200s'",
                    token->token, label, text);
}

static int resolve(bal_row_from *out, const planning *self,
                   const bal_vocab_token *token, uint32_t row, bal_error *err)
{
    *out = (bal_row_from){ BAL_FROM_NOWHERE, token->input, token->id };
    if (token->source == BAL_ROW_NONE)
        return nothing_told(self, token, row, err);
    out->kind = token->source == BAL_ROW_ZERO ? BAL_FROM_ZEROS : BAL_FROM_INPUT;
    if (token->source == BAL_ROW_INPUT) {
        out->id = id_of(self->vocab, token->input, row);
        if (out->id == BAL_ROW_LACKING)
            return no_such_token(self, token, token->token, err);
    }
    if (token->source == BAL_ROW_TOKEN) {
        const bal_word *other = bal_words_find(
            &self->words[token->input], token->other, strlen(token->other));
        if (!other)
            return no_such_token(self, token, token->other, err);
        out->id = other->id;
    }
    return 0;
}

/* Does a model need the row that is told, of this tensor? */
static bool needed(const bal_vocab *self, const bal_row_tensor *tensor,
                   const bal_row_told *told, uint32_t row)
{
    for (size_t i = 0; i < self->count; i++) {
        if (tensor->entries[i] != BAL_NONE &&
            (told->force || id_of(self, i, row) == BAL_ROW_LACKING))
            return true;
    }
    return false;
}

/* Every tensor has the row that is told. */
static int check_told(const planning *self, const bal_vocab_token *token,
                      const bal_row_told *told, uint32_t row, bal_error *err)
{
    const bal_vocab *vocab = self->vocab;
    size_t input = told->from.input;
    char label[BAL_INPUT_LABEL];

    if (told->from.kind != BAL_FROM_INPUT)
        return 0;
    bal_vocab_label(label, vocab, input);
    for (size_t i = 0; i < vocab->tensor_count; i++) {
        const bal_row_tensor *tensor = &vocab->tensors[i];
        size_t entry = tensor->entries[input];

        if (!needed(vocab, tensor, told, row))
            continue;
        if (entry == BAL_NONE)
            return bal_fail(err, BAL_EINVAL,
                            "token '%.200s': its source is %s, which has no "
                            "tensor '%s'",
                            token->token, label, tensor->name);
        if (told->from.id >=
            bal_model_at(vocab->inputs[input], entry)->shape[0])
            return bal_fail(err, BAL_EINVAL,
                            "token '%.200s': its source is row %llu of %s, "
                            "which tensor '%s' does not have",
                            token->token, (unsigned long long)told->from.id,
                            label, tensor->name);
    }
    return 0;
}

static int tell(planning *self, bal_error *err)
{
    bal_vocab *vocab = self->vocab;

    for (size_t i = 0; i < self->want->count; i++) {
        const bal_vocab_token *token = &self->want->tokens[i];
        bal_row_told *told = &vocab->told_rows[i];
        const bal_word *word =
            bal_words_find(&self->out, token->token, strlen(token->token));

        if (!word || token->input >= vocab->count)
            return bal_fail(err, BAL_EINVAL, "token '%.200s' of no input",
                            token->token);
        told->force = token->force;
        int rc = resolve(&told->from, self, token, word->id, err);
        if (!rc)
            rc = check_told(self, token, told, word->id, err);
        if (rc)
            return rc;
        vocab->told[word->id] = (uint32_t)i;
    }
    return 0;
}

/* ---- the tokenizer's files ----------------------------------------------- */

static int write_files(planning *self, bal_error *err)
{
    bal_vocab *vocab = self->vocab;
    uint64_t bound = vocab->bounds[vocab->donor];
    bal_rewording words = {
        .text = { self->donor_text.data, self->donor_text.len },
        .donor = &self->words[vocab->donor],
        .bound = bound,
        .want = &self->out,
        .kept = self->kept,
        .what = "tokenizer.json",
    };
    char label[BAL_INPUT_LABEL];
    BAL_LOCAL(bal_buf) config = { 0 };
    bool found = false;

    vocab->same = bal_words_same(&words);
    if (vocab->same)
        return 0;
    int rc = bal_words_write(&vocab->text, &words, err);
    if (!rc)
        rc = bal_vocab_file(&config, &found, vocab, vocab->donor,
                            "tokenizer_config.json", BAL_VOCAB_FILE_MAX, err);
    if (!rc && found)
        rc = bal_words_config(&vocab->config,
                              (bal_bytes){ config.data, config.len }, bound,
                              "tokenizer_config.json", err);
    bal_vocab_label(label, vocab, vocab->donor);
    return rc ? bal_within(err, rc, "%s", label) : 0;
}

static int plan(planning *self, bal_error *err)
{
    int rc = read_all(self, err);

    if (!rc)
        rc = keep_donor(self, err);
    if (!rc && self->want->source == BAL_VOCAB_UNION)
        rc = unite(self, err);
    if (!rc)
        rc = append_wanted(self, err);
    if (!rc)
        rc = count_rows(self, err);
    if (!rc)
        rc = match(self, err);
    if (!rc)
        rc = tell(self, err);
    if (!rc)
        rc = write_files(self, err);
    return rc;
}

int bal_vocab_plan(bal_vocab *self, const bal_vocab_want *want, bal_error *err)
{
    BAL_LOCAL(planning) all = { .vocab = self, .want = want };

    return plan(&all, err);
}
