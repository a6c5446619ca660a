/* What the files that make, write and read fingerprints share. */
#ifndef PROBE_FINGERPRINT_INSIDE_H
#define PROBE_FINGERPRINT_INSIDE_H

#include "core/map.h"
#include "probe/fingerprint.h"

#define BAL_FINGERPRINT_SCHEMA "ballast/fingerprint/1"

/* Texts, each once, by number. */
typedef struct bal_token_words {
    bal_map map;
    const char **texts;
    size_t count, room;
} bal_token_words;

/* A text that stays where it is. *there: it was in already. */
BAL_CHECK int bal_token_words_add(bal_token_words *self, const char *text,
                                  size_t *index, bool *there, bal_error *err);
/* A text that is copied if it is new. */
BAL_CHECK int bal_token_words_keep(bal_token_words *self, bal_arena *arena,
                                   const char *text, const char **kept,
                                   bal_error *err);
void bal_token_words_done(bal_token_words *self);

typedef struct bal_told {
    const char *text;
    uint64_t times;
} bal_told;

/* What is kept of one probe. */
typedef struct bal_slot {
    bal_answer first; /* its tokens as bal_answer_keep leaves them */
    bal_told *texts;  /* room for BAL_TEXTS_MAX once there is a second one */
    size_t count;     /* 0: no answer */
    uint64_t more;
} bal_slot;

struct bal_fingerprint {
    bal_probes *probes;
    char *terms;
    char *about;
    bal_slot *slots; /* one a probe */
    size_t answered;
    double noise;
    uint64_t noise_tokens;
    bal_arena arena;
    bal_token_words words; /* texts of tokens */
};

/* EINVAL: what bal_fingerprint_add does not take. */
BAL_CHECK int bal_answer_check(const bal_answer *answer, bal_error *err);
/* Copies a checked answer's tokens. Each lists the likeliest in front, none
 * twice, itself among them, BAL_TOP_MAX at most and itself. */
BAL_CHECK int bal_answer_keep(bal_answer *out, bal_arena *arena,
                              bal_token_words *words, const bal_answer *answer,
                              bal_error *err);
/* The order of a list of likely tokens, as qsort wants it. */
int bal_likely_compare(const void *a, const void *b);

/* Append a zstd frame. */
BAL_CHECK int bal_pack(bal_buf *to, bal_bytes content, bal_error *err);
/* The content of a frame, in a buffer that is empty; ECORRUPT: it is none, or
 * says more than most bytes. */
BAL_CHECK int bal_unpack(bal_buf *out, bal_bytes frame, size_t most,
                         bal_error *err);

#endif
