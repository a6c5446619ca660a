/* Merges of whole models, whose tensors share one stream of random numbers. */
#ifndef GOLDEN_MODELS_H
#define GOLDEN_MODELS_H

#include "golden/golden_compare.h"

/* tensors: for each model, its tensors by name. */
bool golden_models_inputs(golden_inputs *out, const json_t *tensors,
                          const json_t *one);
/* Every tensor in every bit, read in the opposite order of mergekit's. */
void golden_models_judge(golden_finding *out, const golden_inputs *inputs,
                         const json_t *one);

#endif
