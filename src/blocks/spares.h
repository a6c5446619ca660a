/* Memory of blocks that was let go of, for the next blocks of about the same
 * size: the kernel would give fresh pages. Large ones are no part of malloc's
 * heap, where they would leave gaps as large as all of them together. */
#ifndef BLOCKS_SPARES_H
#define BLOCKS_SPARES_H

#include <stddef.h>

#define BAL_SPARES 4

typedef struct bal_spares {
    struct {
        void *memory;
        size_t room;
    } of[BAL_SPARES];
    size_t turn; /* which is let go of next */
} bal_spares;

/* Memory for a block of size bytes from the start of a page in it on (see
 * bal_page_start). NULL: there is none, and no spare is left. */
void *bal_spares_take(bal_spares *self, size_t size);
/* Takes what take gave for a block of that size: to be used again, or back. */
void bal_spares_keep(bal_spares *self, void *memory, size_t size);
void bal_spares_drop(void *memory, size_t size);
void bal_spares_done(bal_spares *self);

#endif
