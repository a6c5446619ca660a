/* A diff in words. */
#ifndef CLI_DIFF_WORDS_H
#define CLI_DIFF_WORDS_H

#include "cli/output.h"
#include "report/diff.h"

/* The lines behind the first, as docs/cli.md has them. */
void bal_diff_weights_text(bal_out *out, const bal_diff_weights *self);
/* A line for each changed tensor. */
void bal_diff_weights_stat(bal_out *out, const bal_diff_weights *self);
/* "  layers" and a line for each. */
void bal_diff_groups_text(bal_out *out, const bal_diff_groups *self,
                          const char *title);
/* Lines of the outcome. moved: weights did; differs: anything did. */
void bal_diff_answers_text(bal_out *out, const bal_diff_answers *self,
                           bool moved, bool differs);
/* Each probe, before and after side by side, as wide as the terminal. */
void bal_diff_answers_table(bal_out *out, const bal_diff_answers *self);
/* Lines, and one for each module with stat. */
void bal_diff_maps_text(bal_out *out, const bal_diff_maps *self, bool stat);

#endif
