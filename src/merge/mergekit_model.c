/* Names that mergekit has for things: models, and dtypes. */
#include <string.h>

#include "core/error.h"
#include "merge/mergekit.h"

/* ---- dtypes ------------------------------------------------------------- */

static const struct {
    const char *name, *ours;
} dtypes[] = {
    { "float32", "F32" },
    { "float16", "F16" },
    { "bfloat16", "BF16" },
    { "float64", "F64" },
};

const char *bal_mergekit_dtype(const char *name)
{
    static const char torch[] = "torch.";
    size_t prefix =
        strncmp(name, torch, sizeof(torch) - 1) == 0 ? sizeof(torch) - 1 : 0;

    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        if (!strcmp(dtypes[i].name, name + prefix))
            return dtypes[i].ours;
    }
    return NULL;
}

const char *bal_mergekit_dtype_name(const char *dtype)
{
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        if (!strcmp(dtypes[i].ours, dtype))
            return dtypes[i].name;
    }
    return NULL;
}

/* ---- models ------------------------------------------------------------- */

static bool has_more(const char *text, size_t len, char c, size_t most)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += text[i] == c;
    return count > most;
}

/* "path@revision+adapter@revision": mergekit takes one '+', and one '@' on each
 * side of it. */
static int check_text(bal_mergekit_model *out, const bal_yaml_node *node,
                      bal_error *err)
{
    const char *text = out->name;
    const char *plus = strchr(text, '+');
    size_t first = strcspn(text, "+");
    size_t len = strlen(text);

    if (!*text)
        return bal_yaml_fail(err, BAL_EINVAL, node, "no model is named");
    out->adapter = plus != NULL;
    if (has_more(text, len, '+', 1) || has_more(text, first, '@', 1) ||
        has_more(text + first, len - first, '@', 1))
        return bal_yaml_fail(err, BAL_EINVAL, node,
                             "'%s' is not PATH[@REVISION]"
                             "[+ADAPTER[@REVISION]]",
                             text);
    return 0;
}

static bool is_absent(const bal_yaml_node *node)
{
    return !node || node->type == BAL_YAML_NULL;
}

/* A text, or {path, revision}. */
static int put_part(bal_buf *to, const bal_yaml_node *node,
                    const bal_yaml_node *at, bal_error *err)
{
    bool map = node && node->type == BAL_YAML_MAP;
    const bal_yaml_node *path = map ? bal_yaml_get(node, "path") : node;
    const bal_yaml_node *revision = bal_yaml_get(node, "revision");

    if (is_absent(path) || !path->text)
        return bal_yaml_fail(err, BAL_EINVAL, at, "no model is named");
    int rc = bal_buf_text(to, path->text, err);
    if (rc || is_absent(revision))
        return rc;
    if (!revision->text)
        return bal_yaml_fail(err, BAL_EINVAL, revision, "no revision");
    return bal_buf_format(to, err, "@%s", revision->text);
}

static int put_map(bal_buf *to, const bal_yaml_node *node, bal_error *err)
{
    const bal_yaml_node *adapter = bal_yaml_get(node, "lora");
    int rc = put_part(to, bal_yaml_get(node, "model"), node, err);

    if (rc || is_absent(adapter))
        return rc;
    rc = bal_buf_text(to, "+", err);
    return rc ? rc : put_part(to, adapter, node, err);
}

int bal_mergekit_reference(bal_mergekit_model *out, bal_arena *arena,
                           const bal_yaml_node *node, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc;

    if (node->type == BAL_YAML_MAP)
        rc = put_map(&text, node, err);
    else
        rc = put_part(&text, node, node, err);
    if (rc)
        return rc;
    out->name = bal_arena_copy(arena, bal_buf_string(&text), text.len);
    if (!out->name)
        return bal_fail_memory(err, "a configuration");
    return check_text(out, node, err);
}
