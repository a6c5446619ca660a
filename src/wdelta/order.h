/* The order in which a file's tensors are hashed and lie among its records. */
#ifndef WDELTA_ORDER_H
#define WDELTA_ORDER_H

#include "model/model.h"

/* The base's tensors: by the file that they are in, files in the order in which
 * their first tensor comes by name, and by name in each. That is how
 * deltatensors 0.2.0 checks a base that is a folder; of one file, and in every
 * other version, it is the order by name. *order is malloc'ed, *count long. */
BAL_CHECK int bal_wd_order(size_t **order, size_t *count, bal_model *base,
                           bal_error *err);

#endif
