/* The loops of each table against base's, in cache; then what minus and plus
 * read a second on one thread, against memcpy of what they give. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernel/kernels.h"
#include "support/memory_model.h"
#include "support/strange.h"

enum { N = 8192, TIMES = 400, RUNS = 7 };

static float f32[N], f32b[N];
static double f64[N], f64b[N];
static uint16_t f16[N];
static bal_compare sums;

/* Of this thread on a CPU: others on the machine do not count. */
static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void widen_bf16(const bal_kernels *k)
{
    k->to_f32[BAL_BF16](f32, f16, N);
}

static void widen_f16(const bal_kernels *k)
{
    k->to_f32[BAL_F16](f32, f16, N);
}

static void widen_f32(const bal_kernels *k)
{
    k->to_f64[BAL_F32](f64, f32b, N);
}

static void narrow_bf16(const bal_kernels *k)
{
    k->from_f32[BAL_BF16](f16, f32b, N);
}

static void narrow_f16(const bal_kernels *k)
{
    k->from_f32[BAL_F16](f16, f32b, N);
}

static void narrow_f64_bf16(const bal_kernels *k)
{
    k->from_f64[BAL_BF16](f16, f64b, N);
}

static void sub_f32(const bal_kernels *k)
{
    k->sub_f32(f32, f32, f32b, N);
}

static void axpy(const bal_kernels *k)
{
    k->axpy(f64, 0.5, f32b, N);
}

static void sub_bits2(const bal_kernels *k)
{
    k->sub_bits[1](f16, f16, f32b, N);
}

static void zero(const bal_kernels *k)
{
    static const char zeros[4 * N];

    if (!k->zero(zeros, sizeof(zeros)))
        abort();
}

static void compare(const bal_kernels *k)
{
    k->compare[BAL_F64](&sums, f64, f64b, N);
}

static const struct {
    const char *name;
    void (*run)(const bal_kernels *);
} loops[] = {
    { "bf16 to f32", widen_bf16 }, { "f16 to f32", widen_f16 },
    { "f32 to f64", widen_f32 },   { "f32 to bf16", narrow_bf16 },
    { "f32 to f16", narrow_f16 },  { "f64 to bf16", narrow_f64_bf16 },
    { "sub f32", sub_f32 },        { "axpy f32", axpy },
    { "sub bits 2", sub_bits2 },   { "zero", zero },
    { "compare", compare },
};

static int order(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Elements a second, median of the runs. */
static double speed_of(size_t loop, const bal_kernels *kernels)
{
    double taken[RUNS];

    for (size_t run = 0; run < RUNS; run++) {
        double start = seconds();
        for (size_t i = 0; i < TIMES; i++)
            loops[loop].run(kernels);
        taken[run] = seconds() - start;
    }
    qsort(taken, RUNS, sizeof(*taken), order);
    return (double)N * TIMES / taken[RUNS / 2];
}

static void bench_loops(void)
{
    printf("loop            base G/s");
    for (size_t i = 1; i < bal_kernels_count(); i++)
        printf("   %s/base", bal_kernels_at(i)->isa);
    for (size_t loop = 0; loop < sizeof(loops) / sizeof(loops[0]); loop++) {
        double base = speed_of(loop, bal_kernels_at(0));
        printf("\n%-14s %9.2f", loops[loop].name, base * 1e-9);
        for (size_t i = 1; i < bal_kernels_count(); i++)
            printf("   %6.2fx", speed_of(loop, bal_kernels_at(i)) / base);
    }
    printf("\n\n");
}

/* ---- models ---------------------------------------------------------------
 */

enum { ELEMENTS = 32 << 20, READ = 4 << 20 };

static bal_model *model_of(bal_dtype dtype, unsigned noise)
{
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, "bench");
    uint64_t elements = ELEMENTS;
    uint64_t state = 1;
    uint64_t other = 2;
    float *values = malloc((size_t)ELEMENTS * 4);
    void *data = malloc((size_t)ELEMENTS * 4);

    if (!values || !data)
        abort();
    for (size_t i = 0; i < ELEMENTS; i++)
        values[i] =
            (float)(int32_t)strange_bits(&state) * 1e-11f +
            (float)(int32_t)strange_bits(&other) * 1e-14f * (float)noise;
    bal_kernels_use()->from_f32[dtype](data, values, ELEMENTS);
    memory_tensor(model, "w", dtype, 1, &elements, data);
    memory_finish(model);
    free(values);
    free(data);
    return model;
}

/* Bytes of tuned a second in reading entry 0. */
static double read_speed(bal_model *model, double bytes)
{
    static char to[READ];
    double taken[RUNS];

    for (size_t run = 0; run < RUNS; run++) {
        double start = seconds();
        uint64_t size = bal_model_at(model, 0)->size;
        for (uint64_t at = 0; at < size; at += READ) {
            size_t len = size - at < READ ? (size_t)(size - at) : READ;
            if (bal_model_read(model, 0, at, to, len, NULL))
                abort();
        }
        taken[run] = seconds() - start;
    }
    qsort(taken, RUNS, sizeof(*taken), order);
    return bytes / taken[RUNS / 2];
}

static int ignore(void *ctx, const bal_diff_row *row)
{
    (void)ctx;
    (void)row;
    return 0;
}

static void bench_models(bal_dtype dtype)
{
    BAL_OWN(bal_model) base = model_of(dtype, 0);
    BAL_OWN(bal_model) tuned = model_of(dtype, 1);
    BAL_OWN(bal_model) minus = NULL;
    BAL_OWN(bal_model) plus = NULL;
    bal_work *work = NULL;
    double bytes = (double)bal_model_at(tuned, 0)->size;

    if (bal_work_new(&work, 1, NULL))
        abort();
    double start = seconds();
    if (bal_model_minus(&minus, tuned, base, work, NULL))
        abort();
    double opened = seconds();
    if (bal_model_plus(&plus, base, minus, 0, work, NULL))
        abort();
    double verified = seconds();
    printf("%s, GB of tuned a second, one thread: copy %.2f  minus opens %.2f"
           "  reads %.2f  plus verifies %.2f  reads minus %.2f",
           bal_dtype_name(dtype), read_speed(tuned, bytes) * 1e-9,
           bytes / (opened - start) * 1e-9, read_speed(minus, bytes) * 1e-9,
           bytes / (verified - opened) * 1e-9, read_speed(plus, bytes) * 1e-9);
    start = seconds();
    if (bal_diff(base, tuned, work, ignore, NULL, NULL))
        abort();
    printf("  diff %.2f  residual %s\n", bytes / (seconds() - start) * 1e-9,
           bal_model_count(minus) > 1 ? "yes" : "no");
    bal_work_free(work);
}

int main(void)
{
    bench_loops();
    bench_models(BAL_BF16);
    bench_models(BAL_F32);
    return 0;
}
