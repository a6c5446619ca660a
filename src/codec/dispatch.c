/* Which loops: those of the kernels in use, so that one choice is made. The
 * build says by BAL_LOOPS_V3 and BAL_LOOPS_V4 which there are beside base. */
#include <string.h>

#include "codec/loops.h"
#include "kernel/kernels.h"

static const bal_loops *const rows[] = {
    &bal_loops_base,
#if defined(BAL_LOOPS_V3)
    &bal_loops_v3,
#endif
#if defined(BAL_LOOPS_V4)
    &bal_loops_v4,
#endif
};

size_t bal_loops_count(void)
{
    return sizeof(rows) / sizeof(rows[0]);
}

static const bal_loops *find(const char *isa)
{
    for (size_t i = 0; i < bal_loops_count(); i++) {
        if (!strcmp(rows[i]->isa, isa))
            return rows[i];
    }
    return NULL;
}

const bal_loops *bal_loops_use(void)
{
    const bal_loops *found = find(bal_kernels_use()->isa);

    return found ? found : &bal_loops_base;
}

const bal_loops *bal_loops_at(size_t i)
{
    for (size_t k = 0; k < bal_kernels_count() && i < bal_loops_count(); k++) {
        if (!strcmp(bal_kernels_at(k)->isa, rows[i]->isa))
            return rows[i];
    }
    return NULL;
}
