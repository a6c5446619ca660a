/* A diff as a whole: weights, adapters as maps, answers; and its document. */
#ifndef REPORT_DIFF_H
#define REPORT_DIFF_H

#include "report/diff_answers.h"
#include "report/diff_maps.h"
#include "report/diff_weights.h"

/* The change above which some probe should have moved, where none is told. */
#define BAL_DIFF_THRESHOLD 0.01

typedef struct bal_diff_whole {
    double threshold;
    bal_diff_weights weights;
    bal_diff_maps maps;
    bal_diff_answers answers;
} bal_diff_whole;

void bal_diff_whole_done(bal_diff_whole *self);
/* As bal_diff_json says. */
BAL_CHECK int bal_diff_whole_fill(bal_diff_whole *out, bal_model *a,
                                  bal_model *b, const bal_diff_options *options,
                                  bal_error *err);
bool bal_diff_whole_moved(const bal_diff_whole *self);
/* Members from "a" on, into the open object. */
void bal_diff_whole_json(bal_json *json, const bal_diff_whole *self,
                         const bal_diff_options *options);
/* Appends the document of `ballast diff --json`, compact. */
BAL_CHECK int bal_diff_whole_write(bal_buf *to, const bal_diff_whole *self,
                                   const bal_diff_options *options,
                                   bal_error *err);

#endif
