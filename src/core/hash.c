/* BLAKE3-256 by the official C code; only init, update and finalize, which
 * every release since 1.0 has. */
#include "core/hash.h"

#include <blake3.h>

_Static_assert(sizeof(bal_hash) >= sizeof(blake3_hasher),
               "a bal_hash holds a blake3_hasher");
_Static_assert(_Alignof(bal_hash) >= _Alignof(blake3_hasher),
               "a bal_hash is aligned like a blake3_hasher");

static blake3_hasher *hasher(bal_hash *self)
{
    return (blake3_hasher *)(void *)self->state;
}

void bal_hash_init(bal_hash *self)
{
    blake3_hasher_init(hasher(self));
}

void bal_hash_add(bal_hash *self, const void *data, size_t len)
{
    if (len)
        blake3_hasher_update(hasher(self), data, len);
}

void bal_hash_end(const bal_hash *self, bal_id *out)
{
    const blake3_hasher *state = (const void *)self->state;

    blake3_hasher_finalize(state, out->bytes, sizeof(out->bytes));
}

void bal_hash_of(bal_id *out, const void *data, size_t len)
{
    bal_hash hash;

    bal_hash_init(&hash);
    bal_hash_add(&hash, data, len);
    bal_hash_end(&hash, out);
}
