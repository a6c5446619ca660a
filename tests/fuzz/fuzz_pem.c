/* Keys of any bytes: what is read is written as PEM that reads back as the same
 * key. */
#include <stdlib.h>
#include <string.h>

#include "core/key_inside.h"
#include "support/fuzz.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_back(const bal_key *key, const char *pem)
{
    BAL_OWN(bal_key) back = NULL;

    must(!bal_key_parse(&back, (bal_bytes){ pem, strlen(pem) }, "k", NULL));
    must(!strcmp(bal_key_id(back), bal_key_id(key)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_OWN(bal_key) key = NULL;
    char pem[BAL_PEM_ROOM];

    int rc = bal_key_parse(&key, (bal_bytes){ data, size }, "k", NULL);
    must(!rc || rc == BAL_EINVAL);
    must(!rc == (key != NULL));
    if (rc)
        return 0;
    check_back(key, bal_key_public(key));
    if (!bal_key_signs(key))
        return 0;
    must(!bal_key_private(key, pem, NULL));
    check_back(key, pem);
    return 0;
}
