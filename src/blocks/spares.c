#include "blocks/spares.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/buf.h"

enum { LARGE = 1 << 20 };

static void *make(size_t size)
{
    if (size < LARGE)
        return malloc(size + BAL_PAGE);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void bal_spares_drop(void *memory, size_t size)
{
    if (size < LARGE)
        free(memory);
    else if (memory)
        munmap(memory, size);
}

void *bal_spares_take(bal_spares *self, size_t size)
{
    for (size_t i = 0; i < BAL_SPARES; i++) {
        void *memory = self->of[i].memory;

        if (!memory || self->of[i].size != size)
            continue;
        self->of[i].memory = NULL;
        return memory;
    }
    void *memory = make(size);
    if (memory)
        return memory;
    bal_spares_done(self);
    return make(size);
}

void bal_spares_keep(bal_spares *self, void *memory, size_t size)
{
    size_t i = self->turn;

    self->turn = (i + 1) % BAL_SPARES;
    bal_spares_drop(self->of[i].memory, self->of[i].size);
    self->of[i].memory = memory;
    self->of[i].size = size;
}

void bal_spares_done(bal_spares *self)
{
    for (size_t i = 0; i < BAL_SPARES; i++)
        bal_spares_drop(self->of[i].memory, self->of[i].size);
    memset(self, 0, sizeof(*self));
}
