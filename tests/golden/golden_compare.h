/* What a result is to the expected one. */
#ifndef GOLDEN_COMPARE_H
#define GOLDEN_COMPARE_H

#include "golden/golden_case.h"

typedef enum golden_verdict {
    GOLDEN_SAME,   /* in every bit; any NaN is as good as another */
    GOLDEN_STABLE, /* the same, where equal magnitudes keep their order */
    GOLDEN_NEAR,   /* within the tolerance of the case */
    GOLDEN_WRONG,
} golden_verdict;

/* text: where WRONG, in what. */
typedef struct golden_finding {
    golden_verdict verdict;
    char text[200];
} golden_finding;

/* Element i as a number. BF16 F16 F32. */
double golden_value(const golden_tensor *self, size_t i);
size_t golden_count(const golden_tensor *self);
bool golden_same(const golden_tensor *a, const golden_tensor *b);

/* By the rules of README.md: a case with the expected output, or error. */
void golden_judge(golden_finding *out, const golden_result *result,
                  const json_t *one);
/* By truth rounded once: each element the same, or the next to it. NULL: of the
 * result nothing is known but that it is finite, if there is one. */
void golden_judge_truth(golden_finding *out, const golden_result *result,
                        const json_t *truth);

#endif
