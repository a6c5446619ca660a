/* The loops for x86-64-v4 (AVX-512); the build sets -march. Vectors of
 * sixteen lanes. */
#include <immintrin.h>
#include <string.h>

#include "codec/loops.h"

enum { VECTORS = BAL_RANS_LANES / 16, FEWER = BAL_RANS_WIDE / 16 };

static inline __m512i bytes_at(const uint8_t *from)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)from));
}

/* ---- pull --------------------------------------------------------------- */

static inline __m512i refill(__m512i x, const uint8_t **at)
{
    __mmask16 low = _mm512_cmplt_epu32_mask(x, _mm512_set1_epi32(BAL_RANS_LOW));
    __m256i next = _mm256_loadu_si256((const void *)*at);
    __m512i words = _mm512_maskz_expand_epi32(low, _mm512_cvtepu16_epi32(next));

    *at += 2 * (ptrdiff_t)_mm_popcnt_u32(low);
    return _mm512_mask_or_epi32(x, low, _mm512_slli_epi32(x, 16), words);
}

/* Tokens, of tables that begin at slot `table`. */
static inline __m512i pull_slots(__m512i *x, const uint32_t *slots,
                                 __m512i table)
{
    const __m512i inside = _mm512_set1_epi32(BAL_RANS_SLOTS - 1);
    __m512i index = _mm512_or_si512(table, _mm512_and_si512(*x, inside));
    __m512i slot = _mm512_i32gather_epi32(index, slots, 4);
    __m512i freq = _mm512_and_si512(_mm512_srli_epi32(slot, 8), inside);
    freq = _mm512_add_epi32(freq, _mm512_set1_epi32(1));
    __m512i more =
        _mm512_mullo_epi32(freq, _mm512_srli_epi32(*x, BAL_RANS_BITS));
    *x = _mm512_add_epi32(more, _mm512_srli_epi32(slot, 20));
    return _mm512_and_si512(slot, _mm512_set1_epi32(0xff));
}

static inline __m512i pull_bits(__m512i *x, __m512i k)
{
    const __m512i ones = _mm512_set1_epi32(-1);
    __m512i raw = _mm512_andnot_si512(_mm512_sllv_epi32(ones, k), *x);

    *x = _mm512_srlv_epi32(*x, k);
    return raw;
}

static inline __m512i bits_behind(__m512i token, const bal_rans_pull *self)
{
    const __m512i one = _mm512_set1_epi32(1);
    __m512i k = _mm512_srl_epi32(token, _mm_cvtsi32_si128((int)self->rule));

    if (!self->rule)
        return _mm512_i32gather_epi32(token, self->bits, 4);
    return _mm512_sub_epi32(_mm512_max_epu32(k, one), one);
}

static inline __attribute__((always_inline)) void
pull_raw(__m512i *x, const uint8_t **from, const bal_rans_pull *self,
         uint32_t *to, const __m512i *token, size_t vectors)
{
    const __m512i piece = _mm512_set1_epi32(BAL_RANS_PIECE);
    __m512i k[VECTORS];
    __m512i raw[VECTORS];

    for (size_t v = 0; v < vectors; v++) {
        k[v] = bits_behind(token[v], self);
        raw[v] = pull_bits(&x[v], _mm512_min_epu32(k[v], piece));
        x[v] = refill(x[v], from);
    }
    for (size_t v = 0; v < vectors && self->steps > 2; v++) {
        __m512i rest = _mm512_sub_epi32(_mm512_max_epu32(k[v], piece), piece);
        __m512i more = pull_bits(&x[v], rest);
        raw[v] =
            _mm512_or_si512(raw[v], _mm512_slli_epi32(more, BAL_RANS_PIECE));
        x[v] = refill(x[v], from);
    }
    for (size_t v = 0; v < vectors; v++)
        _mm512_storeu_si512(to + 16 * v, raw[v]);
}

static inline __attribute__((always_inline)) size_t
pull_by(bal_rans_pull *self, bal_tile *tile, size_t n, size_t vectors)
{
    const size_t lanes = 16 * vectors;
    const ptrdiff_t most = (ptrdiff_t)(2 * lanes * self->steps);
    const uint8_t *from = self->at;
    __m512i x[VECTORS];
    __m512i token[VECTORS];
    size_t at = 0;

    for (size_t v = 0; v < vectors; v++)
        x[v] = _mm512_loadu_si512(self->state + 16 * v);
    for (; at < n && self->end - from >= most; at += lanes) {
        for (size_t v = 0; v < vectors; v++) {
            __m512i table = bytes_at(tile->table + at + 16 * v);
            table = _mm512_slli_epi32(table, BAL_RANS_BITS);
            token[v] = pull_slots(&x[v], self->slots, table);
            _mm_storeu_si128((void *)(tile->token + at + 16 * v),
                             _mm512_cvtepi32_epi8(token[v]));
            x[v] = refill(x[v], &from);
        }
        if (self->steps > 1)
            pull_raw(x, &from, self, tile->raw + at, token, vectors);
    }
    for (size_t v = 0; v < vectors; v++)
        _mm512_storeu_si512(self->state + 16 * v, x[v]);
    self->at = from;
    return at;
}

static size_t pull_v4(bal_rans_pull *self, bal_tile *tile, size_t n)
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

static inline __m256i two_at(const uint8_t *from)
{
    return _mm256_loadu_si256((const void *)from);
}

static inline __m256i two_contexts(__m256i near, const bal_anchor *anchor)
{
    const __m256i mask = _mm256_set1_epi16((short)anchor->mask);
    const __m256i low = _mm256_set1_epi16((short)anchor->low);
    const __m256i last = _mm256_set1_epi16(BAL_RANS_TABLES - 1);
    const __m128i shift = _mm_cvtsi32_si128((int)anchor->shift);
    __m256i at = _mm256_and_si256(_mm256_srl_epi16(near, shift), mask);

    return _mm256_min_epu16(_mm256_subs_epu16(at, low), last);
}

/* Where the tables of sixteen elements begin. */
static inline __m512i two_tables(const uint8_t *base, const bal_anchor *anchor)
{
    __m256i at = two_contexts(two_at(base), anchor);

    return _mm512_cvtepu16_epi32(_mm256_slli_epi16(at, BAL_RANS_BITS));
}

/* The tuned elements, and what is left of the states; k raw bits are behind
 * each token. */
static inline void two_join(uint8_t *to, __m512i *x, __m512i token,
                            const uint8_t *base)
{
    const __m512i one = _mm512_set1_epi32(1);
    __m512i near = _mm512_cvtepu16_epi32(two_at(base));
    __mmask16 minus = _mm512_test_epi32_mask(token, one);
    __m512i m = _mm512_srli_epi32(token, 1);
    __m512i k = _mm512_srli_epi32(token, SUB + 1);
    k = _mm512_subs_epu16(k, one);
    m = _mm512_sub_epi32(m, _mm512_slli_epi32(k, SUB));
    __m512i far = _mm512_or_si512(_mm512_sllv_epi32(m, k), pull_bits(x, k));
    __m512i sum = _mm512_add_epi32(near, far);
    sum = _mm512_mask_sub_epi32(sum, minus, near, far);
    _mm256_storeu_si256((void *)to, _mm512_cvtepi32_epi16(sum));
}

static inline __attribute__((always_inline)) size_t
two_by(bal_rans_pull *self, uint8_t *to, const bal_anchor *anchor, size_t from,
       size_t n, size_t vectors)
{
    const size_t lanes = 16 * vectors;
    const ptrdiff_t most = (ptrdiff_t)(2 * lanes * TWO_STEPS);
    const bal_anchor in = *anchor;
    const uint32_t *slots = self->slots;
    const uint8_t *base = (const uint8_t *)in.base + 2 * from;
    const uint8_t *words = self->at;
    __m512i x[VECTORS];
    __m512i token[VECTORS];
    size_t at = 0;

    for (size_t v = 0; v < vectors; v++)
        x[v] = _mm512_loadu_si512(self->state + 16 * v);
    for (; at < n && self->end - words >= most; at += lanes) {
        for (size_t v = 0; v < vectors; v++) {
            __m512i tables = two_tables(base + 2 * at + 32 * v, &in);
            token[v] = pull_slots(&x[v], slots, tables);
            x[v] = refill(x[v], &words);
        }
        for (size_t v = 0; v < vectors; v++) {
            two_join(to + 2 * at + 32 * v, &x[v], token[v],
                     base + 2 * at + 32 * v);
            x[v] = refill(x[v], &words);
        }
    }
    for (size_t v = 0; v < vectors; v++)
        _mm512_storeu_si512(self->state + 16 * v, x[v]);
    self->at = words;
    return at;
}

static size_t pull_two_v4(bal_rans_pull *self, uint8_t *to,
                          const bal_anchor *anchor, size_t from, size_t n)
{
    if (self->lanes == BAL_RANS_WIDE)
        return two_by(self, to, anchor, from, n, FEWER);
    return two_by(self, to, anchor, from, n, VECTORS);
}

/* m of sixteen distances, and their raw bits. */
static inline __m256i two_magnitudes(uint32_t *raw, __m512i far)
{
    const __m512i ones = _mm512_set1_epi32(-1);
    __m512i top = _mm512_or_si512(far, _mm512_set1_epi32(1 << SUB));
    __m512i k =
        _mm512_sub_epi32(_mm512_set1_epi32(31 - SUB), _mm512_lzcnt_epi32(top));
    __m512i m = _mm512_srlv_epi32(far, k);

    far = _mm512_andnot_si512(_mm512_sllv_epi32(ones, k), far);
    _mm512_storeu_si512(raw, far);
    m = _mm512_add_epi32(m, _mm512_slli_epi32(k, SUB));
    return _mm512_cvtepi32_epi16(m);
}

static inline void two_apart(bal_tile *tile, size_t at, __m256i near,
                             __m256i tuned, __m256i table)
{
    const __m256i one = _mm256_set1_epi16(1);
    __m256i d = _mm256_sub_epi16(tuned, near);
    __m256i minus = _mm256_srli_epi16(d, 15);
    __m512i far = _mm512_cvtepu16_epi32(_mm256_abs_epi16(d));
    __m256i m = two_magnitudes(tile->raw + at, far);
    __m256i k = _mm256_subs_epu16(_mm256_srli_epi16(m, SUB), one);
    __m256i token = _mm256_or_si256(_mm256_slli_epi16(m, 1), minus);

    token = _mm256_or_si256(token, _mm256_slli_epi16(table, 8));
    _mm256_storeu_si256((void *)(tile->symbol + at), token);
    _mm_storeu_si128((void *)(tile->bits + at), _mm256_cvtepi16_epi8(k));
}

/* A tile is a page, and what looks ahead by itself stops where a page does.
 * Tiles are counted forwards and coded backwards. */
static inline void fetch_two(const uint8_t *from)
{
    _mm_prefetch((const char *)((uintptr_t)from + PAGE), _MM_HINT_T0);
    _mm_prefetch((const char *)((uintptr_t)from - PAGE), _MM_HINT_T0);
}

/* What is behind the last sixteen is taken apart from a copy. */
static void take_two_v4(bal_tile *tile, const bal_anchor *anchor, size_t from,
                        size_t n)
{
    const bal_anchor in = *anchor;
    const uint8_t *base = (const uint8_t *)in.base + 2 * from;
    const uint8_t *tuned = (const uint8_t *)in.tuned + 2 * from;
    uint8_t rest[2][32] = { { 0 } };
    size_t at = 0;

    for (; at + 16 <= n; at += 16) {
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

/* The low halves of the lanes of out go below *at, the last lane's last. */
static inline __m512i put_words(__m512i x, __mmask16 out, uint8_t **at)
{
    __m256i words = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(out, x));
    uint32_t count = (uint32_t)_mm_popcnt_u32(out);

    *at -= (size_t)2 * count;
    _mm256_mask_storeu_epi16(*at, (__mmask16)((1u << count) - 1), words);
    return _mm512_mask_srli_epi32(x, out, x, 16);
}

static inline __m512i push_bits(__m512i x, __m512i raw, __m512i k, uint8_t **at)
{
    __m512i left = _mm512_sub_epi32(_mm512_set1_epi32(31), k);
    __mmask16 out = _mm512_test_epi32_mask(_mm512_srlv_epi32(x, left),
                                           _mm512_set1_epi32(-1));

    x = put_words(x, out, at);
    return _mm512_or_si512(_mm512_sllv_epi32(x, k), raw);
}

/* Codes come as those of even lanes and of odd ones, which is how products of
 * 32 bits do, too. */
static inline __m512i push_tokens(__m512i x, const bal_rans_codes *codes,
                                  const uint16_t *symbol, uint8_t **at)
{
    const __m512i thirteen = _mm512_set1_epi32(0x1fff);
    __m512i index =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)symbol));
    __m512i odd = _mm512_srli_epi64(index, 32);
    odd = _mm512_i64gather_epi64(odd, codes->code, 8);
    __m512i even = _mm512_and_si512(index, _mm512_set1_epi64(0xffff));
    even = _mm512_i64gather_epi64(even, codes->code, 8);
    __m512i packed =
        _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
    __m512i freq = _mm512_and_si512(packed, thirteen);
    __m512i bias = _mm512_and_si512(_mm512_srli_epi32(packed, 13), thirteen);
    __mmask16 out =
        _mm512_cmpge_epu32_mask(_mm512_srli_epi32(x, 31 - BAL_RANS_BITS), freq);

    x = put_words(x, out, at);
    even = _mm512_mul_epu32(x, _mm512_srli_epi64(even, 32));
    odd =
        _mm512_mul_epu32(_mm512_srli_epi64(x, 32), _mm512_srli_epi64(odd, 32));
    __m512i quotient =
        _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    quotient = _mm512_srlv_epi32(quotient, _mm512_srli_epi32(packed, 26));
    __m512i times = _mm512_sub_epi32(_mm512_set1_epi32(BAL_RANS_SLOTS), freq);
    x = _mm512_add_epi32(x, bias);
    return _mm512_add_epi32(x, _mm512_mullo_epi32(quotient, times));
}

static inline __attribute__((always_inline)) void
push_raw(__m512i *x, uint8_t **to, const bal_tile *tile, size_t at,
         unsigned steps, size_t vectors)
{
    const __m512i piece = _mm512_set1_epi32(BAL_RANS_PIECE);
    const __m512i low = _mm512_set1_epi32((1 << BAL_RANS_PIECE) - 1);
    __m512i k[VECTORS];
    __m512i raw[VECTORS];
    __mmask16 over = 0;

    for (size_t v = 0; v < vectors; v++) {
        k[v] = bytes_at(tile->bits + at + 16 * v);
        raw[v] = _mm512_loadu_si512(tile->raw + at + 16 * v);
        over = _mm512_kor(over, _mm512_cmpgt_epu32_mask(k[v], piece));
    }
    for (size_t v = vectors; v-- > 0 && steps > 2 && over;) {
        __m512i rest = _mm512_sub_epi32(_mm512_max_epu32(k[v], piece), piece);
        x[v] = push_bits(x[v], _mm512_srli_epi32(raw[v], BAL_RANS_PIECE), rest,
                         to);
    }
    for (size_t v = vectors; v-- > 0;)
        x[v] = push_bits(x[v], _mm512_and_si512(raw[v], low),
                         _mm512_min_epu32(k[v], piece), to);
}

static inline __attribute__((always_inline)) void
push_by(bal_rans_push *self, const bal_tile *tile, size_t n, size_t vectors)
{
    const size_t lanes = 16 * vectors;
    uint8_t *to = self->at;
    __m512i x[VECTORS];

    for (size_t v = 0; v < vectors; v++)
        x[v] = _mm512_loadu_si512(self->state + 16 * v);
    while (n) {
        n -= lanes;
        if (self->steps > 1)
            push_raw(x, &to, tile, n, self->steps, vectors);
        for (size_t v = vectors; v-- > 0;)
            x[v] =
                push_tokens(x[v], self->codes, tile->symbol + n + 16 * v, &to);
    }
    for (size_t v = 0; v < vectors; v++)
        _mm512_storeu_si512(self->state + 16 * v, x[v]);
    self->at = to;
}

static void push_v4(bal_rans_push *self, const bal_tile *tile, size_t n)
{
    if (self->steps > 3)
        bal_rans_push_rounds(self, tile, n);
    else if (self->lanes == BAL_RANS_WIDE)
        push_by(self, tile, n, FEWER);
    else
        push_by(self, tile, n, VECTORS);
}

#include "codec/trimming_v4.inc"

#define RAW_BITS raw_bits_by_float
#define PAIRS    pairs_v4
#define TRIM     trim_v4
#define TABLE    bal_loops_v4
#define ISA      "v4"
#define TAKE_TWO take_two_v4
#define PUSH     push_v4
#define PULL     pull_v4
#define PULL_TWO pull_two_v4
#include "codec/loops.inc"
