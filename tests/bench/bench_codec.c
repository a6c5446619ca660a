/* How small each kind of bytes gets, and how fast it goes through bal_encode
 * and bal_decode, on one thread, beside memcpy of the same bytes in the same
 * run: on a shared machine only the two together say something. Processor time,
 * best of several rounds. BALLAST_ISA says with which loops. Where there is a
 * base, r is the size of the changes by that of the base's values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/codec.h"
#include "core/error.h"

enum { SIZE = 64 << 20, BLOCK = 4 << 20, ROUNDS = 5 };

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t draw(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double draw_normal(double sigma)
{
    double u = ((double)(draw() >> 11) + 1) * 0x1p-53;
    double v = (double)(draw() >> 11) * 0x1p-53;

    return sigma * sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static uint32_t f32_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, 4);
    return bits;
}

static uint32_t bf16_of(float value)
{
    uint32_t bits = f32_bits(value);

    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

static float f32_of_bf16(uint32_t half)
{
    uint32_t bits = half << 16;
    float value;

    memcpy(&value, &bits, 4);
    return value;
}

/* Normal numbers of the size weights have stay normal in f16, so truncation
 * will do. */
static uint32_t f16_of(float value)
{
    uint32_t bits = f32_bits(value);
    uint32_t sign = bits >> 16 & 0x8000;
    int32_t exponent = (int32_t)(bits >> 23 & 0xff) - 112;

    if (exponent <= 0)
        return sign;
    return sign | (uint32_t)exponent << 10 | (bits >> 13 & 0x3ff);
}

/* ---- what is measured --------------------------------------------------- */

typedef struct bench_kind {
    const char *name;
    bal_grain grain;
    void (*fill)(uint8_t *to, uint8_t *base, const struct bench_kind *kind);
    double r;
    double share; /* of elements that change; 0: all */
} bench_kind;

static uint8_t *put(uint8_t *to, const void *value, size_t width)
{
    memcpy(to, value, width);
    return to + width;
}

/* A value in the bits of a number; E4M3 and E5M2 are cut from F16. */
static uint64_t bits_of(double value, bal_number number)
{
    uint64_t wide = 0;
    float narrow = (float)value;
    uint32_t half = f16_of(narrow);

    memcpy(&wide, &value, sizeof(wide));
    if (number == BAL_NUMBER_F64)
        return wide;
    if (number == BAL_NUMBER_F32)
        return f32_bits(narrow);
    if (number == BAL_NUMBER_BF16)
        return bf16_of(narrow);
    if (number == BAL_NUMBER_E5M2)
        return half >> 8;
    if (number == BAL_NUMBER_E4M3)
        return (f16_of(narrow * 0x1p-8F) >> 7 & 0x7f) | (half >> 8 & 0x80);
    return half;
}

static size_t width_of(bal_number number)
{
    static const uint8_t widths[] = {
        [BAL_NUMBER_BF16] = 2, [BAL_NUMBER_F16] = 2,  [BAL_NUMBER_F32] = 4,
        [BAL_NUMBER_F64] = 8,  [BAL_NUMBER_E4M3] = 1, [BAL_NUMBER_E5M2] = 1,
    };

    return widths[number];
}

/* Normal values of 0.02, tuned by r of that. */
static void fill_tuned(uint8_t *to, uint8_t *base, const bench_kind *kind)
{
    bal_number number = kind->grain.kind;
    size_t width = width_of(number);
    double scale = width == 1 ? 1.0 : 0.02;

    for (size_t i = 0; i < SIZE; i += width) {
        uint64_t near = 0;
        double value = draw_normal(scale);
        uint64_t bits = bits_of(value, number);
        bool keeps =
            kind->share > 0 && (double)(draw() >> 11) * 0x1p-53 > kind->share;
        base = put(base, &bits, width);
        memcpy(&near, &bits, sizeof(near));
        if (number == BAL_NUMBER_BF16)
            value = (double)f32_of_bf16((uint32_t)bits);
        bits = bits_of(value + draw_normal(scale * kind->r), number);
        to = put(to, keeps ? &near : &bits, width);
    }
}

static void fill_plain(uint8_t *to, uint8_t *base, const bench_kind *kind)
{
    bench_kind still = *kind;

    still.r = 0;
    fill_tuned(to, base, &still);
}

/* tuned - base, of bf16 values: most need few bits. */
static void fill_difference(uint8_t *to, uint8_t *base, const bench_kind *kind)
{
    for (size_t i = 0; i < SIZE; i += 4) {
        uint32_t near = bf16_of((float)draw_normal(0.02));
        float value = f32_of_bf16(near);
        float change = (float)draw_normal(0.02 * kind->r);
        value = f32_of_bf16(bf16_of(value + change)) - value;
        base = put(base, &near, 2);
        to = put(to, &value, 4);
    }
}

static void fill_random(uint8_t *to, uint8_t *base, const bench_kind *kind)
{
    (void)base;
    (void)kind;
    for (size_t i = 0; i < SIZE; i += 8) {
        uint64_t value = draw();
        memcpy(to + i, &value, 8);
    }
}

static void fill_zero(uint8_t *to, uint8_t *base, const bench_kind *kind)
{
    (void)base;
    (void)kind;
    memset(to, 0, SIZE);
}

static void fill_text(uint8_t *to, uint8_t *base, const bench_kind *kind)
{
    size_t at = 0;

    (void)base;
    (void)kind;
    while (at < SIZE) {
        char line[64];
        int len = snprintf(line, sizeof(line), "\"\\u0120tok%llx\": %llu,\n",
                           (unsigned long long)(draw() & 0xffff),
                           (unsigned long long)(at % 50000));
        size_t n = (size_t)len < SIZE - at ? (size_t)len : SIZE - at;
        memcpy(to + at, line, n);
        at += n;
    }
}

#define ALONE(type, wide)                                                      \
    {                                                                          \
        .kind = BAL_NUMBER_##type, .width = (wide)                             \
    }
#define ON_BASE(type, wide)                                                    \
    {                                                                          \
        .kind = BAL_NUMBER_##type, .base_kind = BAL_NUMBER_##type,             \
        .width = (wide), .base = {                                             \
            NULL,                                                              \
            SIZE                                                               \
        }                                                                      \
    }
#define DIFFERENCE                                                             \
    {                                                                          \
        .kind = BAL_NUMBER_F32, .base_kind = BAL_NUMBER_BF16, .width = 4,      \
        .difference = true, .base = {                                          \
            NULL,                                                              \
            SIZE / 2                                                           \
        }                                                                      \
    }

static const bench_kind kinds[] = {
    { "bf16", ALONE(BF16, 2), fill_plain, 0, 0 },
    { "f16", ALONE(F16, 2), fill_plain, 0, 0 },
    { "f32", ALONE(F32, 4), fill_plain, 0, 0 },
    { "f64", ALONE(F64, 8), fill_plain, 0, 0 },
    { "e4m3", ALONE(E4M3, 1), fill_plain, 0, 0 },
    { "e5m2", ALONE(E5M2, 1), fill_plain, 0, 0 },
    { "bf16 base r=1e-4", ON_BASE(BF16, 2), fill_tuned, 1e-4, 0 },
    { "bf16 base r=1e-3", ON_BASE(BF16, 2), fill_tuned, 1e-3, 0 },
    { "bf16 base r=1e-2", ON_BASE(BF16, 2), fill_tuned, 1e-2, 0 },
    { "bf16 base r=1e-1", ON_BASE(BF16, 2), fill_tuned, 1e-1, 0 },
    { "bf16 base 1 %", ON_BASE(BF16, 2), fill_tuned, 1e-2, 1e-2 },
    { "bf16 base 0.1 %", ON_BASE(BF16, 2), fill_tuned, 1e-2, 1e-3 },
    { "bf16 base 0.01 %", ON_BASE(BF16, 2), fill_tuned, 1e-2, 1e-4 },
    { "bf16 base 0 %", ON_BASE(BF16, 2), fill_plain, 0, 1e-9 },
    { "f16 base r=1e-2", ON_BASE(F16, 2), fill_tuned, 1e-2, 0 },
    { "f32 base r=1e-3", ON_BASE(F32, 4), fill_tuned, 1e-3, 0 },
    { "f32 base r=1e-2", ON_BASE(F32, 4), fill_tuned, 1e-2, 0 },
    { "f64 base r=1e-2", ON_BASE(F64, 8), fill_tuned, 1e-2, 0 },
    { "e4m3 base r=1e-2", ON_BASE(E4M3, 1), fill_tuned, 1e-2, 0 },
    { "e5m2 base r=1e-2", ON_BASE(E5M2, 1), fill_tuned, 1e-2, 0 },
    { "diff r=1e-3", ALONE(F32, 4), fill_difference, 1e-3, 0 },
    { "diff r=1e-2", ALONE(F32, 4), fill_difference, 1e-2, 0 },
    { "diff base r=1e-3", DIFFERENCE, fill_difference, 1e-3, 0 },
    { "diff base r=1e-2", DIFFERENCE, fill_difference, 1e-2, 0 },
    { "random u16", ALONE(INT, 2), fill_random, 0, 0 },
    { "random u8", ALONE(INT, 1), fill_random, 0, 0 },
    { "zero f32", ALONE(F32, 4), fill_zero, 0, 0 },
    { "text", { 0 }, fill_text, 0, 0 },
};

/* ---- how ---------------------------------------------------------------- */

static const struct {
    const char *name;
    bal_effort effort;
} efforts[] = {
    { "fast", BAL_EFFORT_FAST },
    { "auto", BAL_EFFORT_AUTO },
    { "best", BAL_EFFORT_BEST },
};

enum { BLOCKS = SIZE / BLOCK };

typedef struct measurement {
    bal_coder *coder;
    const uint8_t *from;
    uint8_t *to;
    bal_buf packed[BLOCKS];
    bal_codec_id used[BLOCKS];
    const uint8_t *base;
    bal_grain grain;
    bal_effort effort;
    double encode;
    double decode;
    double copy;
} measurement;

static double seconds_used(void)
{
    struct timespec now = { 0 };

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double better(double best, double seconds)
{
    return best == 0.0 || seconds < best ? seconds : best;
}

/* Of block i. */
static bal_grain grain_of(const measurement *run, size_t i)
{
    bal_grain grain = run->grain;
    size_t len = grain.base.len / BLOCKS;

    grain.base = (bal_bytes){ len ? run->base + i * len : NULL, len };
    return grain;
}

static int encode_all(measurement *run, bal_error *err)
{
    double start = seconds_used();

    for (size_t i = 0; i < BLOCKS; i++) {
        bal_bytes from = { run->from + i * BLOCK, BLOCK };
        bal_grain grain = grain_of(run, i);
        bal_buf_clear(&run->packed[i]);
        int rc = bal_encode(run->coder, &run->used[i], &run->packed[i], from,
                            &grain, run->effort, err);
        if (rc)
            return rc;
    }
    run->encode = better(run->encode, seconds_used() - start);
    return 0;
}

static bal_bytes payload_of(const measurement *run, size_t i)
{
    bal_bytes packed = { run->packed[i].data, run->packed[i].len };
    bal_bytes raw = { run->from + i * BLOCK, BLOCK };

    return run->used[i] == BAL_CODEC_RAW ? raw : packed;
}

static int decode_all(measurement *run, bal_error *err)
{
    double start = seconds_used();

    for (size_t i = 0; i < BLOCKS; i++) {
        bal_grain grain = grain_of(run, i);
        int rc = bal_decode(run->coder, run->used[i], run->to + i * BLOCK,
                            BLOCK, payload_of(run, i), &grain, err);
        if (rc)
            return rc;
    }
    run->decode = better(run->decode, seconds_used() - start);
    return memcmp(run->to, run->from, SIZE) ? BAL_ECORRUPT : 0;
}

static int measure(measurement *run, const char *kind, const char *effort,
                   bal_error *err)
{
    run->encode = run->decode = run->copy = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        double start = seconds_used();
        for (size_t at = 0; at < SIZE; at += BLOCK)
            memcpy(run->to + at, run->from + at, BLOCK);
        run->copy = better(run->copy, seconds_used() - start);
        int rc = encode_all(run, err);
        if (rc)
            return rc;
        rc = decode_all(run, err);
        if (rc)
            return rc;
    }
    size_t stored = 0;
    for (size_t i = 0; i < BLOCKS; i++)
        stored += payload_of(run, i).len;
    printf("%-17s %-5s %-8s %9.3f %8.2f %8.2f %8.2f %8.2f %8.2f\n", kind,
           effort, bal_codec_find(run->used[0])->name,
           (double)SIZE / (double)stored, SIZE / run->encode / 1e9,
           SIZE / run->decode / 1e9, SIZE / run->copy / 1e9,
           run->copy / run->encode, run->copy / run->decode);
    return 0;
}

static int read_file(uint8_t *to, const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t got = file ? fread(to, 1, SIZE, file) : 0;

    if (file)
        fclose(file);
    return got == SIZE ? 0 : BAL_EIO;
}

/* BF16 as it is in files, of which the first SIZE bytes count. */
static int measure_files(measurement *run, uint8_t *from, uint8_t *base,
                         char **paths, bal_error *err)
{
    static const bal_grain alone = ALONE(BF16, 2);
    static const bal_grain on_base = ON_BASE(BF16, 2);
    int rc = read_file(from, paths[0]);

    if (!rc && paths[1])
        rc = read_file(base, paths[1]);
    if (rc)
        return bal_fail(err, rc, "no %d bytes", SIZE);
    run->grain = paths[1] ? on_base : alone;
    run->effort = BAL_EFFORT_AUTO;
    return measure(run, paths[0], "auto", err);
}

static int measure_kinds(measurement *run, uint8_t *from, uint8_t *base,
                         const char *kind, const char *effort, bal_error *err)
{
    int rc = 0;

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]) && !rc; k++) {
        if (kind && !strstr(kinds[k].name, kind))
            continue;
        kinds[k].fill(from, base, &kinds[k]);
        run->grain = kinds[k].grain;
        for (size_t e = 0; e < 3 && !rc; e++) {
            if (effort && strcmp(efforts[e].name, effort) != 0)
                continue;
            run->effort = efforts[e].effort;
            rc = measure(run, kinds[k].name, efforts[e].name, err);
        }
    }
    return rc;
}

/* bench-codec [part of a kind's name [effort]], or --files TUNED [BASE] */
int main(int argc, char **argv)
{
    bool files = argc > 2 && !strcmp(argv[1], "--files");
    uint8_t *from = malloc(SIZE);
    uint8_t *to = malloc(SIZE);
    uint8_t *base = malloc(SIZE);
    bal_error err = { 0 };
    measurement run = { .from = from, .to = to, .base = base };
    int rc = bal_coder_new(&run.coder, &err);

    if (!from || !to || !base)
        rc = BAL_ENOMEM;
    printf("%-17s %-5s %-8s %9s %8s %8s %8s %8s %8s\n", "kind", "", "codec",
           "ratio", "encode", "decode", "memcpy", "enc/cpy", "dec/cpy");
    if (!rc && files)
        rc = measure_files(&run, from, base, argv + 2, &err);
    else if (!rc)
        rc = measure_kinds(&run, from, base, argc > 1 ? argv[1] : NULL,
                           argc > 2 ? argv[2] : NULL, &err);
    if (rc)
        fprintf(stderr, "%d %s\n", rc, err.text);
    for (size_t i = 0; i < BLOCKS; i++)
        bal_buf_done(&run.packed[i]);
    bal_coder_free(run.coder);
    free(from);
    free(to);
    free(base);
    return rc ? 1 : 0;
}
