/* Envelopes of any bytes: what is read survives being written without its
 * signatures, and nothing verifies that was not signed. */
#include <stdlib.h>
#include <string.h>

#include "core/dsse.h"
#include "support/fuzz.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

static bool same(bal_bytes a, bal_bytes b)
{
    return a.len == b.len && (!a.len || !memcmp(a.data, b.data, a.len));
}

static void check_written(const bal_dsse *read)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_dsse) back = { 0 };

    must(!bal_dsse_write(&text, read->type, read->payload, NULL, NULL));
    must(!bal_dsse_read(&back, (bal_bytes){ text.data, text.len }, NULL));
    must(!strcmp(back.type, read->type) && back.count == 0);
    must(same(back.payload, read->payload));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_LOCAL(bal_dsse) read = { 0 };
    BAL_OWN(bal_key) key = NULL;
    static const uint8_t public[32] = { 1, 2, 3 };
    bool good = true;

    int rc = bal_dsse_read(&read, (bal_bytes){ data, size }, NULL);
    must(!rc || rc == BAL_ECORRUPT);
    if (rc)
        return 0;
    must(read.count <= BAL_DSSE_SIGNATURES);
    check_written(&read);
    must(!bal_key_of_public(&key, public, NULL));
    must(!bal_dsse_verify(&read, key, &good, NULL) && !good);
    return 0;
}
