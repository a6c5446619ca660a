/* A vocabulary out of a tokenizer.json, and into one. */
#ifndef MERGE_VOCAB_WORDS_H
#define MERGE_VOCAB_WORDS_H

#include "core/map.h"

typedef struct bal_word {
    const char *text; /* may hold a NUL: len tells */
    size_t len;
    uint32_t id;
    bool added;   /* it is one of added_tokens */
    bool special; /* and it is special */
} bal_word;

/* Zero is valid and empty. */
typedef struct bal_words {
    bal_arena arena; /* of the texts that were read */
    bal_word *words;
    size_t count, room;
    bal_map map;   /* text to index */
    size_t plain;  /* the first so many are of model.vocab */
    uint64_t next; /* model.vocab's length: what an added token that it has not
                      is numbered from */
    bool listed;   /* model.vocab is an array: ids are places in it */
    bal_bytes vocab, merges, added; /* where they are in the text that was
                                       read; data NULL: nowhere */
} bal_words;

/* The vocabulary that the tokenizers library (0.23) loads from the text:
 * model.vocab, an object of ids (BPE, WordPiece, WordLevel) or an array of
 * pieces and scores (Unigram), and added_tokens. Those that model.vocab has
 * take its ids, the others are numbered on from its length in their order,
 * whatever id they tell. Of words that are there twice the last counts.
 * ECORRUPT: not JSON, or not of that form; EUNSUPPORTED: more words than
 * BAL_VOCAB_TOKENS_MAX, or a model without a vocabulary. Both name `what`. */
BAL_CHECK int bal_words_read(bal_words *out, bal_bytes text, const char *what,
                             bal_error *err);
/* A word, its text borrowed. A word that is there gets the id. ENOMEM. */
BAL_CHECK int bal_words_add(bal_words *self, const bal_word *word,
                            bal_error *err);
/* NULL: there is none. */
const bal_word *bal_words_find(const bal_words *self, const char *text,
                               size_t len);
/* Their indexes by ascending id, those of one id in their order; free() it. */
BAL_CHECK int bal_words_order(size_t **out, const bal_words *self,
                              bal_error *err);
void bal_words_done(bal_words *self);

/* What becomes of a donor's tokenizer.json. */
typedef struct bal_rewording {
    bal_bytes text;
    const bal_words *donor; /* read from it */
    uint64_t bound;         /* words of this id and above go */
    const bal_words *want;  /* what it has to be read as then */
    size_t kept;            /* the first so many are of the donor */
    const char *what;       /* named in messages */
} bal_rewording;

/* True if there is nothing to change. */
bool bal_words_same(const bal_rewording *self);
/* The text with the words of want, and no other bytes changed: new ones among
 * added_tokens, as what is added to a tokenizer goes there; if the library
 * would then number them in another way, in model.vocab as well. What goes
 * takes its merges along. EUNSUPPORTED: neither gives the vocabulary. */
BAL_CHECK int bal_words_write(bal_buf *out, const bal_rewording *self,
                              bal_error *err);
/* tokenizer_config.json without the added_tokens_decoder's ids from bound on.
 */
BAL_CHECK int bal_words_config(bal_buf *out, bal_bytes text, uint64_t bound,
                               const char *what, bal_error *err);

#endif
