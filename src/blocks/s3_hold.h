/* Runs that are staged and not settled: in memory, and what there is no room
 * for there in files without a name, which end with the process. */
#ifndef BLOCKS_S3_HOLD_H
#define BLOCKS_S3_HOLD_H

#include <stdatomic.h>

#include "core/buf.h"

typedef struct bal_s3_room {
    char *folder;       /* for files, NULL: none */
    size_t most;        /* bytes in memory */
    atomic_size_t used; /* of them */
} bal_s3_room;

/* A copy of the parts, one behind the other. EIO: the disk is full. */
BAL_CHECK int bal_s3_hold(char **out, bal_s3_room *room, const bal_bytes *parts,
                          size_t count, bal_error *err);
bal_bytes bal_s3_held(const char *hold);
void bal_s3_let_go(bal_s3_room *room, char *hold);

#endif
