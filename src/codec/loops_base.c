/* The loops for any CPU, and the coder that the others must agree with.
 *
 * A state is a number in [LOW, LOW << 16). Putting a symbol of frequency f,
 * whose slots start at s, into it makes it x / f * SLOTS + x % f + s, after its
 * low half went out as a word if it would grow too large; putting k raw bits
 * into it is the same with 2^k slots of frequency 1. Taking things out is the
 * way back, last in, first out, so encoding goes from the end to the start.
 *
 * Lanes are states that take turns: element i is lane i % lanes. A round is an
 * element for each lane: first the tokens of all, then the first raw piece of
 * all, then the next, so that one stream of words serves any width of vectors.
 *
 * x / f is x * ceil(2^(31 + shift) / f) >> 31 + shift, exact for x < 2^31, and
 * that is why states stay below (Granlund and Montgomery, 1994; the form is
 * Giesen's, rans_byte.h). */
#include <endian.h>
#include <string.h>

#include "codec/loops.h"

static inline uint32_t word_at(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

/* x without its low half, which goes out, if `out`. Whether it does is chance,
 * so it is no branch: what is written below *at does not count. */
static inline uint32_t put_word(uint8_t **at, uint32_t x, bool out)
{
    uint16_t word = htole16((uint16_t)x);

    memcpy(*at - 2, &word, sizeof(word));
    *at -= (size_t)out << 1;
    return x >> ((uint32_t)out << 4);
}

/* Bits of raw piece p of k. */
static inline uint32_t piece_bits(uint32_t k, uint32_t p)
{
    uint32_t below = p * BAL_RANS_PIECE;

    k = k > below ? k - below : 0;
    return k < BAL_RANS_PIECE ? k : BAL_RANS_PIECE;
}

static inline uint32_t piece_of(const bal_tile *tile, size_t i, uint32_t p)
{
    uint64_t raw = (uint64_t)tile->high[i] << 32 | tile->raw[i];

    return (uint32_t)(raw >> (p * BAL_RANS_PIECE)) &
           ((1u << BAL_RANS_PIECE) - 1);
}

static inline uint32_t push_piece(uint8_t **at, uint32_t x, uint32_t raw,
                                  uint32_t bits)
{
    x = put_word(at, x, x >> (31 - bits));
    return x << bits | raw;
}

static inline uint32_t push_token(uint8_t **at, uint32_t x, uint64_t code)
{
    uint32_t packed = (uint32_t)code;
    uint32_t freq = packed & 0x1fff;

    x = put_word(at, x, x >> (31 - BAL_RANS_BITS) >= freq);
    uint32_t high = (uint32_t)((uint64_t)x * (code >> 32) >> 32);
    uint32_t quotient = high >> (packed >> 26);
    return x + (packed >> 13 & 0x1fff) + quotient * (BAL_RANS_SLOTS - freq);
}

void bal_rans_push_round(bal_rans_push *self, const bal_tile *tile, size_t from,
                         size_t n)
{
    const bal_rans_codes *codes = self->codes;
    uint8_t *at = self->at;

    for (uint32_t p = self->steps - 1; p-- > 0;) {
        for (size_t i = n; i-- > 0;)
            self->state[i] =
                push_piece(&at, self->state[i], piece_of(tile, from + i, p),
                           piece_bits(tile->bits[from + i], p));
    }
    for (size_t i = n; i-- > 0;) {
        uint32_t symbol = tile->symbol[from + i];
        self->state[i] = push_token(&at, self->state[i], codes->code[symbol]);
    }
    self->at = at;
}

void bal_rans_push_rounds(bal_rans_push *self, const bal_tile *tile, size_t n)
{
    while (n) {
        n -= self->lanes;
        bal_rans_push_round(self, tile, n, self->lanes);
    }
}

/* Without a check, and so without a branch. */
static inline uint32_t refill(const uint8_t **at, uint32_t x)
{
    uint32_t full = x << 16 | word_at(*at);
    uint32_t low = 0 - (uint32_t)(x < BAL_RANS_LOW);

    *at += low & 2;
    return x ^ ((x ^ full) & low);
}

static inline uint32_t take_token(const bal_rans_pull *self, bal_tile *tile,
                                  size_t i, uint32_t x)
{
    size_t table = tile->table[i];
    uint32_t slot =
        self->slots[table << BAL_RANS_BITS | (x & (BAL_RANS_SLOTS - 1))];

    tile->token[i] = (uint8_t)slot;
    tile->raw[i] = 0;
    return ((slot >> 8 & 0xfff) + 1) * (x >> BAL_RANS_BITS) + (slot >> 20);
}

static inline uint32_t take_piece(const bal_rans_pull *self, bal_tile *tile,
                                  size_t i, uint32_t p, uint32_t x)
{
    uint32_t bits = piece_bits(self->bits[tile->token[i]], p);
    uint64_t raw = (uint64_t)(x & ((1u << bits) - 1)) << (p * BAL_RANS_PIECE);

    tile->raw[i] |= (uint32_t)raw;
    if (p > 1)
        tile->high[i] |= (uint32_t)(raw >> 32);
    return x >> bits;
}

static void pull_round(bal_rans_pull *self, bal_tile *tile, size_t from)
{
    const uint8_t *at = self->at;

    for (size_t i = 0; i < self->lanes; i++)
        self->state[i] =
            refill(&at, take_token(self, tile, from + i, self->state[i]));
    for (uint32_t p = 0; p + 1 < self->steps; p++) {
        for (size_t i = 0; i < self->lanes; i++)
            self->state[i] = refill(
                &at, take_piece(self, tile, from + i, p, self->state[i]));
    }
    self->at = at;
}

/* As many bytes as a round may look at. */
static ptrdiff_t most_of(const bal_rans_pull *self)
{
    return 2 * (ptrdiff_t)(self->lanes * self->steps) + 2;
}

size_t bal_rans_pull_rounds(bal_rans_pull *self, bal_tile *tile, size_t n)
{
    size_t at = 0;

    if (self->steps > 3)
        memset(tile->high, 0, n * sizeof(*tile->high));
    for (; at < n && self->end - self->at >= most_of(self); at += self->lanes)
        pull_round(self, tile, at);
    return at;
}

/* With checks. */
static bool refill_checked(bal_rans_pull *self, size_t lane, uint32_t x)
{
    if (x < BAL_RANS_LOW) {
        if (self->at == self->end)
            return false;
        x = x << 16 | word_at(self->at);
        self->at += 2;
    }
    self->state[lane] = x;
    return true;
}

bool bal_rans_pull_round(bal_rans_pull *self, bal_tile *tile, size_t at,
                         size_t n)
{
    bool good = true;

    for (size_t i = 0; i < n; i++) {
        tile->high[at + i] = 0;
        good = good &&
               refill_checked(self, i,
                              take_token(self, tile, at + i, self->state[i]));
    }
    for (uint32_t p = 0; p + 1 < self->steps; p++) {
        for (size_t i = 0; i < n && good; i++)
            good = refill_checked(
                self, i, take_piece(self, tile, at + i, p, self->state[i]));
    }
    return good;
}

/* ---- elements of two bytes, from end to end ----------------------------- */

enum { SUB = 3 }; /* bits below the highest that a token of such has */

static inline uint32_t two_at(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof(value));
    return le16toh(value);
}

static inline uint32_t two_context(uint32_t near, const bal_anchor *anchor)
{
    uint32_t exponent = near >> anchor->shift & anchor->mask;
    uint32_t at = exponent > anchor->low ? exponent - anchor->low : 0;

    return at < BAL_RANS_TABLES ? at : BAL_RANS_TABLES - 1;
}

/* Raw bits of a distance. */
static inline uint32_t two_raw(uint32_t far)
{
    return 31 - SUB - (uint32_t)__builtin_clz(far | 1u << SUB);
}

static void take_two(bal_tile *restrict tile, const bal_anchor *anchor,
                     size_t from, size_t n)
{
    const bal_anchor in = *anchor;
    const uint8_t *base = (const uint8_t *)in.base + 2 * from;
    const uint8_t *tuned = (const uint8_t *)in.tuned + 2 * from;

    for (size_t i = 0; i < n; i++) {
        uint32_t near = two_at(base + 2 * i);
        uint32_t d = two_at(tuned + 2 * i) - near;
        uint32_t minus = d >> 15 & 1;
        uint32_t far = ((d ^ (0 - minus)) + minus) & 0xffff;
        uint32_t k = two_raw(far);
        uint32_t m = (k << SUB) + (far >> k);
        tile->symbol[i] =
            (uint16_t)(two_context(near, &in) << 8 | m << 1 | minus);
        tile->bits[i] = (uint8_t)k;
        tile->raw[i] = far & ((1u << k) - 1);
    }
}

/* What is asked again for each element, looked up: there are few answers. */
typedef struct two_rows {
    uint32_t table[512]; /* first slot, by the highest 9 bits of the base */
    struct {
        uint16_t least; /* distance with raw bits of 0 */
        uint16_t mask;  /* of its raw bits */
        uint16_t raw;   /* how many */
        uint16_t flip;  /* all ones if they count down: least is one more */
    } token[BAL_RANS_TOKENS];
} two_rows;

static void set_rows(two_rows *self, const bal_anchor *anchor)
{
    for (uint32_t i = 0; i < 512; i++) {
        self->table[i] = two_context(i << 7, anchor) << BAL_RANS_BITS;
    }
    for (uint32_t i = 0; i < BAL_RANS_TOKENS; i++) {
        uint32_t m = i >> 1;
        uint32_t k = m >> SUB > 1 ? (m >> SUB) - 1 : 0;
        uint32_t least = (m - (k << SUB)) << k;
        self->token[i].least = (uint16_t)(i & 1 ? 1 - least : least);
        self->token[i].mask = (uint16_t)((1u << k) - 1);
        self->token[i].raw = (uint16_t)k;
        self->token[i].flip = i & 1 ? 0xffff : 0;
    }
}

/* States and tokens are the caller's own arrays, which nothing else is in: so
 * they stay where they are from one element to the next. */
static inline const uint8_t *
two_tokens(uint32_t *restrict x, uint8_t *restrict token, const uint8_t *words,
           const uint32_t *slots, const two_rows *rows, const uint8_t *base,
           size_t lanes)
{
    for (size_t i = 0; i < lanes; i++) {
        uint32_t table = rows->table[two_at(base + 2 * i) >> 7];
        uint32_t slot = slots[table | (x[i] & (BAL_RANS_SLOTS - 1))];
        uint32_t freq = (slot >> 8 & 0xfff) + 1;
        token[i] = (uint8_t)slot;
        x[i] = refill(&words, freq * (x[i] >> BAL_RANS_BITS) + (slot >> 20));
    }
    return words;
}

static inline const uint8_t *
two_join(uint32_t *restrict x, const uint8_t *restrict token,
         const uint8_t *words, uint8_t *restrict to, const two_rows *rows,
         const uint8_t *base, size_t lanes)
{
    for (size_t i = 0; i < lanes; i++) {
        uint32_t raw = x[i] & rows->token[token[i]].mask;
        uint32_t far =
            (raw ^ rows->token[token[i]].flip) + rows->token[token[i]].least;
        uint16_t two = htole16((uint16_t)(two_at(base + 2 * i) + far));
        x[i] = refill(&words, x[i] >> rows->token[token[i]].raw);
        memcpy(to + 2 * i, &two, sizeof(two));
    }
    return words;
}

static size_t pull_two(bal_rans_pull *self, uint8_t *to,
                       const bal_anchor *anchor, size_t from, size_t n)
{
    const uint8_t *base = (const uint8_t *)anchor->base + 2 * from;
    const uint8_t *words = self->at;
    const size_t lanes = self->lanes;
    uint32_t x[BAL_RANS_LANES];
    uint8_t token[BAL_RANS_LANES];
    two_rows rows;
    size_t at = 0;

    set_rows(&rows, anchor);
    memcpy(x, self->state, sizeof(x));
    for (; at < n && self->end - words >= most_of(self); at += lanes) {
        words = two_tokens(x, token, words, self->slots, &rows, base + 2 * at,
                           lanes);
        words =
            two_join(x, token, words, to + 2 * at, &rows, base + 2 * at, lanes);
    }
    memcpy(self->state, x, sizeof(x));
    self->at = words;
    return at;
}

/* No vectors whose lanes shift by different counts. */
#define RAW_BITS raw_bits_by_count
#define TABLE    bal_loops_base
#define ISA      "base"
#define TAKE_TWO take_two
#define PAIRS    pairs
#define TRIM     trim
#define PUSH     bal_rans_push_rounds
#define PULL     bal_rans_pull_rounds
#define PULL_TWO pull_two
#include "codec/loops.inc"
