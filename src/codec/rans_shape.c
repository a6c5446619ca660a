/* A table as a shape: how high each magnitude stands, in half octaves, which is
 * all that a short stream can afford to say. A token and its twin of the other
 * sign stand equally high; there is no token 1, which would be minus nothing.
 * In whole numbers, like all of the tables. */
#include <assert.h>
#include <string.h>

#include "codec/rans.h"

enum {
    SLOTS = BAL_RANS_SLOTS,
    DEEPEST = 62, /* what stands lower has one slot anyway */
    FIRST_STEP = 60,
    STEP = 14, /* at most, so that tables of all contexts fit TABLES_MOST */
};

static size_t last_of(const uint32_t *count)
{
    size_t last = BAL_RANS_HEIGHTS - 1;

    while (last && !count[2 * last] && !count[2 * last + 1])
        last--;
    return last;
}

static int32_t near_to(int32_t height, int32_t before, int32_t most)
{
    if (height > before + most)
        return before + most;
    return height < before - most ? before - most : height;
}

/* What was not seen may be as likely as what was seen once at most, and is not
 * worth the bits of a cliff. */
void bal_rans_set_heights(const bal_rans *self, bal_rans_shape *out,
                          const uint32_t *count)
{
    out->last = last_of(count);
    for (size_t m = 0; m <= out->last; m++) {
        uint64_t both = (uint64_t)count[2 * m] + count[m ? 2 * m + 1 : 0];
        int32_t before = m ? out->height[m - 1] : 0;
        uint32_t log = bal_rans_log(self, both ? both : 1);
        int32_t height = (int32_t)((2 * log + (1u << 15)) >> 16);
        if (!both && before > 0)
            height = before - 1;
        if (m)
            height = near_to(height, before, m > 1 ? STEP : FIRST_STEP);
        out->height[m] = height;
    }
}

/* Half octaves below the highest, as a weight. */
static uint64_t weight_of(int32_t below)
{
    static const uint64_t steps[] = { 65536, 46341 };
    int32_t down = below < DEEPEST ? below : DEEPEST;

    return steps[down % 2] << 16 >> (down / 2);
}

/* Until they are as many as there are slots, each in turn has one more, or one
 * less. */
static void settle(uint16_t *freq, size_t count, uint32_t sum)
{
    for (size_t i = 0; sum != SLOTS; i = i + 1 < count ? i + 1 : 0) {
        if (i == 1)
            continue;
        if (sum < SLOTS) {
            freq[i]++;
            sum++;
        } else if (freq[i] > 1) {
            freq[i]--;
            sum--;
        }
    }
}

void bal_rans_from_shape(uint16_t *freq, const bal_rans_shape *shape)
{
    int32_t highest = shape->height[0];
    uint64_t total = 0;
    uint32_t sum = 0;

    assert(shape->last < BAL_RANS_HEIGHTS);
    for (size_t m = 1; m <= shape->last; m++)
        highest = shape->height[m] > highest ? shape->height[m] : highest;
    for (size_t m = 0; m <= shape->last; m++)
        total += weight_of(highest - shape->height[m]) << (m > 0);
    memset(freq, 0, BAL_RANS_TOKENS * sizeof(*freq));
    for (size_t m = 0; m <= shape->last; m++) {
        uint64_t share = weight_of(highest - shape->height[m]) * SLOTS / total;
        freq[2 * m] = (uint16_t)(share ? share : 1);
        freq[2 * m + 1] = m ? freq[2 * m] : 0;
        sum += (uint32_t)freq[2 * m] + freq[2 * m + 1];
    }
    settle(freq, 2 * (shape->last + 1), sum);
}
