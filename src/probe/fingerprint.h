/* A fingerprint as it is kept, and what comparing needs of it.
 *
 * The byte form, "ballast/fingerprint/1": one zstd frame with its content's
 * size and checksum; the content has 1 GiB at most. It is a line of JSON
 * (UTF-8, no line feed but the one that ends it), then the log-probabilities.
 * The members of the JSON, in this order:
 *
 *   schema   "ballast/fingerprint/1"
 *   probes   the set's id, 64 hex digits
 *   about    object of what is worth knowing beside
 *   noise    {"sum": S, "tokens": N}: divergence (nats) of answers from the
 *            first one to the same probe, summed over N tokens; S is a string
 *            that holds the shortest decimal number that reads back as it
 *   width    4 or 8, bytes of a log-probability
 *   numbers  how many of these there are
 *   words    every token that an answer lists, each once
 *   answers  one for each probe, in the set's order; null: none
 *
 * An answer is {"texts": [[TEXT, TIMES] …], "more": N, "tokens": [TOKEN …]}:
 * the different outputs, 64 at most, that of the first time in front, each with
 * the number of times that it came; how many more answers there were, of texts
 * that are not kept; the tokens of the first time (none: their
 * log-probabilities are not known). A TOKEN is an array of whole numbers: the
 * place (from 0) among the rest of the array of the token that came, then the
 * tokens that were likely, as indices into words, 1 to 65, the likeliest in
 * front, those equally likely in the order of their bytes.
 *
 * The log-probabilities follow in the order of these indices: natural
 * logarithms, none above 0, -inf allowed, IEEE 754 binary32 (if every one of
 * them is a binary32 number) or binary64, taken apart into planes: first the
 * lowest byte of each, then the second of each, up to the highest. */
#ifndef PROBE_FINGERPRINT_H
#define PROBE_FINGERPRINT_H

#include "core/buf.h"
#include "core/own.h"

/* Of the content, and of what a fingerprint holds in memory beside. */
#define BAL_FINGERPRINT_MAX ((size_t)1 << 30)
/* Different outputs that are kept of a probe. */
#define BAL_TEXTS_MAX ((size_t)64)
/* Of the JSON texts terms and about. */
#define BAL_TERMS_MAX ((size_t)64 << 10)
#define BAL_ABOUT_MAX ((size_t)1 << 20)

BAL_OWNABLE(bal_probes)
BAL_OWNABLE(bal_fingerprint)

/* Append the byte form: the same bytes for the same content. */
BAL_CHECK int bal_fingerprint_write(bal_buf *to, const bal_fingerprint *self,
                                    bal_error *err);
/* Of the set that it tells, on these terms. ECORRUPT: it is not the byte form,
 * or of another set, or terms are not what they may be. */
BAL_CHECK int bal_fingerprint_parse(bal_fingerprint **out, bal_probes *probes,
                                    bal_bytes body, const char *terms,
                                    bal_error *err);

/* One of the different outputs to probe i, as bal_fingerprint_distinct counts
 * them; 0 is that of bal_fingerprint_at. times (may be NULL): it came. */
const char *bal_fingerprint_text(const bal_fingerprint *self, size_t i,
                                 size_t which, uint64_t *times);
/* What came when it was asked again: nats, and the tokens they are summed over.
 * 0 tokens: it was not, or without log-probabilities. */
double bal_fingerprint_noise(const bal_fingerprint *self, uint64_t *tokens);

/* Tokens in front that are the same in both. *compared: as many, and one more
 * where both go on. */
size_t bal_answer_common(const bal_answer *a, const bal_answer *b,
                         size_t *compared);

#endif
