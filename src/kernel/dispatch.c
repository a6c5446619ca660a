/* Which table of loops this CPU runs, decided once a process. The build says by
 * BAL_KERNEL_V3 and BAL_KERNEL_V4 which there are beside base. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "kernel/tables.h"

#if defined(BAL_KERNEL_V3) || defined(BAL_KERNEL_V4)
#include <cpuid.h>

/* What compilers' own CPU checks cannot name everywhere: F16C and MOVBE in leaf
 * 1, LZCNT in leaf 0x80000001, all in ecx. */
static bool runs_small_ones(void)
{
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_F16C) || !(c & bit_MOVBE))
        return false;
    return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & bit_LZCNT);
}

static bool runs_v3(void)
{
    return __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("fma") && __builtin_cpu_supports("popcnt") &&
           __builtin_cpu_supports("sse4.2") && runs_small_ones();
}
#endif

#if defined(BAL_KERNEL_V4)
static bool runs_v4(void)
{
    return runs_v3() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

static bool runs_base(void)
{
    return true;
}

/* From the plainest to the best. */
static const struct {
    const bal_kernels *table;
    bool (*runs)(void);
} rows[] = {
    { &bal_kernels_base, runs_base },
#if defined(BAL_KERNEL_V3)
    { &bal_kernels_v3, runs_v3 },
#endif
#if defined(BAL_KERNEL_V4)
    { &bal_kernels_v4, runs_v4 },
#endif
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
    const bal_kernels *tables[ROWS];
    size_t count;
    const bal_kernels *use;
} choice;

static void choose(void)
{
    const char *asked = getenv("BALLAST_ISA");

    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].runs())
            choice.tables[choice.count++] = rows[i].table;
    }
    choice.use = choice.tables[choice.count - 1];
    if (!asked || !*asked)
        return;
    for (size_t i = 0; i < choice.count; i++) {
        if (!strcmp(choice.tables[i]->isa, asked)) {
            choice.use = choice.tables[i];
            return;
        }
    }
    bal_warn("kernel", "isa=%s there=no use=%s", asked, choice.use->isa);
}

const bal_kernels *bal_kernels_use(void)
{
    pthread_once(&once, choose);
    return choice.use;
}

size_t bal_kernels_count(void)
{
    pthread_once(&once, choose);
    return choice.count;
}

const bal_kernels *bal_kernels_at(size_t i)
{
    pthread_once(&once, choose);
    return i < choice.count ? choice.tables[i] : NULL;
}

void bal_compare_fold(bal_compared *out, const bal_compare *sums)
{
    bal_compared fold = { .wrong = sums->wrong, .unequal = sums->unequal };

    for (size_t i = 0; i < sizeof(sums->diff2) / sizeof(sums->diff2[0]); i++) {
        fold.diff2 += sums->diff2[i];
        fold.norm2 += sums->norm2[i];
        fold.max_abs =
            sums->max_abs[i] > fold.max_abs ? sums->max_abs[i] : fold.max_abs;
    }
    *out = fold;
}
