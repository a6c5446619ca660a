/* The loops for x86-64-v3 (AVX2); the build sets -march. Vectors of eight
 * lanes. */
#include <immintrin.h>
#include <string.h>

#include "codec/loops.h"

enum { VECTORS = BAL_RANS_LANES / 8 };

/* By which lanes take a word: four bits a lane, how many of those below it take
 * one. */
static const uint32_t spread_by[256] = {
    0x00000000, 0x11111110, 0x11111100, 0x22222210, 0x11111000, 0x22222110,
    0x22222100, 0x33333210, 0x11110000, 0x22221110, 0x22221100, 0x33332210,
    0x22221000, 0x33332110, 0x33332100, 0x44443210, 0x11100000, 0x22211110,
    0x22211100, 0x33322210, 0x22211000, 0x33322110, 0x33322100, 0x44433210,
    0x22210000, 0x33321110, 0x33321100, 0x44432210, 0x33321000, 0x44432110,
    0x44432100, 0x55543210, 0x11000000, 0x22111110, 0x22111100, 0x33222210,
    0x22111000, 0x33222110, 0x33222100, 0x44333210, 0x22110000, 0x33221110,
    0x33221100, 0x44332210, 0x33221000, 0x44332110, 0x44332100, 0x55443210,
    0x22100000, 0x33211110, 0x33211100, 0x44322210, 0x33211000, 0x44322110,
    0x44322100, 0x55433210, 0x33210000, 0x44321110, 0x44321100, 0x55432210,
    0x44321000, 0x55432110, 0x55432100, 0x66543210, 0x10000000, 0x21111110,
    0x21111100, 0x32222210, 0x21111000, 0x32222110, 0x32222100, 0x43333210,
    0x21110000, 0x32221110, 0x32221100, 0x43332210, 0x32221000, 0x43332110,
    0x43332100, 0x54443210, 0x21100000, 0x32211110, 0x32211100, 0x43322210,
    0x32211000, 0x43322110, 0x43322100, 0x54433210, 0x32210000, 0x43321110,
    0x43321100, 0x54432210, 0x43321000, 0x54432110, 0x54432100, 0x65543210,
    0x21000000, 0x32111110, 0x32111100, 0x43222210, 0x32111000, 0x43222110,
    0x43222100, 0x54333210, 0x32110000, 0x43221110, 0x43221100, 0x54332210,
    0x43221000, 0x54332110, 0x54332100, 0x65443210, 0x32100000, 0x43211110,
    0x43211100, 0x54322210, 0x43211000, 0x54322110, 0x54322100, 0x65433210,
    0x43210000, 0x54321110, 0x54321100, 0x65432210, 0x54321000, 0x65432110,
    0x65432100, 0x76543210, 0x00000000, 0x11111110, 0x11111100, 0x22222210,
    0x11111000, 0x22222110, 0x22222100, 0x33333210, 0x11110000, 0x22221110,
    0x22221100, 0x33332210, 0x22221000, 0x33332110, 0x33332100, 0x44443210,
    0x11100000, 0x22211110, 0x22211100, 0x33322210, 0x22211000, 0x33322110,
    0x33322100, 0x44433210, 0x22210000, 0x33321110, 0x33321100, 0x44432210,
    0x33321000, 0x44432110, 0x44432100, 0x55543210, 0x11000000, 0x22111110,
    0x22111100, 0x33222210, 0x22111000, 0x33222110, 0x33222100, 0x44333210,
    0x22110000, 0x33221110, 0x33221100, 0x44332210, 0x33221000, 0x44332110,
    0x44332100, 0x55443210, 0x22100000, 0x33211110, 0x33211100, 0x44322210,
    0x33211000, 0x44322110, 0x44322100, 0x55433210, 0x33210000, 0x44321110,
    0x44321100, 0x55432210, 0x44321000, 0x55432110, 0x55432100, 0x66543210,
    0x10000000, 0x21111110, 0x21111100, 0x32222210, 0x21111000, 0x32222110,
    0x32222100, 0x43333210, 0x21110000, 0x32221110, 0x32221100, 0x43332210,
    0x32221000, 0x43332110, 0x43332100, 0x54443210, 0x21100000, 0x32211110,
    0x32211100, 0x43322210, 0x32211000, 0x43322110, 0x43322100, 0x54433210,
    0x32210000, 0x43321110, 0x43321100, 0x54432210, 0x43321000, 0x54432110,
    0x54432100, 0x65543210, 0x21000000, 0x32111110, 0x32111100, 0x43222210,
    0x32111000, 0x43222110, 0x43222100, 0x54333210, 0x32110000, 0x43221110,
    0x43221100, 0x54332210, 0x43221000, 0x54332110, 0x54332100, 0x65443210,
    0x32100000, 0x43211110, 0x43211100, 0x54322210, 0x43211000, 0x54322110,
    0x54322100, 0x65433210, 0x43210000, 0x54321110, 0x54321100, 0x65432210,
    0x54321000, 0x65432110, 0x65432100, 0x76543210,
};

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
                                                lanes_of(spread_by[mask]));

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
            __m256i table = bytes_at(tile->table + at + 8 * v);
            table = _mm256_slli_epi32(table, BAL_RANS_BITS);
            __m256i token = pull_slots(&x[v], self->slots, table);
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
    k = _mm256_sub_epi32(_mm256_max_epu32(k, one), one);
    m = _mm256_sub_epi32(m, _mm256_slli_epi32(k, SUB));
    __m256i far = _mm256_or_si256(_mm256_sllv_epi32(m, k), pull_bits(x, k));
    far = _mm256_sub_epi32(_mm256_xor_si256(far, minus), minus);
    __m256i sum = _mm256_shuffle_epi8(_mm256_add_epi32(near, far), low);
    sum = _mm256_permute4x64_epi64(sum, 0x08);
    _mm_storeu_si128((void *)to, _mm256_castsi256_si128(sum));
}

static size_t pull_two_v3(bal_rans_pull *self, uint8_t *to,
                          const bal_anchor *anchor, size_t from, size_t n)
{
    const ptrdiff_t most = (ptrdiff_t)2 * BAL_RANS_LANES * TWO_STEPS;
    const bal_anchor in = *anchor;
    const uint32_t *slots = self->slots;
    const uint8_t *base = (const uint8_t *)in.base + 2 * from;
    const uint8_t *words = self->at;
    __m256i x[VECTORS];
    __m256i token[VECTORS];
    size_t at = 0;

    for (size_t v = 0; v < VECTORS; v++)
        x[v] = _mm256_loadu_si256((const void *)(self->state + 8 * v));
    for (; at < n && self->end - words >= most; at += BAL_RANS_LANES) {
        for (size_t v = 0; v < VECTORS; v++) {
            __m256i tables = two_tables(base + 2 * at + 16 * v, &in);
            token[v] = pull_slots(&x[v], slots, tables);
            x[v] = refill(x[v], &words);
        }
        for (size_t v = 0; v < VECTORS; v++) {
            two_join(to + 2 * at + 16 * v, &x[v], token[v],
                     base + 2 * at + 16 * v);
            x[v] = refill(x[v], &words);
        }
    }
    for (size_t v = 0; v < VECTORS; v++)
        _mm256_storeu_si256((void *)(self->state + 8 * v), x[v]);
    self->at = words;
    return at;
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

/* By which lanes give a word: they, four bits each, the last one highest. */
static const uint32_t squeeze_by[256] = {
    0x00000000, 0x00000000, 0x10000000, 0x10000000, 0x20000000, 0x20000000,
    0x21000000, 0x21000000, 0x30000000, 0x30000000, 0x31000000, 0x31000000,
    0x32000000, 0x32000000, 0x32100000, 0x32100000, 0x40000000, 0x40000000,
    0x41000000, 0x41000000, 0x42000000, 0x42000000, 0x42100000, 0x42100000,
    0x43000000, 0x43000000, 0x43100000, 0x43100000, 0x43200000, 0x43200000,
    0x43210000, 0x43210000, 0x50000000, 0x50000000, 0x51000000, 0x51000000,
    0x52000000, 0x52000000, 0x52100000, 0x52100000, 0x53000000, 0x53000000,
    0x53100000, 0x53100000, 0x53200000, 0x53200000, 0x53210000, 0x53210000,
    0x54000000, 0x54000000, 0x54100000, 0x54100000, 0x54200000, 0x54200000,
    0x54210000, 0x54210000, 0x54300000, 0x54300000, 0x54310000, 0x54310000,
    0x54320000, 0x54320000, 0x54321000, 0x54321000, 0x60000000, 0x60000000,
    0x61000000, 0x61000000, 0x62000000, 0x62000000, 0x62100000, 0x62100000,
    0x63000000, 0x63000000, 0x63100000, 0x63100000, 0x63200000, 0x63200000,
    0x63210000, 0x63210000, 0x64000000, 0x64000000, 0x64100000, 0x64100000,
    0x64200000, 0x64200000, 0x64210000, 0x64210000, 0x64300000, 0x64300000,
    0x64310000, 0x64310000, 0x64320000, 0x64320000, 0x64321000, 0x64321000,
    0x65000000, 0x65000000, 0x65100000, 0x65100000, 0x65200000, 0x65200000,
    0x65210000, 0x65210000, 0x65300000, 0x65300000, 0x65310000, 0x65310000,
    0x65320000, 0x65320000, 0x65321000, 0x65321000, 0x65400000, 0x65400000,
    0x65410000, 0x65410000, 0x65420000, 0x65420000, 0x65421000, 0x65421000,
    0x65430000, 0x65430000, 0x65431000, 0x65431000, 0x65432000, 0x65432000,
    0x65432100, 0x65432100, 0x70000000, 0x70000000, 0x71000000, 0x71000000,
    0x72000000, 0x72000000, 0x72100000, 0x72100000, 0x73000000, 0x73000000,
    0x73100000, 0x73100000, 0x73200000, 0x73200000, 0x73210000, 0x73210000,
    0x74000000, 0x74000000, 0x74100000, 0x74100000, 0x74200000, 0x74200000,
    0x74210000, 0x74210000, 0x74300000, 0x74300000, 0x74310000, 0x74310000,
    0x74320000, 0x74320000, 0x74321000, 0x74321000, 0x75000000, 0x75000000,
    0x75100000, 0x75100000, 0x75200000, 0x75200000, 0x75210000, 0x75210000,
    0x75300000, 0x75300000, 0x75310000, 0x75310000, 0x75320000, 0x75320000,
    0x75321000, 0x75321000, 0x75400000, 0x75400000, 0x75410000, 0x75410000,
    0x75420000, 0x75420000, 0x75421000, 0x75421000, 0x75430000, 0x75430000,
    0x75431000, 0x75431000, 0x75432000, 0x75432000, 0x75432100, 0x75432100,
    0x76000000, 0x76000000, 0x76100000, 0x76100000, 0x76200000, 0x76200000,
    0x76210000, 0x76210000, 0x76300000, 0x76300000, 0x76310000, 0x76310000,
    0x76320000, 0x76320000, 0x76321000, 0x76321000, 0x76400000, 0x76400000,
    0x76410000, 0x76410000, 0x76420000, 0x76420000, 0x76421000, 0x76421000,
    0x76430000, 0x76430000, 0x76431000, 0x76431000, 0x76432000, 0x76432000,
    0x76432100, 0x76432100, 0x76500000, 0x76500000, 0x76510000, 0x76510000,
    0x76520000, 0x76520000, 0x76521000, 0x76521000, 0x76530000, 0x76530000,
    0x76531000, 0x76531000, 0x76532000, 0x76532000, 0x76532100, 0x76532100,
    0x76540000, 0x76540000, 0x76541000, 0x76541000, 0x76542000, 0x76542000,
    0x76542100, 0x76542100, 0x76543000, 0x76543000, 0x76543100, 0x76543100,
    0x76543200, 0x76543200, 0x76543210, 0x76543210,
};

/* The low halves of the lanes of out go below *at, the last lane's last; what
 * comes before them does not count. */
static inline __m256i put_words(__m256i x, __m256i out, uint8_t **at)
{
    uint32_t mask = (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(out));
    uint32_t count = (uint32_t)_mm_popcnt_u32(mask);
    __m256i order = lanes_of(squeeze_by[mask]);
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
#define TAKE_TWO take_two_v3
#define PAIRS    pairs
#define TRIM     trim
#define PUSH     push_v3
#define PULL     pull_v3
#define PULL_TWO pull_two_v3
#include "codec/loops.inc"
