/* How fast each kind of bytes goes through bal_encode and bal_decode, on one
 * thread, beside memcpy of the same bytes in the same run: on a shared machine
 * only the two together say something. Processor time, best of several
 * rounds. */
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

static void fill_bf16(uint8_t *to)
{
    for (size_t i = 0; i < SIZE; i += 2) {
        uint32_t half = bf16_of((float)draw_normal(0.02));
        memcpy(to + i, &half, 2);
    }
}

static void fill_f16(uint8_t *to)
{
    for (size_t i = 0; i < SIZE; i += 2) {
        uint32_t half = f16_of((float)draw_normal(0.02));
        memcpy(to + i, &half, 2);
    }
}

static void fill_f32(uint8_t *to)
{
    for (size_t i = 0; i < SIZE; i += 4) {
        float value = (float)draw_normal(0.02);
        memcpy(to + i, &value, 4);
    }
}

/* tuned - base, of bf16 values: most need few bits. */
static void fill_difference(uint8_t *to)
{
    for (size_t i = 0; i < SIZE; i += 4) {
        float base = f32_of_bf16(bf16_of((float)draw_normal(0.02)));
        float change = (float)draw_normal(1e-4);
        float value = f32_of_bf16(bf16_of(base + change)) - base;
        memcpy(to + i, &value, 4);
    }
}

static void fill_f64(uint8_t *to)
{
    for (size_t i = 0; i < SIZE; i += 8) {
        double value = draw_normal(0.02);
        memcpy(to + i, &value, 8);
    }
}

static void fill_random(uint8_t *to)
{
    for (size_t i = 0; i < SIZE; i += 8) {
        uint64_t value = draw();
        memcpy(to + i, &value, 8);
    }
}

static void fill_zero(uint8_t *to)
{
    memset(to, 0, SIZE);
}

static void fill_text(uint8_t *to)
{
    size_t at = 0;

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

static const struct {
    const char *name;
    uint8_t width;
    void (*fill)(uint8_t *to);
} kinds[] = {
    { "bf16 N(0, 0.02)", 2, fill_bf16 },
    { "f16 N(0, 0.02)", 2, fill_f16 },
    { "f32 N(0, 0.02)", 4, fill_f32 },
    { "f32 difference", 4, fill_difference },
    { "f64 N(0, 0.02)", 8, fill_f64 },
    { "random u16", 2, fill_random },
    { "random u8", 1, fill_random },
    { "zero f32", 4, fill_zero },
    { "text", 0, fill_text },
};

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

static int encode_all(measurement *run, bal_error *err)
{
    double start = seconds_used();

    for (size_t i = 0; i < BLOCKS; i++) {
        bal_bytes from = { run->from + i * BLOCK, BLOCK };
        bal_buf_clear(&run->packed[i]);
        int rc = bal_encode(run->coder, &run->used[i], &run->packed[i], from,
                            &run->grain, run->effort, err);
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
        int rc = bal_decode(run->coder, run->used[i], run->to + i * BLOCK,
                            BLOCK, payload_of(run, i), &run->grain, err);
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
    printf("%-16s %-5s %-6s %9.3f %8.2f %8.2f %8.2f %8.2f %8.2f\n", kind,
           effort, bal_codec_find(run->used[0])->name,
           (double)SIZE / (double)stored, SIZE / run->encode / 1e9,
           SIZE / run->decode / 1e9, SIZE / run->copy / 1e9,
           run->copy / run->encode, run->copy / run->decode);
    return 0;
}

/* bench-codec [part of a kind's name [effort]] */
int main(int argc, char **argv)
{
    uint8_t *from = malloc(SIZE);
    uint8_t *to = malloc(SIZE);
    bal_error err = { 0 };
    measurement run = { .from = from, .to = to };
    int rc = bal_coder_new(&run.coder, &err);

    if (!from || !to)
        rc = BAL_ENOMEM;
    printf("%-16s %-5s %-6s %9s %8s %8s %8s %8s %8s\n", "kind", "", "codec",
           "ratio", "encode", "decode", "memcpy", "enc/cpy", "dec/cpy");
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]) && !rc; k++) {
        if (argc > 1 && !strstr(kinds[k].name, argv[1]))
            continue;
        kinds[k].fill(from);
        run.grain.width = kinds[k].width;
        for (size_t e = 0; e < 3 && !rc; e++) {
            if (argc > 2 && strcmp(efforts[e].name, argv[2]) != 0)
                continue;
            run.effort = efforts[e].effort;
            rc = measure(&run, kinds[k].name, efforts[e].name, &err);
        }
    }
    if (rc)
        fprintf(stderr, "%d %s\n", rc, err.text);
    for (size_t i = 0; i < BLOCKS; i++)
        bal_buf_done(&run.packed[i]);
    bal_coder_free(run.coder);
    free(from);
    free(to);
    return rc ? 1 : 0;
}
