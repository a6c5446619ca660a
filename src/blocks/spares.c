#include "blocks/spares.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/buf.h"

/* Large ones are of whole STEPs, so that blocks of about one size, as those of
 * small tensors are, have one another's. A page that nobody wrote to is only an
 * address. */
enum { LARGE = 1 << 20, STEP = 4 << 20 };

static size_t room_for(size_t size)
{
    return size < LARGE ? size : (size + STEP - 1) / STEP * STEP;
}

/* size: a room. */
static void *make(size_t size)
{
    if (size < LARGE)
        return malloc(size + BAL_PAGE);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void drop(void *memory, size_t size)
{
    if (size < LARGE)
        free(memory);
    else if (memory)
        munmap(memory, size);
}

void bal_spares_drop(void *memory, size_t size)
{
    drop(memory, room_for(size));
}

void *bal_spares_take(bal_spares *self, size_t size)
{
    size_t room = room_for(size);

    for (size_t i = 0; i < BAL_SPARES; i++) {
        void *memory = self->of[i].memory;

        if (!memory || self->of[i].room != room)
            continue;
        self->of[i].memory = NULL;
        return memory;
    }
    void *memory = make(room);
    if (memory)
        return memory;
    bal_spares_done(self);
    return make(room);
}

void bal_spares_keep(bal_spares *self, void *memory, size_t size)
{
    size_t i = self->turn;

    self->turn = (i + 1) % BAL_SPARES;
    drop(self->of[i].memory, self->of[i].room);
    self->of[i].memory = memory;
    self->of[i].room = room_for(size);
}

void bal_spares_done(bal_spares *self)
{
    for (size_t i = 0; i < BAL_SPARES; i++)
        drop(self->of[i].memory, self->of[i].room);
    memset(self, 0, sizeof(*self));
}
