/* Is this the base that a change was made on? */
#ifndef MODEL_VERIFY_H
#define MODEL_VERIFY_H

#include "model/model.h"

/* Reads the base through and compares it with the digests that the tensors of
 * change remember. ECORRUPT names the first tensor, by name, that base lacks,
 * has otherwise, or has although change would know it. Where change remembers
 * nothing there is nothing to compare. */
BAL_CHECK int bal_base_verify(bal_model *base, bal_model *change,
                              bal_work *work, bal_error *err);
/* What bal_base_verify and plus say: ECORRUPT. */
int bal_base_differs(const char *tensor, bal_error *err);

#endif
