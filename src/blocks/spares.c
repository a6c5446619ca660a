#include "blocks/spares.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"

void *bal_spares_take(bal_spares *self, size_t size)
{
    for (size_t i = 0; i < BAL_SPARES; i++) {
        void *memory = self->of[i].memory;

        if (!memory || self->of[i].size != size)
            continue;
        self->of[i].memory = NULL;
        return memory;
    }
    void *memory = malloc(size + BAL_PAGE);
    if (memory)
        return memory;
    bal_spares_done(self);
    return malloc(size + BAL_PAGE);
}

void bal_spares_keep(bal_spares *self, void *memory, size_t size)
{
    size_t i = self->turn;

    self->turn = (i + 1) % BAL_SPARES;
    free(self->of[i].memory);
    self->of[i].memory = memory;
    self->of[i].size = size;
}

void bal_spares_done(bal_spares *self)
{
    for (size_t i = 0; i < BAL_SPARES; i++)
        free(self->of[i].memory);
    memset(self, 0, sizeof(*self));
}
