/* The loops for x86-64-v3 (AVX2); the build sets -march. Vectors of eight
 * lanes. */
#include <immintrin.h>
#include <string.h>

#include "codec/loops.h"

enum { VECTORS = BAL_RANS_LANES / 8, FEWER = BAL_RANS_WIDE / 8 };

/* Four bits a lane, as lanes. */
static inline __m256i lanes_of(uint32_t four_bits)
{
    const __m256i shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);

    return _mm256_srlv_epi32(_mm256_set1_epi32((int)four_bits), shift);
}

static inline __m256i refill(__m256i x, const uint8_t **at)
{
    const __m256i least = _mm256_set1_epi32(BAL_RANS_LOW);
    __m256i short_of = _mm256_cmpgt_epi32(least, x);
    uint32_t mask = (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(short_of));
    __m128i eight = _mm_loadu_si128((const void *)*at);
    __m256i words = _mm256_permutevar8x32_epi32(_mm256_cvtepu16_epi32(eight),
                                                lanes_of(bal_spread_by[mask]));

    *at += 2 * (ptrdiff_t)_mm_popcnt_u32(mask);
    words = _mm256_or_si256(_mm256_slli_epi32(x, 16), words);
    return _mm256_blendv_epi8(x, words, short_of);
}

static inline __m256i bytes_at(const uint8_t *from)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)from));
}

static inline void put_bytes(uint8_t *to, __m256i values)
{
    const __m256i low = _mm256_set1_epi32(0x0c080400);
    __m256i packed = _mm256_shuffle_epi8(values, low);
    uint32_t first = (uint32_t)_mm256_extract_epi32(packed, 0);
    uint32_t second = (uint32_t)_mm256_extract_epi32(packed, 4);

    _mm_storel_epi64((void *)to, _mm_set_epi32(0, 0, (int)second, (int)first));
}

/* Tokens of eight states, of tables that begin at slot `table`. */
static inline __m256i pull_slots(__m256i *x, const uint32_t *slots,
                                 __m256i table)
{
    const __m256i inside = _mm256_set1_epi32(BAL_RANS_SLOTS - 1);
    __m256i index = _mm256_or_si256(table, _mm256_and_si256(*x, inside));
    __m256i slot = _mm256_i32gather_epi32((const int *)slots, index, 4);
    __m256i freq = _mm256_and_si256(_mm256_srli_epi32(slot, 8), inside);
    freq = _mm256_add_epi32(freq, _mm256_set1_epi32(1));
    __m256i more =
        _mm256_mullo_epi32(freq, _mm256_srli_epi32(*x, BAL_RANS_BITS));
    *x = _mm256_add_epi32(more, _mm256_srli_epi32(slot, 20));
    return _mm256_and_si256(slot, _mm256_set1_epi32(0xff));
}

/* The next k bits, up to 16, of each state. */
static inline __m256i pull_bits(__m256i *x, __m256i k)
{
    const __m256i ones = _mm256_set1_epi32(-1);
    __m256i raw = _mm256_andnot_si256(_mm256_sllv_epi32(ones, k), *x);

    *x = _mm256_srlv_epi32(*x, k);
    return raw;
}

static inline __m256i bits_behind(__m256i token, const bal_rans_pull *self)
{
    const __m256i one = _mm256_set1_epi32(1);
    __m256i k = _mm256_srl_epi32(token, _mm_cvtsi32_si128((int)self->rule));

    if (!self->rule)
        return _mm256_i32gather_epi32((const int *)self->bits, token, 4);
    return _mm256_sub_epi32(_mm256_max_epu32(k, one), one);
}

static inline __attribute__((always_inline)) void
pull_raw(__m256i *x, bal_rans_pull *self, bal_tile *tile, size_t at,
         size_t vectors)
{
    const __m256i piece = _mm256_set1_epi32(BAL_RANS_PIECE);
    __m256i k[VECTORS];
    __m256i raw[VECTORS];

    for (size_t v = 0; v < vectors; v++) {
        k[v] = bits_behind(bytes_at(tile->token + at + 8 * v), self);
        raw[v] = pull_bits(&x[v], _mm256_min_epu32(k[v], piece));
        x[v] = refill(x[v], &self->at);
    }
    for (size_t v = 0; v < vectors && self->steps > 2; v++) {
        __m256i rest = _mm256_sub_epi32(_mm256_max_epu32(k[v], piece), piece);
        __m256i more = pull_bits(&x[v], rest);
        raw[v] =
            _mm256_or_si256(raw[v], _mm256_slli_epi32(more, BAL_RANS_PIECE));
        x[v] = refill(x[v], &self->at);
    }
    for (size_t v = 0; v < vectors; v++)
        _mm256_storeu_si256((void *)(tile->raw + at + 8 * v), raw[v]);
}

static inline __attribute__((always_inline)) size_t
pull_by(bal_rans_pull *self, bal_tile *tile, size_t n, size_t vectors)
{
    const size_t lanes = 8 * vectors;
    const ptrdiff_t most = (ptrdiff_t)(2 * lanes * self->steps);
    __m256i x[VECTORS];
    size_t at = 0;

    for (size_t v = 0; v < vectors; v++)
        x[v] = _mm256_loadu_si256((const void *)(self->state + 8 * v));
    for (; at < n && self->end - self->at >= most; at += lanes) {
        for (size_t v = 0; v < vectors; v++) {
            __m256i table = bytes_at(tile->table + at + 8 * v);
            table = _mm256_slli_epi32(table, BAL_RANS_BITS);
            __m256i token = pull_slots(&x[v], self->slots, table);
            put_bytes(tile->token + at + 8 * v, token);
            x[v] = refill(x[v], &self->at);
        }
        if (self->steps > 1)
            pull_raw(x, self, tile, at, vectors);
    }
    for (size_t v = 0; v < vectors; v++)
        _mm256_storeu_si256((void *)(self->state + 8 * v), x[v]);
    return at;
}

static size_t pull_v3(bal_rans_pull *self, bal_tile *tile, size_t n)
{
    if (self->steps > 3)
        return bal_rans_pull_rounds(self, tile, n);
    if (self->lanes == BAL_RANS_WIDE)
        return pull_by(self, tile, n, FEWER);
    return pull_by(self, tile, n, VECTORS);
}

/* ---- elements of two bytes, from end to end ----------------------------- */

/* Of a token of such: bits below the highest; steps, whatever tokens there are,
 * since the last one has fewer raw bits than a piece. */
enum { SUB = 3, TWO_STEPS = 2, PAGE = 4096 };

static inline __m128i two_at(const uint8_t *from)
{
    return _mm_loadu_si128((const void *)from);
}

static inline __m128i two_contexts(__m128i near, const bal_anchor *anchor)
{
    const __m128i mask = _mm_set1_epi16((short)anchor->mask);
    const __m128i low = _mm_set1_epi16((short)anchor->low);
    const __m128i last = _mm_set1_epi16(BAL_RANS_TABLES - 1);
    const __m128i shift = _mm_cvtsi32_si128((int)anchor->shift);
    __m128i at = _mm_and_si128(_mm_srl_epi16(near, shift), mask);

    return _mm_min_epu16(_mm_subs_epu16(at, low), last);
}

/* Where the tables of eight elements begin. */
static inline __m256i two_tables(const uint8_t *base, const bal_anchor *anchor)
{
    __m128i at = two_contexts(two_at(base), anchor);

    return _mm256_cvtepu16_epi32(_mm_slli_epi16(at, BAL_RANS_BITS));
}

/* The tuned elements, and what is left of the states; raw bits are behind each
 * token. */
static inline void two_join(uint8_t *to, __m256i *x, __m256i token,
                            const uint8_t *base)
{
    const __m256i one = _mm256_set1_epi32(1);
    const __m256i low = _mm256_set1_epi64x(0x0d0c090805040100);
    __m256i near = _mm256_cvtepu16_epi32(two_at(base));
    __m256i minus =
        _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_and_si256(token, one));
    __m256i m = _mm256_srli_epi32(token, 1);
    __m256i k = _mm256_srli_epi32(token, SUB + 1);
    k = _mm256_subs_epu16(k, one);
    m = _mm256_sub_epi32(m, _mm256_slli_epi32(k, SUB));
    __m256i far = _mm256_or_si256(_mm256_sllv_epi32(m, k), pull_bits(x, k));
    far = _mm256_sub_epi32(_mm256_xor_si256(far, minus), minus);
    __m256i sum = _mm256_shuffle_epi8(_mm256_add_epi32(near, far), low);
    sum = _mm256_permute4x64_epi64(sum, 0x08);
    _mm_storeu_si128((void *)to, _mm256_castsi256_si128(sum));
}

static inline __attribute__((always_inline)) size_t
two_by(bal_rans_pull *self, uint8_t *to, const bal_anchor *anchor, size_t from,
       size_t n, size_t vectors)
{
    const size_t lanes = 8 * vectors;
    const ptrdiff_t most = (ptrdiff_t)(2 * lanes * TWO_STEPS);
    const bal_anchor in = *anchor;
    const uint32_t *slots = self->slots;
    const uint8_t *base = (const uint8_t *)in.base + 2 * from;
    const uint8_t *words = self->at;
    __m256i x[VECTORS];
    __m256i token[VECTORS];
    size_t at = 0;

    for (size_t v = 0; v < vectors; v++)
        x[v] = _mm256_loadu_si256((const void *)(self->state + 8 * v));
    for (; at < n && self->end - words >= most; at += lanes) {
        for (size_t v = 0; v < vectors; v++) {
            __m256i tables = two_tables(base + 2 * at + 16 * v, &in);
            token[v] = pull_slots(&x[v], slots, tables);
            x[v] = refill(x[v], &words);
        }
        for (size_t v = 0; v < vectors; v++) {
            two_join(to + 2 * at + 16 * v, &x[v], token[v],
                     base + 2 * at + 16 * v);
            x[v] = refill(x[v], &words);
        }
    }
    for (size_t v = 0; v < vectors; v++)
        _mm256_storeu_si256((void *)(self->state + 8 * v), x[v]);
    self->at = words;
    return at;
}

static size_t pull_two_v3(bal_rans_pull *self, uint8_t *to,
                          const bal_anchor *anchor, size_t from, size_t n)
{
    if (self->lanes == BAL_RANS_WIDE)
        return two_by(self, to, anchor, from, n, FEWER);
    return two_by(self, to, anchor, from, n, VECTORS);
}

/* m of eight distances, and their raw bits. Their length is the exponent of a
 * float, which holds each of them exactly. */
static inline __m256i two_magnitudes(uint32_t *raw, __m128i distances)
{
    const __m256i ones = _mm256_set1_epi32(-1);
    __m256i far = _mm256_cvtepu16_epi32(distances);
    __m256i top = _mm256_or_si256(far, _mm256_set1_epi32(1 << SUB));
    __m256i k = _mm256_castps_si256(_mm256_cvtepi32_ps(top));
    k = _mm256_sub_epi32(_mm256_srli_epi32(k, 23),
                         _mm256_set1_epi32(127 + SUB));
    __m256i m = _mm256_srlv_epi32(far, k);

    far = _mm256_andnot_si256(_mm256_sllv_epi32(ones, k), far);
    _mm256_storeu_si256((void *)raw, far);
    return _mm256_add_epi32(m, _mm256_slli_epi32(k, SUB));
}

static inline void two_apart(bal_tile *tile, size_t at, __m128i near,
                             __m128i tuned, __m128i table)
{
    const __m128i one = _mm_set1_epi16(1);
    __m128i d = _mm_sub_epi16(tuned, near);
    __m128i minus = _mm_srli_epi16(d, 15);
    __m256i wide = two_magnitudes(tile->raw + at, _mm_abs_epi16(d));
    __m128i m = _mm_packus_epi32(_mm256_castsi256_si128(wide),
                                 _mm256_extracti128_si256(wide, 1));
    __m128i k = _mm_subs_epu16(_mm_srli_epi16(m, SUB), one);
    __m128i token = _mm_or_si128(_mm_slli_epi16(m, 1), minus);

    token = _mm_or_si128(token, _mm_slli_epi16(table, 8));
    _mm_storeu_si128((void *)(tile->symbol + at), token);
    _mm_storel_epi64((void *)(tile->bits + at), _mm_packus_epi16(k, k));
}

/* A tile is a page, and what looks ahead by itself stops where a page does.
 * Tiles are counted forwards and coded backwards. */
static inline void fetch_two(const uint8_t *from)
{
    _mm_prefetch((const char *)((uintptr_t)from + PAGE), _MM_HINT_T0);
    _mm_prefetch((const char *)((uintptr_t)from - PAGE), _MM_HINT_T0);
}

/* What is behind the last eight is taken apart from a copy. */
static void take_two_v3(bal_tile *tile, const bal_anchor *anchor, size_t from,
                        size_t n)
{
    const bal_anchor in = *anchor;
    const uint8_t *base = (const uint8_t *)in.base + 2 * from;
    const uint8_t *tuned = (const uint8_t *)in.tuned + 2 * from;
    uint8_t rest[2][16] = { { 0 } };
    size_t at = 0;

    for (; at + 8 <= n; at += 8) {
        fetch_two(base + 2 * at);
        fetch_two(tuned + 2 * at);
        two_apart(tile, at, two_at(base + 2 * at), two_at(tuned + 2 * at),
                  two_contexts(two_at(base + 2 * at), &in));
    }
    if (at == n)
        return;
    memcpy(rest[0], base + 2 * at, 2 * (n - at));
    memcpy(rest[1], tuned + 2 * at, 2 * (n - at));
    two_apart(tile, at, two_at(rest[0]), two_at(rest[1]),
              two_contexts(two_at(rest[0]), &in));
}

/* ---- push --------------------------------------------------------------- */

/* The low halves of the lanes of out go below *at, the last lane's last; what
 * comes before them does not count. */
static inline __m256i put_words(__m256i x, __m256i out, uint8_t **at)
{
    uint32_t mask = (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(out));
    uint32_t count = (uint32_t)_mm_popcnt_u32(mask);
    __m256i order = lanes_of(bal_squeeze_by[mask]);
    __m256i down = _mm256_and_si256(out, _mm256_set1_epi32(16));
    __m256i words = _mm256_permutevar8x32_epi32(x, order);
    words = _mm256_and_si256(words, _mm256_set1_epi32(0xffff));
    __m128i eight = _mm_packus_epi32(_mm256_castsi256_si128(words),
                                     _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((void *)(*at - 16), eight);
    *at -= (size_t)2 * count;
    return _mm256_srlv_epi32(x, down);
}

static inline __m256i push_bits(__m256i x, __m256i raw, __m256i k, uint8_t **at)
{
    __m256i left = _mm256_sub_epi32(_mm256_set1_epi32(31), k);
    __m256i over = _mm256_srlv_epi32(x, left);

    x = put_words(x, _mm256_cmpgt_epi32(over, _mm256_setzero_si256()), at);
    return _mm256_or_si256(_mm256_sllv_epi32(x, k), raw);
}

/* Codes come as those of even lanes and of odd ones, which is how products of
 * 32 bits do, too. */
static inline __m256i push_tokens(__m256i x, const bal_rans_codes *codes,
                                  const uint16_t *symbol, uint8_t **at)
{
    const __m256i thirteen = _mm256_set1_epi32(0x1fff);
    __m256i index =
        _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)symbol));
    __m256i odd = _mm256_srli_epi64(index, 32);
    odd = _mm256_i64gather_epi64((const void *)codes->code, odd, 8);
    __m256i even = _mm256_and_si256(index, _mm256_set1_epi64x(0xffff));
    even = _mm256_i64gather_epi64((const void *)codes->code, even, 8);
    __m256i packed = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
    __m256i freq = _mm256_and_si256(packed, thirteen);
    __m256i bias = _mm256_and_si256(_mm256_srli_epi32(packed, 13), thirteen);
    __m256i fits =
        _mm256_cmpgt_epi32(freq, _mm256_srli_epi32(x, 31 - BAL_RANS_BITS));

    x = put_words(x, _mm256_xor_si256(fits, _mm256_set1_epi32(-1)), at);
    even = _mm256_mul_epu32(x, _mm256_srli_epi64(even, 32));
    odd =
        _mm256_mul_epu32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(odd, 32));
    __m256i quotient =
        _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    quotient = _mm256_srlv_epi32(quotient, _mm256_srli_epi32(packed, 26));
    __m256i times = _mm256_sub_epi32(_mm256_set1_epi32(BAL_RANS_SLOTS), freq);
    x = _mm256_add_epi32(x, bias);
    return _mm256_add_epi32(x, _mm256_mullo_epi32(quotient, times));
}

/* Not 0 if one of a round's lengths is more than most, which are bytes below
 * 128. */
static inline __attribute__((always_inline)) int
longer_than(const uint8_t *bits, char most, size_t vectors)
{
    __m256i longest = _mm256_setzero_si256();

    for (size_t at = 0; at < 8 * vectors; at += 32)
        longest = _mm256_max_epi8(
            longest, _mm256_loadu_si256((const void *)(bits + at)));
    return _mm256_movemask_epi8(
        _mm256_cmpgt_epi8(longest, _mm256_set1_epi8(most)));
}

static inline __attribute__((always_inline)) void
push_raw(__m256i *x, uint8_t **to, const bal_tile *tile, size_t at,
         unsigned steps, size_t vectors)
{
    const __m256i piece = _mm256_set1_epi32(BAL_RANS_PIECE);
    const __m256i low = _mm256_set1_epi32((1 << BAL_RANS_PIECE) - 1);
    int over = longer_than(tile->bits + at, BAL_RANS_PIECE, vectors);

    for (size_t v = vectors; v-- > 0 && steps > 2 && over;) {
        __m256i k = bytes_at(tile->bits + at + 8 * v);
        __m256i raw =
            _mm256_loadu_si256((const void *)(tile->raw + at + 8 * v));
        __m256i rest = _mm256_sub_epi32(_mm256_max_epu32(k, piece), piece);
        x[v] =
            push_bits(x[v], _mm256_srli_epi32(raw, BAL_RANS_PIECE), rest, to);
    }
    for (size_t v = vectors; v-- > 0;) {
        __m256i k = bytes_at(tile->bits + at + 8 * v);
        __m256i raw =
            _mm256_loadu_si256((const void *)(tile->raw + at + 8 * v));
        x[v] = push_bits(x[v], _mm256_and_si256(raw, low),
                         _mm256_min_epu32(k, piece), to);
    }
}

static inline __attribute__((always_inline)) void
push_by(bal_rans_push *self, const bal_tile *tile, size_t n, size_t vectors)
{
    const size_t lanes = 8 * vectors;
    uint8_t *to = self->at;
    __m256i x[VECTORS];

    for (size_t v = 0; v < vectors; v++)
        x[v] = _mm256_loadu_si256((const void *)(self->state + 8 * v));
    while (n) {
        n -= lanes;
        if (self->steps > 1)
            push_raw(x, &to, tile, n, self->steps, vectors);
        for (size_t v = vectors; v-- > 0;)
            x[v] =
                push_tokens(x[v], self->codes, tile->symbol + n + 8 * v, &to);
    }
    for (size_t v = 0; v < vectors; v++)
        _mm256_storeu_si256((void *)(self->state + 8 * v), x[v]);
    self->at = to;
}

static void push_v3(bal_rans_push *self, const bal_tile *tile, size_t n)
{
    if (self->steps > 3)
        bal_rans_push_rounds(self, tile, n);
    else if (self->lanes == BAL_RANS_WIDE)
        push_by(self, tile, n, FEWER);
    else
        push_by(self, tile, n, VECTORS);
}

#define RAW_BITS raw_bits_by_float
#define TABLE    bal_loops_v3
#define ISA      "v3"
#define TAKE_TWO take_two_v3
#define PAIRS    pairs
#define TRIM     trim
#define PUSH     push_v3
#define PULL     pull_v3
#define PULL_TWO pull_two_v3
#include "codec/loops.inc"
