/* What rows of differences come to. */
#ifndef MERGE_LOSS_H
#define MERGE_LOSS_H

#include "ballast.h"

/* Zero is the sum of no rows. */
typedef struct bal_loss {
    double difference2, norm2;
    bal_residual worst; /* total is not filled in */
} bal_loss;

void bal_loss_add(bal_loss *self, const bal_lora_row *row);
bal_residual bal_loss_residual(const bal_loss *self);

#endif
