/* By rows: a mark in the middle of the name, the name that the adapter had in
 * memory (or not), an ending. Rows are of a peft_type, because ADALORA has
 * LORA's names without their ending. */
#include "model/adapter_names.h"

#include <string.h>

typedef struct row {
    const char *type, *mark, *ending;
    bal_family family;
    bal_slot slot;
} row;

static const row rows[] = {
    { "LORA", ".lora_A", ".weight", BAL_FAMILY_LORA, BAL_SLOT_A },
    { "LORA", ".lora_B", ".weight", BAL_FAMILY_LORA, BAL_SLOT_B },
    { "LORA", ".lora_B", ".bias", BAL_FAMILY_LORA, BAL_SLOT_BIAS },
    { "LORA", ".lora_magnitude_vector", "", BAL_FAMILY_LORA,
      BAL_SLOT_MAGNITUDE },
    { "LORA", ".lora_magnitude_vector", ".weight", BAL_FAMILY_LORA,
      BAL_SLOT_MAGNITUDE },
    { "LORA", ".lora_embedding_A", "", BAL_FAMILY_EMBEDDING, BAL_SLOT_A },
    { "LORA", ".lora_embedding_B", "", BAL_FAMILY_EMBEDDING, BAL_SLOT_B },
    { "LORA", ".token_adapter.trainable_tokens_delta", "", BAL_FAMILY_TOKENS,
      BAL_SLOT_ROWS },
    { "ADALORA", ".lora_A", "", BAL_FAMILY_ADALORA, BAL_SLOT_A },
    { "ADALORA", ".lora_B", "", BAL_FAMILY_ADALORA, BAL_SLOT_B },
    { "ADALORA", ".lora_E", "", BAL_FAMILY_ADALORA, BAL_SLOT_DIAGONAL },
    { "LOHA", ".hada_w1_a", "", BAL_FAMILY_LOHA, BAL_SLOT_W1_A },
    { "LOHA", ".hada_w1_b", "", BAL_FAMILY_LOHA, BAL_SLOT_W1_B },
    { "LOHA", ".hada_w2_a", "", BAL_FAMILY_LOHA, BAL_SLOT_W2_A },
    { "LOHA", ".hada_w2_b", "", BAL_FAMILY_LOHA, BAL_SLOT_W2_B },
    { "LOKR", ".lokr_w1", "", BAL_FAMILY_LOKR, BAL_SLOT_W1 },
    { "LOKR", ".lokr_w1_a", "", BAL_FAMILY_LOKR, BAL_SLOT_W1_A },
    { "LOKR", ".lokr_w1_b", "", BAL_FAMILY_LOKR, BAL_SLOT_W1_B },
    { "LOKR", ".lokr_w2", "", BAL_FAMILY_LOKR, BAL_SLOT_W2 },
    { "LOKR", ".lokr_w2_a", "", BAL_FAMILY_LOKR, BAL_SLOT_W2_A },
    { "LOKR", ".lokr_w2_b", "", BAL_FAMILY_LOKR, BAL_SLOT_W2_B },
    { "IA3", ".ia3_l", "", BAL_FAMILY_IA3, BAL_SLOT_FACTOR },
};

/* In a name that no row fits, these are of a kind that is not known. */
static const char *const strange[] = {
    ".lora_",
    ".ia3_",
    ".hada_",
    ".lokr_",
    ".token_adapter.",
    ".modules_to_save.",
    "trainable_tokens_",
};

static const char usual[] = BAL_PEFT_PREFIX;

static const char *const wrappers[] = { "_orig_mod.", "module." };

static const char *after(const char *text, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(text, prefix, len) ? NULL : text + len;
}

/* The first wrapper's prefix taken off; NULL: there is none. */
static const char *unwrapped(const char *name)
{
    for (size_t i = 0; i < sizeof(wrappers) / sizeof(*wrappers); i++) {
        const char *rest = after(name, wrappers[i]);
        if (rest)
            return rest;
    }
    return NULL;
}

const char *bal_adapter_bare(const char *name, unsigned *flags)
{
    size_t prefixes = 0;

    for (;;) {
        const char *rest = after(name, usual);
        const char *inside = rest ? NULL : unwrapped(name);

        if (!rest && !inside)
            break;
        prefixes += rest != NULL;
        *flags |= inside ? BAL_PREFIX_COMPILED : 0u;
        name = rest ? rest : inside;
    }
    *flags |= prefixes ? 0u : BAL_PREFIX_MISSING;
    *flags |= prefixes > 1 ? BAL_PREFIX_TWICE : 0u;
    return name;
}

/* The ending, or a word and the ending: "weight", "default.weight". */
static bool ends(const char *tail, const char *ending)
{
    if (!strcmp(tail, ending))
        return true;
    if (tail[0] != '.' || !tail[1] || tail[1] == '.')
        return false;
    return !strcmp(tail + 1 + strcspn(tail + 1, "."), ending);
}

bool bal_adapter_parse(bal_adapter_name *out, const char *bare,
                       const char *type)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const row *one = &rows[i];
        const char *at =
            strcmp(one->type, type) ? NULL : strstr(bare, one->mark);

        if (!at || at == bare || !ends(at + strlen(one->mark), one->ending))
            continue;
        *out = (bal_adapter_name){ bare, (size_t)(at - bare), one->family,
                                   one->slot };
        return true;
    }
    return false;
}

bool bal_adapter_strange(const char *bare)
{
    for (size_t i = 0; i < sizeof(strange) / sizeof(*strange); i++) {
        if (strstr(bare, strange[i]))
            return true;
    }
    return false;
}
