/* Versions of the same numbers, as blocks that are coded by each other. */
#include "support/based.h"

#include <string.h>

#include "core/hash.h"
#include "support/bytes.h"

/* Version v of the same numbers: BF16, each one near the last version's. */
void based_data(uint8_t *data, size_t v)
{
    bytes_seed(5);
    bytes_bf16(data, BLOCKS_SIZE);
    for (size_t i = 0; i < BLOCKS_SIZE; i += 2)
        data[i] =
            (uint8_t)((data[i] & 0x80) + (data[i] / 2 + v * (i % 7)) % 64);
}

bal_block_span based_whole(const bal_id *id)
{
    return (bal_block_span){ *id, BLOCKS_SIZE, 0, BLOCKS_SIZE };
}

bal_id based_put(blocks_fixture *self, const uint8_t *data,
                 const bal_block_span *spans, size_t count, bal_effort effort,
                 bal_put *put)
{
    const bal_block_kind kind = { .width = 2,
                                  .kind = BAL_NUMBER_BF16,
                                  .base_kind = BAL_NUMBER_BF16,
                                  .base = spans,
                                  .base_count = count };
    bal_batch batch = { 0 };
    bal_id id;

    bal_hash_of(&id, data, BLOCKS_SIZE);
    CHECK_OK(bal_batch_begin(&batch, self->blocks, blocks_tenant, effort,
                             &check_err));
    CHECK_OK(bal_batch_put(&batch, &id, (bal_bytes){ data, BLOCKS_SIZE }, &kind,
                           put, &check_err));
    put->bases = NULL;
    CHECK_OK(bal_batch_settle(&batch, self->work, &check_err));
    bal_batch_done(&batch);
    return id;
}

/* By the version before it; version 0 by none. */
bal_id based_version(blocks_fixture *self, size_t v, const bal_id *base,
                     bal_put *put)
{
    uint8_t data[BLOCKS_SIZE];
    bal_block_span span = { 0 };

    if (base)
        span = based_whole(base);
    based_data(data, v);
    return based_put(self, data, &span, base != NULL, BAL_EFFORT_AUTO, put);
}

void based_check(bal_blocks *blocks, const bal_id *id, size_t v)
{
    uint8_t data[BLOCKS_SIZE];
    uint8_t back[BLOCKS_SIZE] = { 0 };

    based_data(data, v);
    CHECK_OK(blocks_read(blocks, id, back));
    CHECK(!memcmp(back, data, BLOCKS_SIZE));
    memset(back, 0, sizeof(back));
    CHECK_OK(bal_blocks_read(blocks,
                             &(bal_block_ref){ blocks_tenant, id, BLOCKS_SIZE },
                             33, back, 777, &check_err));
    CHECK(!memcmp(back, data + 33, 777));
    CHECK_OK(blocks_verify(blocks, id, 0));
    CHECK_OK(blocks_verify(blocks, id, BAL_VERIFY_PAYLOAD));
    CHECK_OK(blocks_verify(blocks, id, BAL_VERIFY_HEADER));
}
