/* The body of a merge of any bytes: refused for a reason, or one with inputs
 * that each have a spec. */
#include <stdlib.h>
#include <string.h>

#include "serve/merge_body.h"
#include "support/fuzz.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_LOCAL(bal_merge_body) body = { 0 };
    bal_error err = { 0 };
    const bal_bytes text = { data, size };

    if (bal_merge_body_read(&body, text, &err)) {
        must(err.code == BAL_EINVAL && err.text[0]);
        must(!body.root);
        return 0;
    }
    must(body.method && body.ref && body.message);
    must(json_array_size(body.inputs) > 0);
    for (size_t i = 0; i < json_array_size(body.inputs); i++) {
        const json_t *input = json_array_get(body.inputs, i);
        must(json_is_string(json_object_get(input, "spec")));
    }
    return 0;
}
