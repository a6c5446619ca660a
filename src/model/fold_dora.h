/* DoRA's lengths: what each output of a module is multiplied by. */
#ifndef MODEL_FOLD_DORA_H
#define MODEL_FOLD_DORA_H

#include "core/pool.h"
#include "model/fold_edits.h"

/* Reads the weights of such modules through once, on the threads of work, NULL:
 * on the caller's. ECORRUPT: a norm of 0. */
BAL_CHECK int bal_fold_dora(bal_edits *self, bal_work *work, bal_error *err);

#endif
