/* Two answers side by side; bal_behaviour_compare is made of these. */
#ifndef PROBE_COMPARE_H
#define PROBE_COMPARE_H

#include "ballast.h"

/* 1 - edit distance / length of the longer, in code points; 1 for two empty
 * texts. Levenshtein's distance, exact at any length (Myers 1999, Hyyrö 2003:
 * 64 rows of the table at once). */
BAL_CHECK int bal_similarity(double *out, const char *a, const char *b,
                             bal_error *err);

/* KL divergence of a from b at one token; see bal_behaviour. NAN: one of them
 * lists nothing. +inf cannot be: what b gives no probability is part of its
 * rest, and a rest of b below 2^-20 is taken for that. */
double bal_kld(const bal_said *a, const bal_said *b);

/* Exact two-sided McNemar test: the binomial probability at 1/2 of a split as
 * uneven as this, or more; 1 where there is nothing. */
double bal_mcnemar(uint64_t only_a, uint64_t only_b);

/* Is the answer right? With choices: the first of them that stands as a word of
 * its own in the answer is a reference. Without: the answer, blanks in front
 * taken away, begins with a reference and no letter or digit follows. */
bool bal_probe_right(const bal_probe *probe, const char *output);

#endif
