/* What rows of differences come to. */
#include "merge/loss.h"

#include <math.h>
#include <stdio.h>

static double relative(double difference, double norm)
{
    if (difference == 0)
        return 0;
    return norm > 0 && isfinite(difference) ? difference / norm
                                            : (double)INFINITY;
}

void bal_loss_add(bal_loss *self, const bal_lora_row *row)
{
    double here = relative(row->difference, row->norm_a);
    bal_residual *worst = &self->worst;

    self->difference2 += row->difference * row->difference;
    self->norm2 += row->norm_a * row->norm_a;
    if (here <= worst->worst)
        return;
    worst->worst = here;
    snprintf(worst->module, sizeof(worst->module), "%s", row->module);
}

bal_residual bal_loss_residual(const bal_loss *self)
{
    bal_residual out = self->worst;

    out.total = relative(sqrt(self->difference2), sqrt(self->norm2));
    return out;
}
