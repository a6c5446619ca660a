/* The one rule that reads what the tensors hold: each of floats once. */
#include <stdlib.h>

#include "core/arith.h"
#include "core/error.h"
#include "model/elements.h"
#include "model/preflight.h"

enum { CHUNK = 64 * 1024 };

/* The first element that is not finite; BAL_NONE: all are. */
static int first_bad(bal_flight *self, size_t entry, double *room, uint64_t *at,
                     bal_error *err)
{
    uint64_t total = bal_elements_of(bal_model_at(self->adapter, entry));

    *at = UINT64_MAX;
    for (uint64_t start = 0; start < total; start += CHUNK) {
        size_t n = (size_t)bal_min(total - start, CHUNK);
        int rc = bal_elements_read(room, self->adapter, entry, start, n, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < n; i++) {
            if (room[i] - room[i] == 0)
                continue;
            *at = start + i;
            return 0;
        }
    }
    return 0;
}

int bal_rule_not_finite(bal_flight *self, bal_error *err)
{
    double *room = malloc(CHUNK * sizeof(*room));
    int rc = room ? 0 : bal_fail_memory(err, "reading an adapter");

    for (size_t i = 0; i < self->parts.count && !rc; i++) {
        size_t entry = self->parts.tensors[i].entry;
        const bal_tensor *tensor = bal_model_at(self->adapter, entry);
        uint64_t at = UINT64_MAX;

        if (!bal_tensor_float(tensor))
            continue;
        rc = first_bad(self, entry, room, &at, err);
        if (!rc && at != UINT64_MAX)
            rc = bal_flight_tell(self, tensor->name, err,
                                 "element %llu is not a finite number",
                                 (unsigned long long)at);
    }
    free(room);
    return rc;
}
