/* config.json of a merge: that of the base, or of the first input, with what
 * the merge has changed. mergekit 0.1.5 changes the number of layers and the
 * dtype; transformers goes by tie_word_embeddings and layer_types, too, so
 * these are made to fit as well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/json_edit.h"
#include "kernel/dtype.h"
#include "merge/mergekit.h"
#include "merge/view.h"

enum { CONFIG_MOST = 16 << 20, CHANGES = 12 };

/* Where architectures have the number of their layers. */
static const char *const depths[] = {
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_layers",
    "text_config.num_hidden_layers",
};

typedef struct changing {
    bal_view *view;
    json_t *config;
    bal_json_change changes[CHANGES];
    size_t count;
    char layers[24];
    char dtypes[2][40];
    size_t dtype_count;
    bal_buf types;
} changing;

static void change(changing *self, const char *path, const char *value)
{
    self->changes[self->count++] = (bal_json_change){ path, value, false };
}

/* ---- layers ------------------------------------------------------------- */

static const json_t *member(const json_t *config, const char *path)
{
    const char *dot = strchr(path, '.');

    if (!dot)
        return json_object_get(config, path);
    const json_t *inner = json_object_getn(config, path, (size_t)(dot - path));
    return json_object_get(inner, dot + 1);
}

static void change_depth(changing *self)
{
    snprintf(self->layers, sizeof(self->layers), "%llu",
             (unsigned long long)self->view->layers);
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        if (json_is_integer(member(self->config, depths[i])))
            change(self, depths[i], self->layers);
    }
}

/* "layer_types" has an entry a layer: those of the layers that each slice takes
 * of its first source. */
static int change_types(changing *self, bal_error *err)
{
    const bal_view *view = self->view;
    const json_t *types = json_object_get(self->config, "layer_types");
    BAL_OWN(json_t) made = json_array();

    if (!json_is_array(types))
        return 0;
    for (size_t i = 0; made && i < view->slice_count; i++) {
        const bal_view_shift *shift = &view->shifts[view->slices[i].from];
        if (shift->first + shift->count > json_array_size(types))
            return 0;
        for (uint64_t k = 0; k < shift->count; k++)
            json_array_append(
                made, json_array_get(types, (size_t)(shift->first + k)));
    }
    if (!made || json_array_size(made) != view->layers)
        return bal_fail_memory(err, "a config");
    char *text = json_dumps(made, 0);
    int rc = text ? bal_buf_text(&self->types, text, err)
                  : bal_fail_memory(err, "a config");
    free(text);
    if (!rc)
        change(self, "layer_types", bal_buf_string(&self->types));
    return rc;
}

/* ---- dtype, heads ------------------------------------------------------- */

/* Spelled as it was: "bfloat16" or "torch.bfloat16". */
static void change_dtype(changing *self, const char *key)
{
    const bal_view *view = self->view;
    int dtype = view->out_dtype >= 0 ? view->out_dtype : view->dtype;
    const char *old = json_string_value(json_object_get(self->config, key));

    if (dtype < 0 || !old)
        return;
    char *now = self->dtypes[self->dtype_count++];
    snprintf(now, sizeof(self->dtypes[0]), "\"%s%s\"",
             strncmp(old, "torch.", 6) != 0 ? "" : "torch.",
             bal_mergekit_dtype_name(bal_dtype_name((bal_dtype)dtype)));
    if (strlen(old) + 2 == strlen(now) && !strncmp(old, now + 1, strlen(old)))
        return;
    change(self, key, now);
}

/* A head of its own would be passed over. */
static void change_tie(changing *self)
{
    static const char tie[] = "tie_word_embeddings";

    if (json_is_true(json_object_get(self->config, tie)) &&
        bal_map_find(&self->view->names[BAL_PART_TENSOR], "lm_head.weight",
                     strlen("lm_head.weight")) != BAL_NONE)
        change(self, tie, "false");
}

/* ---- all ---------------------------------------------------------------- */

static int find_changes(changing *self, bal_error *err)
{
    int rc = 0;

    if (self->view->sliced) {
        change_depth(self);
        rc = change_types(self, err);
    }
    change_dtype(self, "dtype");
    change_dtype(self, "torch_dtype");
    change_tie(self);
    return rc;
}

static int edit(bal_view *self, bal_view_row *row, const bal_buf *text,
                bal_error *err)
{
    changing job = { .view = self };
    BAL_OWN(json_t) config = json_loadb(text->data, text->len, 0, NULL);

    /* What cannot be read stays what it is. */
    job.config = config;
    if (!json_is_object(config))
        return 0;
    int rc = find_changes(&job, err);
    if (!rc && job.count) {
        row->text = calloc(1, sizeof(*row->text));
        rc = row->text ? bal_json_edit(row->text,
                                       (bal_bytes){ text->data, text->len },
                                       job.changes, job.count, row->name, err)
                       : bal_fail_memory(err, "a config");
    }
    bal_buf_done(&job.types);
    return rc;
}

int bal_view_config(bal_view *self, bal_view_row *row, bal_error *err)
{
    const bal_tensor *entry = bal_view_source(self, row, row->from);
    BAL_LOCAL(bal_buf) text = { 0 };

    if (!self->sliced && self->dtype < 0 && self->out_dtype < 0 &&
        bal_map_find(&self->names[BAL_PART_TENSOR], "lm_head.weight",
                     strlen("lm_head.weight")) == BAL_NONE)
        return 0;
    if (entry->size > CONFIG_MOST)
        return 0;
    int rc = bal_buf_reserve(&text, (size_t)entry->size, err);
    if (!rc)
        rc = bal_model_read(self->inputs[row->from], row->sources[row->from], 0,
                            text.data, (size_t)entry->size, err);
    text.len = (size_t)entry->size;
    return rc ? rc : edit(self, row, &text, err);
}
