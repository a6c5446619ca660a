/* A LoRA adapter as the maps that it adds: what methods that are not sums merge
 * in product space. */
#ifndef MERGE_MAPS_H
#define MERGE_MAPS_H

#include "model/model.h"

/* s B A of each module as a DIFFERENCE "MODULE.weight" of F32, [out, in], each
 * element summed in double, k rising, and rounded once. A delta, but for its
 * names, which are those of PEFT, and digests, which it has none of. Keeps a
 * reference on the adapter. Whole tensors are left out. EUNSUPPORTED: it is
 * more than plain LoRA; ECORRUPT as bal_adapter_read, and when a map is read
 * that is not finite. */
BAL_CHECK int bal_maps_open(bal_model **out, bal_model *adapter,
                            bal_error *err);

#endif
