/* The cases of golden_big.json: inputs by formula, outputs as digests. */
#ifndef GOLDEN_BIG_H
#define GOLDEN_BIG_H

#include "golden/golden_compare.h"

/* Make the inputs of a case; false: they do not have the digests told. */
bool golden_big_inputs(golden_inputs *out, const json_t *one);
/* Digest, or the stable one; where the order of a sum decides, the samples
 * within the tolerance of the case. */
void golden_big_judge(golden_finding *out, const golden_result *result,
                      const json_t *one);

#endif
