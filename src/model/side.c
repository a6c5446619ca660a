/* Files of a model folder that are not tensors, by rows: the first pattern that
 * fits a name decides. What nobody has heard of comes along while it is small,
 * for a model card's picture belongs to the model and a core dump does not. */
#include <string.h>

#include "core/str.h"
#include "model/path.h"

#define SMALL ((uint64_t)64 << 20)

enum { COMPONENT_MAX = 255 };

static const char templates[] = "additional_chat_templates/";

typedef struct row {
    const char *pattern;
    uint64_t limit;
    bool identity; /* the tokenizer, the chat template */
} row;

static const row rows[] = {
    { "ballast.json", 0, false },
    { ".gitattributes", SMALL, false },
    { ".*", 0, false },
    /* Weights, ours and those of other formats. */
    { "*.safetensors", 0, false },
    { "*.bin", 0, false },
    { "*.bin.index.json", 0, false },
    { "*.pt", 0, false },
    { "*.pth", 0, false },
    { "*.ckpt", 0, false },
    { "*.pkl", 0, false },
    { "*.gguf", 0, false },
    { "*.ggml", 0, false },
    { "*.h5", 0, false },
    { "*.msgpack", 0, false },
    { "*.onnx", 0, false },
    { "*.onnx_data", 0, false },
    { "*.ot", 0, false },
    { "*.tflite", 0, false },
    { "*.npz", 0, false },
    { "*.npy", 0, false },
    { "*.wdelta", 0, false },
    /* What makes the same text the same tokens. */
    { "tokenizer.json", UINT64_MAX, true },
    { "tokenizer_config.json", UINT64_MAX, true },
    { "*.model", UINT64_MAX, true },
    { "*.tiktoken", UINT64_MAX, true },
    { "vocab.json", UINT64_MAX, true },
    { "vocab.txt", UINT64_MAX, true },
    { "merges.txt", UINT64_MAX, true },
    { "special_tokens_map.json", UINT64_MAX, true },
    { "added_tokens.json", UINT64_MAX, true },
    { "chat_template.jinja", UINT64_MAX, true },
    { "chat_template.json", UINT64_MAX, true },
    { "additional_chat_templates/*.jinja", UINT64_MAX, true },
    { "additional_chat_templates/*", 0, false },
    /* The rest of what belongs to a model by its name. */
    { "model.safetensors.index.json", UINT64_MAX, false },
    { "*config.json", UINT64_MAX, false },
    { "*.py", UINT64_MAX, false },
    { "README.md", UINT64_MAX, false },
    { "LICENSE*", UINT64_MAX, false },
    { "*", SMALL, false },
};

static bool component_valid(const char *name, size_t len)
{
    bool dots = name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'));
    bool letter = (name[0] >= 'A' && name[0] <= 'Z') ||
                  (name[0] >= 'a' && name[0] <= 'z');
    bool drive = len >= 2 && letter && name[1] == ':';

    return len && len <= COMPONENT_MAX && !dots && !drive;
}

bool bal_side_name_valid(const char *path)
{
    size_t len = strlen(path);

    if (!bal_utf8_valid(path, len))
        return false;
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = (uint8_t)path[i];
        if (byte < 0x20 || byte == 0x7f || byte == '\\')
            return false;
    }
    for (size_t at = 0;; at++) {
        size_t part = strcspn(path + at, "/");
        if (!component_valid(path + at, part))
            return false;
        at += part;
        if (!path[at])
            return true;
    }
}

/* NULL: in a folder that is not looked into, or no name for a file. */
static const row *row_of(const char *path)
{
    bool below = !strncmp(path, templates, sizeof(templates) - 1);
    const char *name = below ? path + sizeof(templates) - 1 : path;
    const row *found = rows;

    if (!bal_side_name_valid(path) || strchr(name, '/') ||
        (below && name[0] == '.'))
        return NULL;
    while (!bal_glob(found->pattern, path))
        found++; /* the last row fits all */
    return found;
}

uint64_t bal_side_limit(const char *path)
{
    const row *found = row_of(path);

    return found ? found->limit : 0;
}

bool bal_side_file(const char *path)
{
    return bal_side_limit(path) > 0;
}

bool bal_side_identity(const char *path)
{
    const row *found = row_of(path);

    return found && found->identity;
}
