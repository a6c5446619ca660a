/* Ids as text, in order, and as engines know them. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"

int bal_id_parse(bal_id *out, const char *hex, bal_error *err)
{
    if (!bal_hex_read(out->bytes, sizeof(out->bytes), hex))
        return bal_fail(err, BAL_EINVAL,
                        "'%.80s' is not an id of 64 lower-case hex digits",
                        hex);
    return 0;
}

void bal_id_hex(char out[BAL_ID_HEX + 1], const bal_id *id)
{
    bal_hex_write(out, id->bytes, sizeof(id->bytes));
}

uint32_t bal_id_serving(const bal_id *commit)
{
    uint64_t front = 0;

    for (size_t i = 0; i < 8; i++)
        front = front << 8 | commit->bytes[i];
    /* 15 hex digits are 60 bits. */
    return (uint32_t)((front >> 4) % INT32_MAX) + 1;
}

int bal_id_compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(bal_id));
}

size_t bal_ids_unique(bal_id *ids, size_t count)
{
    size_t kept = 0;

    if (count)
        qsort(ids, count, sizeof(*ids), bal_id_compare);
    for (size_t i = 0; i < count; i++) {
        if (!kept || !bal_id_equal(&ids[kept - 1], &ids[i]))
            ids[kept++] = ids[i];
    }
    return kept;
}
