/* Room on disk for decoded blocks, so that those which are wanted again before
 * long need not be decoded again. A file without a name: it ends with the
 * process, however that ends. A help alone: where there is no room, or none is
 * left, nothing is kept. */
#ifndef BLOCKS_SPILL_H
#define BLOCKS_SPILL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bal_spill bal_spill;

/* In the folder, for blocks of at most `slot` bytes; as many as fit `most`
 * bytes and a sixteenth of what is free there. NULL: it cannot be had. */
bal_spill *bal_spill_new(const char *folder, size_t slot, size_t most);
void bal_spill_free(bal_spill *self);
size_t bal_spill_slots(const bal_spill *self);
/* Bytes of a slot; one slot is used by one thread at a time. False: they cannot
 * be kept, or were not read. */
bool bal_spill_write(bal_spill *self, size_t slot, const void *data,
                     size_t len);
bool bal_spill_read(const bal_spill *self, size_t slot, void *to, size_t len);

#endif
