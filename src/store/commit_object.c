/* A commit as an object: its fields, its JSON, the text of ballast.json, and
 * the id that covers them. */
#include "store/commit_object.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/str.h"
#include "merge/merge.h"
#include "store/manifest.h"
#include "store/verified.h"

struct bal_commit {
    bal_commit_info info;
    bal_arena arena;
    char *recipe;
    char *json;
    char *provenance;
};

static char *copy(bal_arena *arena, const char *text)
{
    return text ? bal_arena_copy(arena, text, strlen(text)) : NULL;
}

static void id_member(bal_json *json, const char *key, const bal_id *id)
{
    char hex[BAL_ID_HEX + 1];

    bal_json_key(json, key);
    if (!id) {
        bal_json_null(json);
        return;
    }
    bal_id_hex(hex, id);
    bal_json_string(json, hex);
}

static void text_member(bal_json *json, const char *key, const char *text)
{
    bal_json_key(json, key);
    bal_json_string(json, text);
}

int bal_commit_id(bal_id *out, const char *tenant, const bal_commit_row *row,
                  bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_json json;

    bal_json_begin(&json, &text, 0);
    bal_json_object(&json);
    text_member(&json, "author", row->author);
    text_member(&json, "base_model", row->base_model);
    bal_json_key(&json, "created_at");
    bal_json_i64(&json, row->created_at);
    id_member(&json, "manifest", &row->manifest);
    text_member(&json, "message", row->message);
    text_member(&json, "metadata", row->metadata);
    id_member(&json, "parent", row->has_made_on ? &row->made_on : NULL);
    text_member(&json, "tenant", tenant);
    bal_json_key(&json, "version");
    bal_json_u64(&json, 1);
    bal_json_close(&json);
    int rc = bal_json_end(&json, err);
    if (rc)
        return rc;
    bal_hash_of(out, text.data, text.len);
    return 0;
}

/* ---- recipes as people read them ---------------------------------------- */

/* Floats are recorded as text; shown, a number is a number. */
static void show_value(bal_json *json, const json_t *value)
{
    const char *text = json_string_value(value);
    double number;

    if (!text)
        bal_json_null(json);
    else if (!strcmp(text, "true") || !strcmp(text, "false"))
        bal_json_bool(json, *text == 't');
    else if (!bal_parse_f64(&number, text, NULL))
        bal_json_f64(json, number);
    else
        bal_json_string(json, text);
}

static void show_parameters(bal_json *json, json_t *parameters)
{
    const char *key;
    json_t *value;

    bal_json_object(json);
    json_object_foreach(parameters, key, value)
    {
        bal_json_key(json, key);
        show_value(json, value);
    }
    bal_json_close(json);
}

/* Members that are no text, as they are recorded. */
static void show_raw(bal_json *json, const json_t *from,
                     const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(from, keys[i]);
        char *text =
            value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
        if (text) {
            bal_json_key(json, keys[i]);
            bal_json_raw(json, text);
        }
        free(text);
    }
}

static void show_input(bal_json *json, const json_t *input)
{
    static const char *const raw[] = { "slice", "layers", "onto", "carrier" };
    static const char *const texts[] = { "tenant", "commit", "manifest" };
    json_t *own = json_object_get(input, "parameters");

    bal_json_object(json);
    for (size_t i = 0; i < 3; i++)
        text_member(json, texts[i],
                    json_string_value(json_object_get(input, texts[i])));
    bal_json_key(json, "weight");
    show_value(json, json_object_get(input, "weight"));
    if (json_object_size(own)) {
        bal_json_key(json, "parameters");
        show_parameters(json, own);
    }
    show_raw(json, input, raw, sizeof(raw) / sizeof(raw[0]));
    bal_json_close(json);
}

/* What else a recipe records, as text or a boolean. */
static void show_rest(bal_json *json, const json_t *recipe)
{
    static const char *const rest[] = {
        "space", "strict",          "dtype",      "out_dtype",
        "seed",  "mergekit_stream", "arithmetic",
    };
    static const char *const raw[] = { "slices", "tokenizer", "rank" };
    const char *energy = json_string_value(json_object_get(recipe, "energy"));

    for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
        const json_t *value = json_object_get(recipe, rest[i]);
        if (!value || json_is_null(value))
            continue;
        bal_json_key(json, rest[i]);
        if (json_is_boolean(value))
            bal_json_bool(json, json_is_true(value));
        else
            bal_json_string(json, json_string_value(value));
    }
    show_raw(json, recipe, raw, sizeof(raw) / sizeof(raw[0]));
    if (energy) {
        bal_json_key(json, "energy");
        bal_json_raw(json, energy);
    }
}

static int show_recipe(char **out, const json_t *recipe, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    json_t *inputs = json_object_get(recipe, "inputs");
    bal_json json;

    bal_json_begin(&json, &text, 0);
    bal_json_object(&json);
    text_member(&json, "method",
                json_string_value(json_object_get(recipe, "method")));
    bal_json_key(&json, "inputs");
    bal_json_array(&json);
    for (size_t i = 0; i < json_array_size(inputs); i++)
        show_input(&json, json_array_get(inputs, i));
    bal_json_close(&json);
    const json_t *base = json_object_get(recipe, "base");
    if (json_is_integer(base)) {
        bal_json_key(&json, "base");
        bal_json_u64(&json, (uint64_t)json_integer_value(base));
    }
    bal_json_key(&json, "parameters");
    show_parameters(&json, json_object_get(recipe, "parameters"));
    show_rest(&json, recipe);
    bal_json_close(&json);
    int rc = bal_json_end(&json, err);
    if (rc)
        return rc;
    *out = bal_str_copy(bal_buf_string(&text));
    return *out ? 0 : bal_fail_memory(err, "recipe");
}

/* ---- the objects -------------------------------------------------------- */

/* What both texts of a commit end with. */
static void last_members(bal_json *json, const bal_commit_info *info)
{
    bal_json_key(json, "metadata");
    bal_json_raw(json, info->metadata);
    bal_json_key(json, "int_id");
    bal_json_u64(json, bal_id_serving(&info->id));
    if (info->recipe) {
        bal_json_key(json, "recipe");
        bal_json_raw(json, info->recipe);
    }
}

static int write_json(bal_commit *self, bal_error *err)
{
    const bal_commit_info *info = &self->info;
    BAL_LOCAL(bal_buf) text = { 0 };
    char at[40];
    bal_json json;

    bal_clock_rfc3339(at, info->created_at);
    bal_json_begin(&json, &text, 0);
    bal_json_object(&json);
    id_member(&json, "id", &info->id);
    text_member(&json, "tenant", info->tenant);
    id_member(&json, "manifest", &info->manifest);
    id_member(&json, "parent", info->has_parent ? &info->parent : NULL);
    text_member(&json, "kind", info->kind);
    text_member(&json, "message", info->message);
    text_member(&json, "author", info->author);
    text_member(&json, "created_at", at);
    text_member(&json, "base_model", info->base_model);
    last_members(&json, info);
    bal_json_close(&json);
    int rc = bal_json_end(&json, err);
    if (rc)
        return rc;
    self->json = bal_str_copy(bal_buf_string(&text));
    return self->json ? 0 : bal_fail_memory(err, "commit");
}

static int write_provenance(bal_commit *self, bal_error *err)
{
    const bal_commit_info *info = &self->info;
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_json json;

    bal_json_begin(&json, &text, 2);
    bal_json_object(&json);
    text_member(&json, "schema", "ballast/provenance/1");
    text_member(&json, "tenant", info->tenant);
    id_member(&json, "commit", &info->id);
    id_member(&json, "manifest", &info->manifest);
    text_member(&json, "kind", info->kind);
    text_member(&json, "base_model", info->base_model);
    text_member(&json, "message", info->message);
    last_members(&json, info);
    bal_json_close(&json);
    int rc = bal_json_end(&json, err);
    if (!rc)
        rc = bal_buf_text(&text, "\n", err);
    if (rc)
        return rc;
    self->provenance = bal_str_copy(bal_buf_string(&text));
    return self->provenance ? 0 : bal_fail_memory(err, "commit");
}

/* The recipe that a view's manifest records. */
static int load_recipe(bal_commit *self, bal_tenant *tenant, bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    int rc = bal_manifest_get(NULL, &body, tenant, &self->info.manifest, err);
    if (rc)
        return rc;
    BAL_OWN(json_t) recipe = NULL;
    rc = bal_view_read(&recipe, (bal_bytes){ body.data, body.len }, err);
    if (rc)
        return rc;
    rc = show_recipe(&self->recipe, recipe, err);
    self->info.recipe = self->recipe;
    return rc;
}

static int fill(bal_commit *self, const bal_tenant *tenant,
                const bal_commit_row *row, bal_error *err)
{
    bal_commit_info *info = &self->info;

    info->id = row->id;
    info->manifest = row->manifest;
    info->parent = row->parent;
    info->has_parent = row->has_parent;
    info->created_at = row->created_at;
    info->tenant = copy(&self->arena, tenant->name);
    info->kind = copy(&self->arena, row->kind);
    info->message = copy(&self->arena, row->message);
    info->author = copy(&self->arena, row->author);
    info->base_model = copy(&self->arena, row->base_model);
    info->metadata = copy(&self->arena, row->metadata);
    if (!info->tenant || !info->kind || !info->message || !info->author ||
        !info->metadata || (row->base_model && !info->base_model))
        return bal_fail_memory(err, "commit");
    return 0;
}

int bal_commit_of_row(bal_commit **out, bal_tenant *tenant,
                      const bal_commit_row *row, bal_error *err)
{
    BAL_OWN(bal_commit) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "commit");

    int rc = bal_commit_verify(tenant, row, err);
    if (!rc)
        rc = fill(self, tenant, row, err);
    if (!rc && !strcmp(row->kind, bal_kind_name(BAL_KIND_VIEW)))
        rc = load_recipe(self, tenant, err);
    if (!rc)
        rc = write_json(self, err);
    if (!rc)
        rc = write_provenance(self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

typedef struct open_ctx {
    bal_tenant *tenant;
    bal_commit *made;
} open_ctx;

static int open_row(void *ctx, const bal_commit_row *row, bal_error *err)
{
    open_ctx *open = ctx;

    return bal_commit_of_row(&open->made, open->tenant, row, err);
}

int bal_commit_open(bal_commit **out, bal_tenant *tenant, const bal_id *id,
                    bal_error *err)
{
    open_ctx open = { tenant, NULL };
    int rc = bal_graph_commit(tenant->store->graph, tenant->number, id,
                              open_row, &open, err);
    if (rc)
        return rc;
    *out = open.made;
    return 0;
}

const bal_commit_info *bal_commit_info_of(const bal_commit *self)
{
    return &self->info;
}

const char *bal_commit_json(const bal_commit *self)
{
    return self->json;
}

const char *bal_commit_provenance(const bal_commit *self)
{
    return self->provenance;
}

void bal_commit_free(bal_commit *self)
{
    if (!self)
        return;
    bal_arena_done(&self->arena);
    bal_str_free(self->recipe);
    bal_str_free(self->json);
    bal_str_free(self->provenance);
    free(self);
}
