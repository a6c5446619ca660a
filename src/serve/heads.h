/* The header fields of a request: which matter, and what makes them unsound. */
#ifndef SERVE_HEADS_H
#define SERVE_HEADS_H

#include "ballast.h"

typedef enum bal_head {
    BAL_HEAD_AUTHORIZATION,
    BAL_HEAD_CONTENT_LENGTH,
    BAL_HEAD_EXPECT,
    BAL_HEAD_TRANSFER_ENCODING,
    BAL_HEAD_HOST,
    BAL_HEAD_IF_MATCH,
    BAL_HEAD_IF_NONE_MATCH,
    BAL_HEAD_IF_RANGE,
    BAL_HEAD_RANGE,
    BAL_HEADS,
} bal_head;

typedef struct bal_heads {
    const char *values[BAL_HEADS]; /* borrowed; NULL: none came */
    const char *unsound;           /* why; NULL: it is not */
    bool chunked;
    uint64_t length; /* of the body, where it has one and is not chunked */
} bal_heads;

/* One field; value has a NUL behind value_len. */
void bal_heads_add(bal_heads *self, const char *name, size_t name_len,
                   const char *value, size_t value_len);
/* All were added: how the body comes. 0, or the status to refuse with and
 * close, and why in unsound. */
int bal_heads_end(bal_heads *self);

#endif
