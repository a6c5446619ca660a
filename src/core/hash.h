/* BLAKE3-256: the address of a block, the id of a manifest and of a commit. */
#ifndef CORE_HASH_H
#define CORE_HASH_H

#include <assert.h>

#include "core/buf.h"

/* Big enough for a blake3_hasher, so that callers need not see it. */
typedef struct bal_hash {
    _Alignas(16) uint8_t state[1920];
} bal_hash;

void bal_hash_init(bal_hash *self);
void bal_hash_add(bal_hash *self, const void *data, size_t len);
void bal_hash_end(const bal_hash *self, bal_id *out);
void bal_hash_of(bal_id *out, const void *data, size_t len);
static inline bool bal_id_equal(const bal_id *a, const bal_id *b)
{
    return !__builtin_memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

/* Bytewise, as qsort wants it. */
int bal_id_compare(const void *a, const void *b);
/* Sorts ids and leaves each once; gives how many are left. */
size_t bal_ids_unique(bal_id *ids, size_t count);

/* Ids that were appended to a buffer one behind the other. */
static inline size_t bal_ids_count(const bal_buf *ids)
{
    return ids->len / sizeof(bal_id);
}

/* Borrowed until the buffer grows; NULL of one that never had any. */
static inline const bal_id *bal_ids_of(const bal_buf *ids)
{
    return (const bal_id *)(const void *)ids->data;
}

/* i is below the count. */
static inline const bal_id *bal_ids_at(const bal_buf *ids, size_t i)
{
    assert(ids->data);
    return bal_ids_of(ids) + i;
}

#endif
