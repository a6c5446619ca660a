/* Models and layers by name. */
#include "store/mergekit_names.h"

#include <string.h>

#include "core/error.h"
#include "core/str.h"

/* Where a map's entry is cut: specs have no '=', paths may. */
static const char *cut(const char *entry)
{
    return strrchr(entry, '=');
}

static bool is_of(const char *entry, const char *model, size_t len)
{
    return (size_t)(cut(entry) - entry) == len && !memcmp(entry, model, len);
}

int bal_mergekit_map_check(const char *const *map, size_t count, bal_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = cut(map[i]);
        if (!at || at == map[i] || !at[1])
            return bal_fail(err, BAL_EINVAL, "'%s' is not MODEL=SPEC", map[i]);
        size_t len = (size_t)(at - map[i]);
        for (size_t k = 0; k < i; k++) {
            if (is_of(map[k], map[i], len))
                return bal_fail(err, BAL_EINVAL, "model '%.*s' is mapped twice",
                                (int)len, map[i]);
        }
    }
    return 0;
}

const char *bal_mergekit_spec(const char *const *map, size_t count,
                              const char *model)
{
    const char *colon = strchr(model, ':');

    for (size_t i = 0; i < count; i++) {
        if (is_of(map[i], model, strlen(model)))
            return cut(map[i]) + 1;
    }
    return bal_hex_valid(colon ? colon + 1 : model, BAL_ID_HEX) ? model : NULL;
}
