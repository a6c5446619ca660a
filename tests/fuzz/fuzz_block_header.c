/* The header of a block at rest: what is accepted is written back the same. */
#include <stdlib.h>
#include <string.h>

#include "blocks/blocks.h"
#include "support/fuzz.h"

static void require(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bal_block_header header = { 0 };
    uint8_t again[BAL_BLOCK_HEADER];
    int rc = bal_block_header_read(&header, (bal_bytes){ data, size }, NULL);

    require(rc == 0 || rc == BAL_ECORRUPT || rc == BAL_EUNSUPPORTED);
    if (rc)
        return 0;
    require(header.payload <= header.logical);
    require(header.logical <= BAL_BLOCK_LONGEST);
    bal_block_header_write(again, &header);
    require(!memcmp(again, data, BAL_BLOCK_HEADER));
    return 0;
}
