/* What a plane is like, from a sample of it. Half of the bytes of a bf16 model
 * are the low bytes of mantissas, which no code makes smaller; to know it costs
 * a hundredth of what trying would. Most of the other half is noise of few
 * values, which wants Huffman and nothing else. */
#include "codec/coder.h"

enum { RUN = 256, SYMBOLS = 256 };

typedef struct drawn {
    uint64_t count;  /* bytes */
    uint64_t pairs;  /* ordered pairs of them */
    uint64_t alike;  /* pairs that are the same byte */
    uint64_t beside; /* bytes that are the same as the one before */
} drawn;

static void take_sample(drawn *self, const uint8_t *data, size_t len,
                        size_t step, size_t samples)
{
    uint64_t count[SYMBOLS] = { 0 };
    size_t runs = samples / RUN;
    size_t stride = len / runs;

    *self = (drawn){ .count = (uint64_t)runs * RUN };
    for (size_t run = 0; run < runs; run++) {
        const uint8_t *from = data + run * stride * step;
        count[from[0]]++;
        for (size_t i = step; i < RUN * step; i += step) {
            count[from[i]]++;
            self->beside += from[i] == from[i - step];
        }
    }
    for (size_t i = 0; i < SYMBOLS; i++)
        self->alike += count[i] * count[i];
    self->alike -= self->count;
    self->pairs = self->count * (self->count - 1);
}

/* Collisions instead of entropy: they need no logarithm, so every machine
 * decides alike, and say no more than the entropy does, so what they call
 * random is. A source of b bits has 2^-b of its pairs alike; 2 percent less
 * than 8 bits is 7.84, and 2^7.84 is 229.
 *
 * Noise has as many equal neighbours as equal pairs; more of them are runs,
 * which a match finder is good for. And where nine of ten bytes are the same,
 * runs come by chance, and Huffman's least, one bit a byte, is too much. */
bal_texture bal_texture_of(const uint8_t *data, size_t len, size_t step,
                           size_t samples)
{
    drawn sample;

    if (!samples || len < samples)
        return BAL_TEXTURE_ANY;
    take_sample(&sample, data, len, step, samples);
    if (sample.alike * 229 <= sample.pairs)
        return BAL_TEXTURE_RANDOM;
    uint64_t chance = sample.alike * sample.count / sample.pairs;
    bool runs = sample.beside > chance + chance / 8 + sample.count / 64;
    bool few = sample.alike > sample.pairs / 5 * 4;
    return runs || few ? BAL_TEXTURE_ANY : BAL_TEXTURE_NOISE;
}
