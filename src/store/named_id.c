/* "tenant:id" taken apart. It comes out of rows and files that anybody may have
 * written, and the tenant becomes part of paths. */
#include "store/named_id.h"

#include <string.h>

#include "core/error.h"
#include "core/str.h"

int bal_named_id_parse(bal_named_id *out, const char *text, bal_error *err)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    bal_named_id found = { .tenant = "" };

    if (colon && (size_t)(colon - text) < sizeof(found.tenant))
        memcpy(found.tenant, text, (size_t)(colon - text));
    if (!colon || bal_tenant_check(found.tenant, NULL) ||
        bal_id_parse(&found.id, colon + 1, NULL))
        return bal_fail(err, BAL_ECORRUPT, "'%.140s' is not 'tenant:id'",
                        text ? text : "");
    *out = found;
    return 0;
}
