/* Philox4x32-10: the counter is the element, so that any tile can be drawn
 * alone. Constants and rounds as in section 4.3 of the paper. */
#include <string.h>

#include "core/arith.h"
#include "core/hash.h"
#include "merge/arith.h"

enum { ROUNDS = 10, LANES = 8 };

/* The four words of some counters, word by word, so that the compiler can work
 * on all of them at once. */
typedef struct words {
    uint32_t of[4][LANES];
} words;

static void scramble(words *w, const uint32_t key[2])
{
    uint32_t left_key = key[0];
    uint32_t right_key = key[1];

    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < LANES; i++) {
            uint64_t left = (uint64_t)0xd2511f53 * w->of[0][i];
            uint64_t right = (uint64_t)0xcd9e8d57 * w->of[2][i];
            w->of[0][i] = (uint32_t)(right >> 32) ^ w->of[1][i] ^ left_key;
            w->of[1][i] = (uint32_t)right;
            w->of[2][i] = (uint32_t)(left >> 32) ^ w->of[3][i] ^ right_key;
            w->of[3][i] = (uint32_t)left;
        }
        left_key += 0x9e3779b9;
        right_key += 0xbb67ae85;
    }
}

void bal_philox(uint32_t out[4], const uint32_t counter[4],
                const uint32_t key[2])
{
    words w = { 0 };

    for (size_t k = 0; k < 4; k++)
        w.of[k][0] = counter[k];
    scramble(&w, key);
    for (size_t k = 0; k < 4; k++)
        out[k] = w.of[k][0];
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
    for (size_t at = 0; at < n;) {
        uint64_t first = (start + at) / 4;
        size_t skip = (size_t)((start + at) % 4);
        words w;
        for (size_t i = 0; i < LANES; i++) {
            w.of[0][i] = (uint32_t)(first + i);
            w.of[1][i] = (uint32_t)((first + i) >> 32);
            w.of[2][i] = self->stream[0];
            w.of[3][i] = self->stream[1];
        }
        scramble(&w, self->key);
        for (size_t k = skip; k < (size_t)4 * LANES && at < n; k++)
            out[at++] = (float)(w.of[k % 4][k / 4] >> 8) * 0x1p-24f;
    }
}
