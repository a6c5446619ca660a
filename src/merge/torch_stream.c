/* The generator works in blocks of 624 numbers, each made of the block before
 * it (twist) and given out scrambled (temper). So a state is a block and its
 * number, and going on is twisting: cheap, for nothing is scrambled. */
#include "merge/torch_stream.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/room.h"
#include "kernel/kernels.h"

enum {
    WORDS = 624,
    APART = 1680, /* blocks from one state that is kept to the next */
    KEPT_MOST = 1 << 16,
    CURSORS = 64,
};

/* Block 0 is what the seed makes, and is not given out: numbers from 624 b on
 * are in block b + 1. */
typedef struct state {
    uint64_t block;
    uint32_t words[WORDS];
} state;

struct bal_torch_stream {
    uint64_t apart;
    pthread_mutex_t lock; /* guards all that follows */
    state *kept;          /* number k is of block k * apart */
    size_t count, room;
    /* Where others went on to, so that a walk from tile to tile does not begin
     * anew each time; block 0: none. The oldest makes room. */
    state cursors[CURSORS];
    size_t oldest;
};

/* ---- MT19937 ------------------------------------------------------------ */

static void init(state *self, uint32_t seed)
{
    self->block = 0;
    self->words[0] = seed;
    for (uint32_t i = 1; i < WORDS; i++) {
        uint32_t last = self->words[i - 1];
        self->words[i] = UINT32_C(1812433253) * (last ^ (last >> 30)) + i;
    }
}

static void go_on(state *self, uint64_t block)
{
    const bal_kernels *kernels = bal_kernels_use();

    for (; self->block < block; self->block++)
        kernels->twist(self->words);
}

/* ---- the stream --------------------------------------------------------- */

int bal_torch_stream_new(bal_torch_stream **out, uint64_t seed, uint64_t length,
                         bal_error *err)
{
    if (length > BAL_TORCH_STREAM_MOST)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "%llu random numbers of mergekit's stream, %llu can be "
                        "counted through",
                        (unsigned long long)length,
                        (unsigned long long)BAL_TORCH_STREAM_MOST);
    bal_torch_stream *self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "a stream of random numbers");
    self->kept = bal_room_for_one(NULL, 0, &self->room, sizeof(state));
    if (!self->kept) {
        free(self);
        return bal_fail_memory(err, "a stream of random numbers");
    }
    init(&self->kept[self->count++], (uint32_t)seed);
    self->apart = bal_max(length / WORDS / KEPT_MOST + 1, APART);
    pthread_mutex_init(&self->lock, NULL);
    *out = self;
    return 0;
}

void bal_torch_stream_free(bal_torch_stream *self)
{
    if (!self)
        return;
    pthread_mutex_destroy(&self->lock);
    free(self->kept);
    free(self);
}

/* Keep states up to a block. What there is no memory for is gone through again
 * by all who need it. */
static void keep_locked(bal_torch_stream *self, uint64_t block)
{
    while ((self->count - 1) * self->apart + self->apart <= block) {
        state *kept = bal_room_for_one(self->kept, self->count, &self->room,
                                       sizeof(*kept));
        if (!kept)
            return;
        self->kept = kept;
        kept[self->count] = kept[self->count - 1];
        go_on(&kept[self->count], self->count * self->apart);
        self->count++;
    }
}

/* The state nearest before a block, or of it. */
static const state *nearest_locked(bal_torch_stream *self, uint64_t block)
{
    keep_locked(self, block);
    size_t last = bal_min(block / self->apart, self->count - 1);
    const state *found = &self->kept[last];

    for (size_t i = 0; i < CURSORS; i++) {
        const state *cursor = &self->cursors[i];
        if (cursor->block <= block && cursor->block > found->block)
            found = cursor;
    }
    return found;
}

/* from: the block it was taken at, whose cursor it takes the place of. */
static void put_locked(bal_torch_stream *self, const state *at, uint64_t from)
{
    for (size_t i = 0; i < CURSORS; i++) {
        if (self->cursors[i].block == from) {
            self->cursors[i] = *at;
            return;
        }
    }
    self->cursors[self->oldest] = *at;
    self->oldest = (self->oldest + 1) % CURSORS;
}

void bal_torch_stream_take(bal_torch_stream *self, uint64_t at, uint32_t *out,
                           size_t n)
{
    state own;

    pthread_mutex_lock(&self->lock);
    own = *nearest_locked(self, at / WORDS + 1);
    pthread_mutex_unlock(&self->lock);

    uint64_t from = own.block;
    for (size_t done = 0; done < n;) {
        size_t word = (size_t)((at + done) % WORDS);
        size_t count = bal_min(n - done, WORDS - word);

        go_on(&own, (at + done) / WORDS + 1);
        bal_kernels_use()->temper(out + done, own.words + word, count);
        done += count;
    }
    if (own.block == from)
        return;
    pthread_mutex_lock(&self->lock);
    put_locked(self, &own, from);
    pthread_mutex_unlock(&self->lock);
}

/* ---- what is made of numbers -------------------------------------------- */

size_t bal_torch_randint_draws(uint64_t bound)
{
    return bound < UINT64_C(1) << 28 ? 1 : 2;
}

uint64_t bal_torch_randint(const uint32_t *drawn, uint64_t bound)
{
    if (bal_torch_randint_draws(bound) == 1)
        return drawn[0] % bound;
    return ((uint64_t)drawn[0] << 32 | drawn[1]) % bound;
}

double bal_torch_uniform(uint32_t drawn)
{
    return (double)(drawn & 0xffffff) * 0x1p-24;
}
