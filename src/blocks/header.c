/* The first bytes of a block at rest; docs/format.md has them one by one. */
#include <string.h>

#include "blocks/blocks.h"
#include "core/arith.h"
#include "core/error.h"

/* Like PNG's: not text, not one byte of UTF-8, and changed by whoever takes it
 * for text. */
static const uint8_t magic[8] = { 0x89, 'B', 'A', 'L', 'B', 'L', 'K', '\n' };

enum {
    AT_VERSION = 8,
    AT_CODEC = 9,
    AT_WIDTH = 10,
    AT_FLAGS = 11,
    AT_EXTRA = 12,
    AT_LOGICAL = 16,
    AT_PAYLOAD = 24,
    AT_CHECK = 32,
    VERSION = 1,
    MAX_WIDTH = 8,
};

void bal_block_header_write(uint8_t out[BAL_BLOCK_HEADER],
                            const bal_block_header *header)
{
    memcpy(out, magic, sizeof(magic));
    out[AT_VERSION] = VERSION;
    out[AT_CODEC] = header->codec;
    out[AT_WIDTH] = header->width;
    out[AT_FLAGS] = header->flags;
    bal_put32(out + AT_EXTRA, header->extra);
    bal_put64(out + AT_LOGICAL, header->logical);
    bal_put64(out + AT_PAYLOAD, header->payload);
    memcpy(out + AT_CHECK, header->check, sizeof(header->check));
}

static int check_lengths(const bal_block_header *header, bal_error *err)
{
    if (header->logical > BAL_BLOCK_LONGEST)
        return bal_fail(err, BAL_ECORRUPT, "header: longer than a block is");
    if (header->payload > header->logical)
        return bal_fail(err, BAL_ECORRUPT,
                        "header: payload longer than what it decodes to");
    if (header->width > MAX_WIDTH)
        return bal_fail(err, BAL_ECORRUPT, "header: elements of %u bytes",
                        header->width);
    return 0;
}

int bal_block_header_read(bal_block_header *out, bal_bytes bytes,
                          bal_error *err)
{
    const uint8_t *from = bytes.data;
    bal_block_header header = { 0 };

    if (bytes.len < BAL_BLOCK_HEADER)
        return bal_fail(err, BAL_ECORRUPT, "header: cut short");
    if (memcmp(from, magic, sizeof(magic)) != 0)
        return bal_fail(err, BAL_ECORRUPT, "header: not a block");
    if (from[AT_VERSION] != VERSION)
        return bal_fail(err, BAL_EUNSUPPORTED, "header: version %u",
                        from[AT_VERSION]);
    header.codec = from[AT_CODEC];
    header.width = from[AT_WIDTH];
    header.flags = from[AT_FLAGS];
    header.extra = bal_get32(from + AT_EXTRA);
    header.logical = bal_get64(from + AT_LOGICAL);
    header.payload = bal_get64(from + AT_PAYLOAD);
    memcpy(header.check, from + AT_CHECK, sizeof(header.check));
    int rc = check_lengths(&header, err);
    if (rc)
        return rc;
    *out = header;
    return 0;
}
