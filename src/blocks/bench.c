/* What threads need to code blocks, kept between one block and the next. */
#include <stdlib.h>

#include "blocks/inside.h"
#include "core/error.h"

static void bench_free(bal_bench *bench)
{
    bal_coder_free(bench->coder);
    bal_buf_done(&bench->bytes);
    bal_buf_done(&bench->base);
    free(bench);
}

void bal_benches_free(bal_blocks *blocks)
{
    while (blocks->idle) {
        bal_bench *bench = blocks->idle;
        blocks->idle = bench->next;
        bench_free(bench);
    }
}

int bal_bench_take(bal_bench **out, bal_blocks *blocks, bal_error *err)
{
    pthread_mutex_lock(&blocks->lock);
    bal_bench *bench = blocks->idle;
    if (bench)
        blocks->idle = bench->next;
    pthread_mutex_unlock(&blocks->lock);

    if (!bench) {
        bench = calloc(1, sizeof(*bench));
        if (!bench)
            return bal_fail_memory(err, "a coder");
        int rc = bal_coder_new(&bench->coder, err);
        if (rc) {
            bench_free(bench);
            return rc;
        }
    }
    bal_buf_clear(&bench->bytes);
    bal_buf_clear(&bench->base);
    bench->bytes.ceiling = 0;
    *out = bench;
    return 0;
}

void bal_bench_give(bal_blocks *blocks, bal_bench *bench)
{
    pthread_mutex_lock(&blocks->lock);
    bench->next = blocks->idle;
    blocks->idle = bench;
    pthread_mutex_unlock(&blocks->lock);
}
