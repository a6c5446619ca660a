/* Names of base models come from configs, and configs are written on other
 * people's machines: a path in one is cut to its last part, so that nobody's
 * home directory gets into a commit. */
#include "model/facts.h"

#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/str.h"

enum { CONFIG_MAX = 64 << 20, REVISION_LEN = 40 };

/* Parts of names that tensors of adapters alone have. */
static const char *const adapter_marks[] = {
    "lora_A",
    "lora_B",
    ".lora_a",
    ".lora_b",
    "lora_down",
    "lora_up",
    "lora_embedding_",
    ".ia3_",
    ".hada_",
    ".lokr_",
    ".oft_",
    ".vera_",
    ".boft_",
    "prompt_embeddings",
    "lora_magnitude_vector",
};

static bool looks_adapter(const bal_model *model)
{
    bool marked = false;

    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        if (entry->part != BAL_PART_TENSOR)
            break;
        /* Training saves that hold the whole model with its adapter. */
        if (strstr(entry->name, ".base_layer."))
            return false;
        for (size_t k = 0; k < sizeof(adapter_marks) / sizeof(adapter_marks[0]);
             k++)
            marked = marked || strstr(entry->name, adapter_marks[k]) != NULL;
    }
    return marked;
}

/* An object, or NULL where there is none that can be read: what a config says
 * is told, never needed. */
static json_t *read_config(const char *dir, const char *name)
{
    BAL_LOCAL(bal_buf) text = { .ceiling = CONFIG_MAX + 1 };
    bal_error err = { 0 };
    json_t *value = NULL;
    char *path = dir ? bal_path_join(dir, name) : NULL;

    if (!path || bal_path_type_of(path) != BAL_PATH_FILE) {
        bal_str_free(path);
        return NULL;
    }
    int rc = bal_file_slurp(&text, path, CONFIG_MAX, &err);
    if (!rc)
        rc =
            bal_json_parse(&value, bal_buf_string(&text), text.len, path, &err);
    if (rc)
        bal_warn("model", "config=unread why=\"%s\"", err.text);
    bal_str_free(path);
    return value;
}

/* The text of a member, NULL: none, or empty. */
static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text && text[0] ? text : NULL;
}

/* ---- names in paths ----------------------------------------------------- */

/* The part of a path that ends at *end, and *end before it; "": no more. */
static const char *last_part(const char *path, size_t *end, size_t *len)
{
    while (*end && path[*end - 1] == '/')
        --*end;
    size_t start = *end;
    while (start && path[start - 1] != '/')
        start--;
    *len = *end - start;
    *end = start;
    return path + start;
}

/* "…/models--org--name/snapshots/<revision>" of a Hub cache is "org/name";
 * elsewhere the last part. Copies go to `to`; NULL: there is none. */
static const char *name_in_path(bal_arena *to, const char *path)
{
    static const char cache[] = "models--";
    size_t end = strlen(path);
    size_t len = 0;
    size_t skip = 0;
    const char *last = last_part(path, &end, &len);
    size_t last_len = len;

    last_part(path, &end, &skip);
    const char *above = last_part(path, &end, &len);
    if (len < sizeof(cache) || strncmp(above, cache, sizeof(cache) - 1) != 0)
        return last_len ? bal_arena_copy(to, last, last_len) : NULL;
    char *name = bal_arena_copy(to, above + sizeof(cache) - 1,
                                len - (sizeof(cache) - 1));
    char *dashes = name ? strstr(name, "--") : NULL;
    if (dashes) {
        dashes[0] = '/';
        memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
    }
    return name;
}

static const char *revision_in_path(bal_arena *to, const char *path)
{
    size_t end = strlen(path);
    size_t len = 0;
    size_t above_len = 0;
    const char *last = last_part(path, &end, &len);
    const char *above = last_part(path, &end, &above_len);
    char *copy = bal_arena_copy(to, last, len);
    bool cached = above_len == strlen("snapshots") &&
                  !strncmp(above, "snapshots", above_len);

    return copy && cached && bal_hex_valid(copy, REVISION_LEN) ? copy : NULL;
}

static const char *public_name(bal_arena *to, const char *name)
{
    bool path = name && (name[0] == '/' || name[0] == '.' || name[0] == '~' ||
                         strchr(name, '\\'));

    return path ? name_in_path(to, name) : name;
}

int bal_folder_facts(bal_folder *self, const char *name, const char *dir,
                     unsigned flags, bal_error *err)
{
    BAL_OWN(json_t) adapter = read_config(dir, "adapter_config.json");
    BAL_OWN(json_t) config = read_config(dir, "config.json");
    BAL_LOCAL(bal_arena) arena = { 0 };
    char *real = NULL;
    int rc = dir ? bal_path_real(&real, dir, err) : 0;
    if (rc)
        return rc;

    bool is_adapter = flags & BAL_FACTS_ADAPTER ||
                      (flags & BAL_FACTS_ALONE && looks_adapter(&self->base));
    bal_facts facts = {
        .kind = is_adapter ? BAL_KIND_ADAPTER : BAL_KIND_WEIGHTS,
        .name = name,
    };
    if (is_adapter) {
        facts.base_model =
            public_name(&arena, text_of(adapter, "base_model_name_or_path"));
        facts.revision = text_of(adapter, "revision");
    } else if (real) {
        facts.base_model =
            public_name(&arena, text_of(config, "_name_or_path"));
        facts.revision = revision_in_path(&arena, real);
    }
    if (!is_adapter && real && !facts.base_model)
        facts.base_model = name_in_path(&arena, real);
    if (!is_adapter && !facts.revision)
        facts.revision = text_of(config, "_commit_hash");
    rc = bal_model_tell(&self->base, &facts, err);
    bal_str_free(real);
    return rc;
}
