/* What a diff says of behaviour: the answers that two commits gave to the same
 * probes, and which of three outcomes that is: seen, unknown, or weights that
 * moved while no probe noticed. */
#ifndef REPORT_DIFF_ANSWERS_H
#define REPORT_DIFF_ANSWERS_H

#include "core/json.h"
#include "core/own.h"
#include "core/pool.h"

BAL_OWNABLE(bal_fingerprint)

/* A row of bal_behaviour_compare; texts of the fingerprints'. */
typedef struct bal_diff_answer {
    const bal_probe *probe;
    const char *before, *after;
    bool moved, unsure;
    double similarity, kld;
    uint64_t tokens;
} bal_diff_answer;

typedef struct bal_diff_answers {
    bool known;
    bal_fingerprint *a, *b;
    bal_behaviour sums;
    bal_buf rows;   /* bal_diff_answer */
    bal_buf klds;   /* double, of all tokens */
    bal_work *work; /* polled: long answers take their time */
    int rc;
    bal_error err;
} bal_diff_answers;

void bal_diff_answers_done(bal_diff_answers *self);
/* Of two commits: what both have on the same terms, of a set with an id of that
 * prefix where it is not NULL. */
BAL_CHECK int bal_diff_answers_fill(bal_diff_answers *out, bal_tenant *tenant,
                                    const bal_id commits[2], const char *prefix,
                                    bal_work *work, bal_error *err);
/* True if log-probabilities moved by more than they do by themselves. */
bool bal_diff_answers_drift(const bal_diff_answers *self);
/* True if weights moved, and neither answers nor these noticed. */
bool bal_diff_answers_unobserved(const bal_diff_answers *self, bool moved);
/* Members, into the open object. */
void bal_diff_answers_json(bal_json *json, const bal_diff_answers *self,
                           bool moved);
void bal_diff_answers_json_table(bal_json *json, const bal_diff_answers *self);

#endif
