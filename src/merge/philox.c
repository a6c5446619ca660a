/* Philox4x32-10: the counter is the element, so that any tile can be drawn
 * alone. Constants and rounds as in section 4.3 of the paper. */
#include <string.h>

#include "core/arith.h"
#include "core/hash.h"
#include "merge/arith.h"

enum { AT_ONCE = 256 };

void bal_philox(uint32_t out[4], const uint32_t counter[4],
                const uint32_t key[2])
{
    uint64_t first = (uint64_t)counter[1] << 32 | counter[0];
    uint32_t words[AT_ONCE];

    bal_kernels_use()->philox(words, key, counter + 2, first);
    memcpy(out, words, 4 * sizeof(*out));
}

void bal_draws_init(bal_draws *self, uint64_t seed, size_t input,
                    const char *tensor)
{
    uint8_t head[16];
    bal_hash hash;
    bal_id id;

    bal_put64(head, seed);
    bal_put64(head + 8, input);
    bal_hash_init(&hash);
    bal_hash_add(&hash, head, sizeof(head));
    bal_hash_add(&hash, tensor, strlen(tensor));
    bal_hash_end(&hash, &id);
    for (size_t i = 0; i < 2; i++) {
        self->key[i] = bal_get32(id.bytes + 4 * i);
        self->stream[i] = bal_get32(id.bytes + 8 + 4 * i);
    }
}

void bal_draws_take(const bal_draws *self, uint64_t start, float *out, size_t n)
{
    const bal_kernels *kernels = bal_kernels_use();
    uint32_t words[AT_ONCE];

    for (size_t at = 0; at < n;) {
        size_t skip = (size_t)((start + at) % 4);
        size_t count = (size_t)bal_min(n - at, AT_ONCE - skip);

        kernels->philox(words, self->key, self->stream, (start + at) / 4);
        kernels->upper24(out + at, words + skip, count);
        at += count;
    }
}
