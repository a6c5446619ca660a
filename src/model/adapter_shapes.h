/* Whether the tensors of an adapted module are all there and fit each other. */
#ifndef MODEL_ADAPTER_SHAPES_H
#define MODEL_ADAPTER_SHAPES_H

#include "model/adapter.h"
#include "model/peft_config.h"

/* Sets rank, in and out. ECORRUPT: one is missing, ranks differ; EUNSUPPORTED:
 * a number of dimensions that the kind has no formula for. */
BAL_CHECK int bal_adapted_shape(bal_adapted *row, const json_t *config,
                                bal_model *model, bal_error *err);
/* Sets scale; of a stack of experts not, whose parameter is not known yet. */
BAL_CHECK int bal_adapted_scale(bal_adapted *row, bal_peft_scales *scales,
                                bal_error *err);
#endif
