/* Which word was meant: the nearest by insertions, deletions, replacements and
 * swaps of neighbours, two at most. */
#include "cli/options.h"
#include "core/arith.h"

enum { WORD_MAX = 63, FAR = 3 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment distance of two words of at most WORD_MAX bytes;
 * row[i][j] is that of their first i and j bytes. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    uint8_t row[WORD_MAX + 1][WORD_MAX + 1] = { { 0 } };

    for (size_t i = 0; i <= na; i++)
        row[i][0] = (uint8_t)i;
    for (size_t j = 0; j <= nb; j++)
        row[0][j] = (uint8_t)j;
    for (size_t k = 0; k < na * nb; k++) {
        size_t i = k / nb + 1;
        size_t j = k % nb + 1;
        bool swap =
            i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
        size_t least = row[i - 1][j - 1] + (size_t)(a[i - 1] != b[j - 1]);

        least = smaller(least, (size_t)row[i - 1][j] + 1);
        least = smaller(least, (size_t)row[i][j - 1] + 1);
        if (swap)
            least = smaller(least, (size_t)row[i - 2][j - 2] + 1);
        row[i][j] = (uint8_t)least;
    }
    return row[na][nb];
}

void bal_nearest_begin(bal_nearest *self, const char *word)
{
    *self = (bal_nearest){ .word = word, .distance = FAR };
}

void bal_nearest_offer(bal_nearest *self, const char *candidate)
{
    size_t na = strlen(self->word);
    size_t nb = strlen(candidate);

    if (na > WORD_MAX || nb > WORD_MAX || !na || !nb)
        return;
    size_t away = distance(self->word, na, candidate, nb);
    /* A word that shares nothing is not near, however short it is. */
    if (away >= self->distance || away >= na || away >= nb)
        return;
    self->distance = away;
    memcpy(self->best, candidate, nb + 1);
}
