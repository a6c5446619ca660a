/* The text of a manifest: canonical JSON, written as it is walked, for a leaf
 * may list a million entries. Members come in sorted order by hand; a test
 * holds the text against the canonical form of the parsed text. */
#include "core/error.h"
#include "core/json.h"
#include "core/str.h"
#include "kernel/dtype.h"
#include "store/manifest.h"

const char *const bal_part_words[BAL_PARTS] = {
    [BAL_PART_TENSOR] = "tensor",
    [BAL_PART_FILE] = "file",
    [BAL_PART_HEADER] = "header",
};

const char *const bal_form_words[BAL_FORMS] = {
    [BAL_FORM_WHOLE] = "whole",       [BAL_FORM_DIFFERENCE] = "difference",
    [BAL_FORM_RESIDUAL] = "residual", [BAL_FORM_SAME] = "same",
    [BAL_FORM_REMOVED] = "removed",
};

static void id_member(bal_json *json, const char *key, const bal_id *id)
{
    char hex[BAL_ID_HEX + 1];

    if (!id)
        return;
    bal_id_hex(hex, id);
    bal_json_key(json, key);
    bal_json_string(json, hex);
}

static void text_member(bal_json *json, const char *key, const char *text)
{
    bal_json_key(json, key);
    bal_json_string(json, text);
}

/* "at": [block, offset, size of the block], for a shared one. */
static void shared_member(bal_json *json, const bal_id *id,
                          const bal_place *place)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    bal_json_key(json, "at");
    bal_json_array(json);
    bal_json_string(json, hex);
    bal_json_u64(json, place->offset);
    bal_json_u64(json, place->block_size);
    bal_json_close(json);
}

static void blocks_member(bal_json *json, const bal_id *ids, size_t count)
{
    char hex[BAL_ID_HEX + 1];

    bal_json_key(json, "blocks");
    bal_json_array(json);
    for (size_t i = 0; i < count; i++) {
        bal_id_hex(hex, &ids[i]);
        bal_json_string(json, hex);
    }
    bal_json_close(json);
}

static void shape_member(bal_json *json, const bal_tensor *entry)
{
    bal_json_key(json, "shape");
    bal_json_array(json);
    for (uint32_t i = 0; i < entry->rank; i++)
        bal_json_u64(json, entry->shape[i]);
    bal_json_close(json);
}

static void write_entry(bal_json *json, const bal_leaf *leaf, size_t i)
{
    const bal_tensor *entry = &leaf->entries[i];
    const bal_place *place = &leaf->places[i];

    bal_json_object(json);
    if (place->shared)
        shared_member(json, &leaf->ids[place->first], place);
    id_member(json, "base", entry->base);
    if (place->count && !place->shared)
        blocks_member(json, &leaf->ids[place->first], place->count);
    text_member(json, "dtype", bal_dtype_name(entry->dtype));
    text_member(json, "form", bal_form_words[entry->form]);
    text_member(json, "name", entry->name);
    if (entry->of != entry->dtype)
        text_member(json, "of", bal_dtype_name(entry->of));
    text_member(json, "part", bal_part_words[entry->part]);
    shape_member(json, entry);
    id_member(json, "tuned", entry->tuned);
    bal_json_close(json);
}

int bal_leaf_write(bal_buf *to, const bal_leaf *leaf, bal_error *err)
{
    bal_json json;

    bal_json_begin(&json, to, 0);
    bal_json_object(&json);
    text_member(&json, "base_model", leaf->base_model);
    bal_json_key(&json, "block_size");
    bal_json_u64(&json, leaf->block_size);
    bal_json_key(&json, "entries");
    bal_json_array(&json);
    for (size_t i = 0; i < leaf->count; i++)
        write_entry(&json, leaf, i);
    bal_json_close(&json);
    text_member(&json, "kind", bal_kind_name(leaf->kind));
    text_member(&json, "revision", leaf->revision);
    bal_json_key(&json, "version");
    bal_json_u64(&json, 1);
    bal_json_close(&json);
    return bal_json_end(&json, err);
}

int bal_view_write(bal_buf *to, const json_t *recipe, const char *base_model,
                   bal_error *err)
{
    BAL_OWN(json_t)
    body = json_pack("{s:s?, s:s, s:O, s:i}", "base_model", base_model, "kind",
                     "view", "recipe", recipe, "version", 1);
    if (!body)
        return bal_fail_memory(err, "view");
    return bal_json_canonical(to, body, err);
}
