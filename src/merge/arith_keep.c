/* What of a tensor has the ranks wanted. Where equal elements end to be in is
 * an index, so a tile falls into a few stretches, in each of which magnitudes
 * alone tell. */
#include <math.h>
#include <string.h>

#include "core/arith.h"
#include "kernel/convert.h"
#include "merge/arith.h"

#define KEY_SIGN ((uint64_t)1 << 63)

static uint64_t magnitude_key(double x)
{
    uint64_t bits = bits64(fabs(x));

    return bits > BAL_KEY_INF ? BAL_KEY_NAN : bits;
}

static uint64_t signed_key(double x)
{
    uint64_t key = magnitude_key(x);

    return x < 0 ? KEY_SIGN - key : KEY_SIGN + key;
}

/* ---- by sign ------------------------------------------------------------- */

/* Nothing branches: where the cuts fall is as random as the values. */
static void keep_by_sign(const bal_ranked *self, uint64_t start,
                         const double *x, double *keep, size_t n)
{
    uint64_t least = signed_key(self->least);
    uint64_t most = signed_key(self->most);
    uint64_t turn = self->descending ? UINT64_MAX : 0;
    uint64_t from = self->least_index ^ turn;
    uint64_t to = self->most_index ^ turn;

    for (size_t i = 0; i < n; i++) {
        uint64_t key = signed_key(x[i]);
        uint64_t index = (start + i) ^ turn;
        bool above = (key > least) | ((key == least) & (index >= from));
        bool below = (key < most) | ((key == most) & (index <= to));
        keep[i] = (above & below) ? 1 : 0;
    }
}

/* ---- by magnitude -------------------------------------------------------- */

/* Those that equal least are in from this index on, or, descending, before it;
 * those that equal most the other way about. */
typedef struct turns {
    uint64_t least, most;
} turns;

static uint64_t after(uint64_t index)
{
    return index == UINT64_MAX ? index : index + 1;
}

/* Elements from index on to the next turn, n at most. */
static size_t stretch(const turns *at, uint64_t index, size_t n)
{
    uint64_t end = index + n;

    if (at->least > index)
        end = bal_min(end, at->least);
    if (at->most > index)
        end = bal_min(end, at->most);
    return (size_t)(end - index);
}

void bal_ranked_keep(const bal_ranked *self, uint64_t start, const double *x,
                     double *keep, size_t n)
{
    bool falls = self->descending;
    turns at = {
        .least = falls ? after(self->least_index) : self->least_index,
        .most = falls ? self->most_index : after(self->most_index),
    };

    if (self->none) {
        memset(keep, 0, n * sizeof(*keep));
        return;
    }
    if (self->by_sign) {
        keep_by_sign(self, start, x, keep, n);
        return;
    }
    uint64_t least = magnitude_key(self->least);
    uint64_t most = magnitude_key(self->most);
    for (size_t done = 0; done < n;) {
        uint64_t index = start + done;
        size_t count = stretch(&at, index, n - done);
        bool low = (index >= at.least) != falls;
        bool high = (index < at.most) != falls;

        bal_kernels_use()->keep(keep + done, x + done, least + !low,
                                most - !high, count);
        done += count;
    }
}
