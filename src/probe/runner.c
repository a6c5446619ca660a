/* The runners there are. */
#include "probe/runner.h"

#include <string.h>

#include "core/error.h"

static const bal_runner_row *const rows[] = {
    &bal_runner_process,
    &bal_runner_http,
    &bal_runner_peft,
    &bal_runner_fake,
};

int bal_runner_find(const bal_runner_row **out, const char *name,
                    bal_error *err)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!strcmp(rows[i]->name, name)) {
            *out = rows[i];
            return 0;
        }
    }
    return bal_hint(err, bal_fail(err, BAL_EINVAL, "no runner '%.80s'", name),
                    "there are process, http, peft and fake");
}
