/* Sets of probes for tests. */
#include "support/probes.h"

#include <stdlib.h>
#include <string.h>

bal_probes *probes_of(const char *array)
{
    BAL_LOCAL(bal_buf) json = { 0 };
    bal_probes *probes = NULL;
    int rc = bal_buf_format(
        &json, NULL, "{\"probes\":%s,\"schema\":\"ballast/probes/1\"}", array);

    if (rc || bal_probes_read(&probes, json.data, json.len, NULL))
        abort();
    return probes;
}
