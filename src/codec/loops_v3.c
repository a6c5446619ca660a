/* The loops for x86-64-v3 (AVX2); the build sets -march. Vectors of eight
 * lanes. */
#include <immintrin.h>

#include "codec/loops.h"

enum { VECTORS = BAL_RANS_LANES / 8 };

/* Where each of eight words goes whose lane's bit is set in the first index:
 * lane l takes as many words further on as lanes below it do. */
static __m256i spread_of(uint32_t mask)
{
    /* By bits of mask, spread to bytes; their sums from below are places. */
    uint64_t ones = _pdep_u64(mask, 0x0101010101010101u);
    uint64_t places = ones * 0x0101010101010101u - ones;

    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)places));
}

static inline __m256i refill(__m256i x, const uint8_t **at)
{
    const __m256i least = _mm256_set1_epi32(BAL_RANS_LOW);
    __m256i short_of = _mm256_cmpgt_epi32(least, x);
    uint32_t mask = (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(short_of));
    __m128i eight = _mm_loadu_si128((const void *)*at);
    __m256i words = _mm256_permutevar8x32_epi32(_mm256_cvtepu16_epi32(eight),
                                                spread_of(mask));

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

/* The slots of eight states, the states without them. */
static inline __m256i pull_slots(__m256i *x, const uint32_t *slots,
                                 const uint8_t *table)
{
    const __m256i inside = _mm256_set1_epi32(BAL_RANS_SLOTS - 1);
    __m256i index = _mm256_slli_epi32(bytes_at(table), BAL_RANS_BITS);

    index = _mm256_or_si256(index, _mm256_and_si256(*x, inside));
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

static inline void pull_raw(__m256i *x, bal_rans_pull *self, bal_tile *tile,
                            size_t at)
{
    const __m256i piece = _mm256_set1_epi32(BAL_RANS_PIECE);
    __m256i k[VECTORS];
    __m256i raw[VECTORS];

    for (size_t v = 0; v < VECTORS; v++) {
        k[v] = bits_behind(bytes_at(tile->token + at + 8 * v), self);
        raw[v] = pull_bits(&x[v], _mm256_min_epu32(k[v], piece));
        x[v] = refill(x[v], &self->at);
    }
    for (size_t v = 0; v < VECTORS && self->steps > 2; v++) {
        __m256i rest = _mm256_sub_epi32(_mm256_max_epu32(k[v], piece), piece);
        __m256i more = pull_bits(&x[v], rest);
        raw[v] =
            _mm256_or_si256(raw[v], _mm256_slli_epi32(more, BAL_RANS_PIECE));
        x[v] = refill(x[v], &self->at);
    }
    for (size_t v = 0; v < VECTORS; v++)
        _mm256_storeu_si256((void *)(tile->raw + at + 8 * v), raw[v]);
}

static size_t pull_v3(bal_rans_pull *self, bal_tile *tile, size_t n)
{
    const ptrdiff_t most = (ptrdiff_t)2 * BAL_RANS_LANES * self->steps;
    __m256i x[VECTORS];
    size_t at = 0;

    if (self->steps > 3)
        return bal_rans_pull_rounds(self, tile, n);
    for (size_t v = 0; v < VECTORS; v++)
        x[v] = _mm256_loadu_si256((const void *)(self->state + 8 * v));
    for (; at < n && self->end - self->at >= most; at += BAL_RANS_LANES) {
        for (size_t v = 0; v < VECTORS; v++) {
            __m256i token =
                pull_slots(&x[v], self->slots, tile->table + at + 8 * v);
            put_bytes(tile->token + at + 8 * v, token);
            x[v] = refill(x[v], &self->at);
        }
        if (self->steps > 1)
            pull_raw(x, self, tile, at);
    }
    for (size_t v = 0; v < VECTORS; v++)
        _mm256_storeu_si256((void *)(self->state + 8 * v), x[v]);
    return at;
}

/* ---- push --------------------------------------------------------------- */

/* The low halves of the lanes of out go below *at, the last lane's last; what
 * comes before them does not count. */
static inline __m256i put_words(__m256i x, __m256i out, uint8_t **at)
{
    uint32_t mask = (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(out));
    uint64_t lanes = _pdep_u64(mask, 0x0101010101010101u) * 0xff;
    uint32_t count = (uint32_t)_mm_popcnt_u32(mask);
    uint64_t places = _pext_u64(0x0706050403020100u, lanes);

    places = count ? places << (64 - 8 * count) : 0;
    __m256i order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)places));
    __m256i words = _mm256_permutevar8x32_epi32(x, order);
    words = _mm256_and_si256(words, _mm256_set1_epi32(0xffff));
    __m128i eight = _mm_packus_epi32(_mm256_castsi256_si128(words),
                                     _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((void *)(*at - 16), eight);
    *at -= (size_t)2 * count;
    return _mm256_blendv_epi8(x, _mm256_srli_epi32(x, 16), out);
}

static inline __m256i push_bits(__m256i x, __m256i raw, __m256i k, uint8_t **at)
{
    __m256i left = _mm256_sub_epi32(_mm256_set1_epi32(31), k);
    __m256i over = _mm256_srlv_epi32(x, left);

    x = put_words(x, _mm256_cmpgt_epi32(over, _mm256_setzero_si256()), at);
    return _mm256_or_si256(_mm256_sllv_epi32(x, k), raw);
}

/* The high halves of 32-bit products. */
static inline __m256i high_of(__m256i a, __m256i b)
{
    __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(a, b), 32);
    __m256i odd =
        _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));

    return _mm256_blend_epi32(even, odd, 0xaa);
}

static inline __m256i push_tokens(__m256i x, const bal_rans_codes *codes,
                                  const uint16_t *symbol, uint8_t **at)
{
    const __m256i thirteen = _mm256_set1_epi32(0x1fff);
    __m256i index =
        _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)symbol));
    __m256i packed =
        _mm256_i32gather_epi32((const int *)codes->packed, index, 4);
    __m256i reciprocal =
        _mm256_i32gather_epi32((const int *)codes->reciprocal, index, 4);
    __m256i freq = _mm256_and_si256(packed, thirteen);
    __m256i bias = _mm256_and_si256(_mm256_srli_epi32(packed, 13), thirteen);
    __m256i fits =
        _mm256_cmpgt_epi32(freq, _mm256_srli_epi32(x, 31 - BAL_RANS_BITS));

    x = put_words(x, _mm256_xor_si256(fits, _mm256_set1_epi32(-1)), at);
    __m256i quotient = _mm256_srlv_epi32(high_of(x, reciprocal),
                                         _mm256_srli_epi32(packed, 26));
    __m256i times = _mm256_sub_epi32(_mm256_set1_epi32(BAL_RANS_SLOTS), freq);
    x = _mm256_add_epi32(x, bias);
    return _mm256_add_epi32(x, _mm256_mullo_epi32(quotient, times));
}

/* Not 0 if one of a round's lengths is more than most, which are bytes below
 * 128. */
static inline int longer_than(const uint8_t *bits, char most)
{
    const __m256i limit = _mm256_set1_epi8(most);
    __m256i low = _mm256_loadu_si256((const void *)bits);
    __m256i high = _mm256_loadu_si256((const void *)(bits + 32));

    return _mm256_movemask_epi8(
        _mm256_cmpgt_epi8(_mm256_max_epi8(low, high), limit));
}

static inline void push_raw(__m256i *x, uint8_t **to, const bal_tile *tile,
                            size_t at, unsigned steps)
{
    const __m256i piece = _mm256_set1_epi32(BAL_RANS_PIECE);
    const __m256i low = _mm256_set1_epi32((1 << BAL_RANS_PIECE) - 1);
    int over = longer_than(tile->bits + at, BAL_RANS_PIECE);

    for (size_t v = VECTORS; v-- > 0 && steps > 2 && over;) {
        __m256i k = bytes_at(tile->bits + at + 8 * v);
        __m256i raw =
            _mm256_loadu_si256((const void *)(tile->raw + at + 8 * v));
        __m256i rest = _mm256_sub_epi32(_mm256_max_epu32(k, piece), piece);
        x[v] =
            push_bits(x[v], _mm256_srli_epi32(raw, BAL_RANS_PIECE), rest, to);
    }
    for (size_t v = VECTORS; v-- > 0;) {
        __m256i k = bytes_at(tile->bits + at + 8 * v);
        __m256i raw =
            _mm256_loadu_si256((const void *)(tile->raw + at + 8 * v));
        x[v] = push_bits(x[v], _mm256_and_si256(raw, low),
                         _mm256_min_epu32(k, piece), to);
    }
}

static void push_v3(bal_rans_push *self, const bal_tile *tile, size_t n)
{
    uint8_t *to = self->at;
    __m256i x[VECTORS];

    if (self->steps > 3) {
        bal_rans_push_rounds(self, tile, n);
        return;
    }
    for (size_t v = 0; v < VECTORS; v++)
        x[v] = _mm256_loadu_si256((const void *)(self->state + 8 * v));
    while (n) {
        n -= BAL_RANS_LANES;
        if (self->steps > 1)
            push_raw(x, &to, tile, n, self->steps);
        for (size_t v = VECTORS; v-- > 0;)
            x[v] =
                push_tokens(x[v], self->codes, tile->symbol + n + 8 * v, &to);
    }
    for (size_t v = 0; v < VECTORS; v++)
        _mm256_storeu_si256((void *)(self->state + 8 * v), x[v]);
    self->at = to;
}

#define RAW_BITS raw_bits_by_float
#define TABLE    bal_loops_v3
#define ISA      "v3"
#define PAIRS    pairs
#define TRIM     trim
#define PUSH     push_v3
#define PULL     pull_v3
#include "codec/loops.inc"
