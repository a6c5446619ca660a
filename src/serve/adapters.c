/* The rank of an adapter, and its side files. */
#include "serve/adapters.h"

#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"

#define SIDE_MAX ((uint64_t)16 << 20)

int bal_adapter_file(bal_buf *to, bal_model *model, const char *name,
                     bal_error *err)
{
    size_t i = bal_model_find(model, BAL_PART_FILE, name);
    if (i == BAL_NONE)
        return bal_fail(err, BAL_ENOTFOUND, "there is no '%s'", name);

    uint64_t size = bal_model_at(model, i)->size;
    if (size > SIDE_MAX)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "'%s' has %" PRIu64 " bytes, at most %" PRIu64, name,
                        size, SIDE_MAX);
    int rc = bal_buf_reserve(to, (size_t)size, err);
    if (rc || !size)
        return rc;
    rc = bal_model_read(model, i, 0, to->data + to->len, (size_t)size, err);
    if (rc)
        return rc;
    to->len += (size_t)size;
    to->data[to->len] = '\0';
    return 0;
}

static uint64_t told_rank(const char *text, size_t len)
{
    BAL_OWN(json_t) config = NULL;

    if (bal_json_parse(&config, text, len, "the config", NULL))
        return 0;
    json_int_t rank = json_integer_value(json_object_get(config, "r"));
    return rank > 0 ? (uint64_t)rank : 0;
}

int bal_adapter_rank(uint64_t *out, bal_model *model, bal_error *err)
{
    BAL_LOCAL(bal_buf) config = { 0 };

    *out = bal_model_lora_rank(model);
    if (*out)
        return 0;
    int rc = bal_adapter_file(&config, model, "adapter_config.json", err);
    if (rc == BAL_ENOTFOUND || rc == BAL_EUNSUPPORTED)
        return 0;
    if (!rc)
        *out = told_rank(bal_buf_string(&config), config.len);
    return rc;
}
