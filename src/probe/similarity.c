/* Levenshtein's distance by Myers' bit vectors: a column of the table is kept
 * as its differences, one bit a row, and 64 rows are stepped at once. Hyyrö
 * (2003) says how a block hands its last row's difference to the block under
 * it.
 *
 * The table is walked in bands of 256 rows, each over all columns, so that the
 * matches of a band fit one small table by code point (whatever the texts hold)
 * and all that stays between two bands is one byte a column. Four blocks a step
 * also leave the processor something to do while one block waits for the one
 * above. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/own.h"
#include "core/utf8.h"
#include "probe/compare.h"

enum { BLOCKS = 4, ROWS = 64 * BLOCKS };

/* Bytes that are not UTF-8 are points of their own, which no text has. */
enum { RAW_BYTE = 0xdc00 };

/* A text's code points; what is compared of them is from .. from + len. */
typedef struct points {
    uint32_t *all;
    uint32_t *from;
    size_t len;
} points;

static void points_done(points *self)
{
    free(self->all);
}

/* With room for a band's rows in front. */
static int points_of(points *out, const char *text, bal_error *err)
{
    size_t bytes = strlen(text);
    size_t at = 0;

    out->all = bytes < SIZE_MAX / 8 ? calloc(ROWS + bytes + 1, sizeof(uint32_t))
                                    : NULL;
    if (!out->all)
        return bal_fail_memory(err, "comparing two texts");
    out->from = out->all + ROWS;
    while (at < bytes) {
        uint32_t point;
        size_t step = bal_utf8_next(&point, text + at, bytes - at);
        if (!step)
            point = RAW_BYTE + (uint8_t)text[at];
        out->from[out->len++] = point;
        at += step ? step : 1;
    }
    return 0;
}

/* What both begin or end with is no part of the table. */
static void trim(points *a, points *b)
{
    while (a->len && b->len && *a->from == *b->from) {
        a->from++;
        b->from++;
        a->len--;
        b->len--;
    }
    while (a->len && b->len && a->from[a->len - 1] == b->from[b->len - 1]) {
        a->len--;
        b->len--;
    }
}

/* Both begin with the same count of a point that no text has: that leaves the
 * distance as it is, and makes the rows a multiple of a band. */
static void pad(points *self, size_t count)
{
    self->from -= count;
    self->len += count;
    memset(self->from, 0, count * sizeof(*self->from));
}

static uint32_t largest(const points *text)
{
    uint32_t most = 0;

    for (size_t i = 0; i < text->len; i++) {
        if (text->from[i] > most)
            most = text->from[i];
    }
    return most;
}

/* A block's column: where the next row is one more, or one less. */
typedef struct block {
    uint64_t more;
    uint64_t less;
} block;

/* How the row above changes from one column to the next. */
typedef struct change {
    uint64_t more;
    uint64_t less;
} change;

static inline change step(block *self, uint64_t equal, change above)
{
    uint64_t more = self->more;
    uint64_t less = self->less;
    uint64_t down = equal | less;

    equal |= above.less;
    uint64_t across = (((equal & more) + more) ^ more) | equal;
    uint64_t right_more = less | ~(across | more);
    uint64_t right_less = more & across;
    change below = { right_more >> 63, right_less >> 63 };
    right_more = right_more << 1 | above.more;
    right_less = right_less << 1 | above.less;
    self->more = right_less | ~(down | right_more);
    self->less = right_more & down;
    return below;
}

/* Where a point stands in a band's rows. */
typedef struct matches {
    uint64_t bits[BLOCKS];
} matches;

/* One band over all columns. changes: of the row above it, then of its last.
 * The blocks are values of their own, so that they stay in registers. */
static void walk(const points *columns, const matches *of, uint8_t *changes)
{
    block first = { .more = UINT64_MAX };
    block second = first;
    block third = first;
    block fourth = first;

    for (size_t j = 0; j < columns->len; j++) {
        const uint64_t *match = of[columns->from[j]].bits;
        change row = { changes[j] & 1u, changes[j] >> 1 };

        row = step(&first, match[0], row);
        row = step(&second, match[1], row);
        row = step(&third, match[2], row);
        row = step(&fourth, match[3], row);
        changes[j] = (uint8_t)(row.more | row.less << 1);
    }
}

/* rows->len is a multiple of ROWS. */
static int measure(size_t *out, const points *rows, const points *columns,
                   bal_error *err)
{
    size_t most = (size_t)bal_max(largest(rows), largest(columns)) + 1;
    matches *of = calloc(most, sizeof(*of));
    uint8_t *changes = malloc(columns->len + 1);

    if (!of || !changes) {
        free(of);
        free(changes);
        return bal_fail_memory(err, "comparing two texts");
    }
    memset(changes, 1, columns->len); /* above the first row: 0 1 2 3 … */
    for (size_t top = 0; top < rows->len; top += ROWS) {
        const uint32_t *band = rows->from + top;

        for (size_t i = 0; i < ROWS; i++)
            of[band[i]].bits[i / 64] |= UINT64_C(1) << i % 64;
        walk(columns, of, changes);
        for (size_t i = 0; i < ROWS; i++)
            of[band[i]] = (matches){ { 0 } };
    }
    size_t distance = rows->len;
    for (size_t j = 0; j < columns->len; j++)
        distance += (size_t)(changes[j] & 1) - (size_t)(changes[j] >> 1);
    *out = distance;
    free(of);
    free(changes);
    return 0;
}

/* Of texts that differ at both ends. */
static int distance_of(size_t *out, points *a, points *b, bal_error *err)
{
    points *rows = a->len < b->len ? a : b;
    points *columns = a->len < b->len ? b : a;
    size_t front = (ROWS - rows->len % ROWS) % ROWS;

    *out = columns->len;
    if (!rows->len)
        return 0;
    pad(rows, front);
    pad(columns, front);
    return measure(out, rows, columns, err);
}

int bal_similarity(double *out, const char *a, const char *b, bal_error *err)
{
    BAL_LOCAL(points) left = { 0 };
    BAL_LOCAL(points) right = { 0 };
    size_t distance;
    int rc = points_of(&left, a, err);
    if (rc)
        return rc;
    rc = points_of(&right, b, err);
    if (rc)
        return rc;

    size_t longer = (size_t)bal_max(left.len, right.len);
    trim(&left, &right);
    rc = distance_of(&distance, &left, &right, err);
    if (rc)
        return rc;
    *out = longer ? 1 - (double)distance / (double)longer : 1;
    return 0;
}
