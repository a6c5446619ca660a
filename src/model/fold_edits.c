/* The base's entries in order, each with what is done to it; an adapter's
 * modules and whole tensors are found among them, or refused. */
#include "model/fold_edits.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"

static const char weight[] = ".weight";

/* ---- finding ------------------------------------------------------------ */

static int touch(const bal_edits *self, bal_edit *edit, const char *name,
                 bal_error *err)
{
    (void)self;
    if (edit->touched)
        return bal_fail(err, BAL_ECORRUPT,
                        "the adapter changes tensor '%s' twice", name);
    edit->touched = true;
    return 0;
}

int bal_edits_touch(bal_edits *self, bal_edit **out, size_t entry,
                    bal_error *err)
{
    *out = &self->rows[entry];
    return touch(self, *out, bal_model_at(self->base, entry)->name, err);
}

/* A head that the base has no tensor for, being its embedding. */
static int touch_head(bal_edits *self, bal_edit **out, const char *head,
                      size_t embedding, bal_error *err)
{
    size_t entry = bal_model_find(self->base, BAL_PART_TENSOR, head);
    bal_edit *edit = entry != BAL_NONE
                         ? &self->rows[entry]
                         : &self->rows[bal_model_count(self->base)];
    int rc = touch(self, edit, head, err);
    if (rc)
        return rc;

    edit->name = bal_arena_copy(&self->arena, head, strlen(head));
    if (!edit->name)
        return bal_fail_memory(err, "folding an adapter");
    edit->base = embedding;
    self->count = bal_model_count(self->base) + (entry == BAL_NONE);
    self->untied = true;
    *out = edit;
    return bal_fit_floats(bal_model_at(self->base, embedding), err);
}

/* BAL_NONE: of a head that is a tensor of its own. */
static size_t tied_to(const bal_edits *self, const char *tensor)
{
    return self->fit.tied ? bal_fit_embedding(&self->fit, tensor) : BAL_NONE;
}

int bal_edits_weight(bal_edits *self, bal_edit **out, const char *module,
                     bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    size_t entry;
    int rc = bal_buf_format(&name, err, "%s%s", module, weight);
    if (rc)
        return rc;

    size_t embedding = tied_to(self, bal_buf_string(&name));
    if (embedding != BAL_NONE)
        return touch_head(self, out, bal_buf_string(&name), embedding, err);
    rc = bal_fit_weight(&self->fit, &entry, module, err);
    if (rc)
        return rc;
    return bal_edits_touch(self, out, entry, err);
}

/* True if the adapter speaks of a tensor of the base. */
static bool speaks_of(const bal_edits *self, const char *tensor)
{
    for (size_t i = 0; i < self->parts.count; i++) {
        const char *module = self->parts.rows[i].module;
        size_t len = strlen(module);

        if (!strncmp(tensor, module, len) && !strcmp(tensor + len, weight))
            return true;
    }
    for (size_t i = 0; i < self->parts.whole_count; i++) {
        const bal_lora_whole *whole = &self->parts.wholes[i];

        if (!whole->copy && !strcmp(whole->name, tensor))
            return true;
    }
    return false;
}

bool bal_edits_same(const bal_edits *self, const char *tensor, bool tokens)
{
    size_t embedding = tied_to(self, tensor);
    const json_t *ensure =
        json_object_get(self->parts.config, "ensure_weight_tying");

    if (embedding == BAL_NONE || (!tokens && bal_peft_off(ensure)))
        return false;
    return speaks_of(self, bal_model_at(self->base, embedding)->name);
}

/* ---- whole tensors ------------------------------------------------------ */

/* A vocabulary may have been given more rows before the training. */
static int check_shape(bal_edits *self, const bal_edit *edit,
                       bal_lora_whole *whole, bal_error *err)
{
    const bal_tensor *old = bal_model_at(self->base, edit->base);
    const bal_tensor *new = bal_model_at(self->adapter, whole->entry);

    if (bal_tensor_same_shape(old, new))
        return 0;
    if (!bal_fit_vocabulary(whole->name) || old->rank != 2 || new->rank != 2 ||
        old->shape[1] != new->shape[1])
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' of the adapter has another shape than the "
                        "base's",
                        new->name);
    if (self->vocabulary && self->vocabulary != new->shape[0])
        return bal_fail(err, BAL_ECORRUPT,
                        "the adapter's embedding and head are of %llu and %llu "
                        "rows",
                        (unsigned long long)self->vocabulary,
                        (unsigned long long)new->shape[0]);
    self->vocabulary = new->shape[0];
    whole->resized = true;
    return 0;
}

/* "model.norm.weight" is "model.norm" and its tail. */
static int find_whole(bal_edits *self, bal_edit **out,
                      const bal_lora_whole *whole, bal_error *err)
{
    size_t embedding = tied_to(self, whole->name);
    size_t entry;

    if (embedding != BAL_NONE)
        return touch_head(self, out, whole->name, embedding, err);
    int rc = bal_fit_find(&self->fit, &entry, whole->name, "", err);
    if (rc)
        return rc;
    if (entry == BAL_NONE)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' of the adapter is not in the base",
                        bal_model_at(self->adapter, whole->entry)->name);
    rc = bal_fit_floats(bal_model_at(self->base, entry), err);
    if (rc)
        return rc;
    return bal_edits_touch(self, out, entry, err);
}

/* The copy of the base's own tensor beside an update of it says something only
 * where it has other rows. */
static int add_copy(bal_edits *self, bal_lora_whole *whole, bal_error *err)
{
    size_t entry;
    int rc = bal_fit_find(&self->fit, &entry, whole->name, "", err);
    if (rc || entry == BAL_NONE)
        return rc;
    bal_edit *edit = &self->rows[entry];

    rc = check_shape(self, edit, whole, err);
    if (rc || !whole->resized)
        return rc;
    edit->whole = whole->entry;
    return bal_fit_floats(bal_model_at(self->base, entry), err);
}

static int add_whole(bal_edits *self, bal_lora_whole *whole, bal_error *err)
{
    bal_edit *edit = NULL;

    if (whole->copy)
        return add_copy(self, whole, err);
    if (bal_edits_same(self, whole->name, false))
        return 0;
    int rc = find_whole(self, &edit, whole, err);
    if (rc)
        return rc;
    edit->whole = whole->entry;
    return check_shape(self, edit, whole, err);
}

/* ---- heads that come apart ---------------------------------------------- */

/* An embedding that changes leaves the head as it was, which then is a tensor
 * of its own; rows of tokens are both's. */
static int untie(bal_edits *self, size_t entry, bal_error *err)
{
    const char *name = bal_model_at(self->base, entry)->name;
    const char *head = bal_fit_head(name);
    const json_t *ensure =
        json_object_get(self->parts.config, "ensure_weight_tying");
    bal_edit *edit = NULL;

    if (self->untied || !bal_peft_off(ensure))
        return 0;
    if (!head)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' may be both the embedding and the head of "
                        "this base: the adapter changes one of them",
                        name);
    return touch_head(self, &edit, head, entry, err);
}

int bal_edits_ties(bal_edits *self, bal_error *err)
{
    size_t count = bal_model_count(self->base);

    for (size_t i = 0; i < count && self->fit.tied; i++) {
        const bal_edit *edit = &self->rows[i];
        const bal_tensor *tensor = bal_model_at(self->base, i);
        bool changed = edit->change || edit->whole != BAL_NONE;

        if (!changed || edit->base != i || tensor->part != BAL_PART_TENSOR ||
            !bal_fit_vocabulary(tensor->name))
            continue;
        int rc = untie(self, i, err);
        if (rc)
            return rc;
    }
    if (!self->untied || self->fit.config)
        return 0;
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "the adapter changes the embedding or the head, which may "
                    "be one tensor in this base: it has no config.json to "
                    "tell");
}

/* Embedding and head must have as many rows as the config will say. */
static int check_vocabulary(const bal_edits *self, bal_error *err)
{
    for (size_t i = 0; i < self->count && self->vocabulary; i++) {
        const bal_edit *edit = &self->rows[i];
        const bal_tensor *old = bal_model_at(self->base, edit->base);
        const bal_tensor *now = edit->whole == BAL_NONE
                                    ? old
                                    : bal_model_at(self->adapter, edit->whole);
        const char *name = edit->name ? edit->name : old->name;

        if (old->part != BAL_PART_TENSOR || now->rank != 2 ||
            now->shape[0] == self->vocabulary ||
            (!bal_fit_head(name) &&
             bal_fit_embedding(&self->fit, name) == BAL_NONE))
            continue;
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "the adapter has a vocabulary of %llu rows, but tensor "
                        "'%s' would keep %llu",
                        (unsigned long long)self->vocabulary, name,
                        (unsigned long long)now->shape[0]);
    }
    return 0;
}

/* ---- all of it ---------------------------------------------------------- */

static int init(bal_edits *self, bal_model *base, bal_model *adapter,
                bal_error *err)
{
    size_t count = bal_model_count(base);

    self->base = base;
    self->adapter = adapter;
    self->count = count;
    self->rows = calloc(count + 1, sizeof(*self->rows));
    if (!self->rows)
        return bal_fail_memory(err, "folding an adapter");
    for (size_t i = 0; i <= count; i++)
        self->rows[i] = (bal_edit){ .base = i, .whole = BAL_NONE };
    int rc = bal_adapter_read(&self->parts, adapter, err);
    if (rc)
        return rc;
    return bal_fit_open(&self->fit, base, err);
}

static int make(bal_edits *self, bal_error *err)
{
    for (size_t i = 0; i < self->parts.whole_count; i++) {
        int rc = add_whole(self, &self->parts.wholes[i], err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < self->parts.count; i++) {
        int rc = bal_edits_module(self, &self->parts.rows[i], err);
        if (rc)
            return rc;
    }
    int rc = bal_edits_ties(self, err);
    if (rc)
        return rc;
    rc = check_vocabulary(self, err);
    if (rc)
        return rc;
    rc = bal_edits_config(self, err);
    if (rc)
        return rc;
    rc = bal_adapter_finite(&self->parts, self->adapter, err);
    if (rc)
        return rc;
    return bal_adapter_remark(&self->parts, err);
}

int bal_edits_make(bal_edits *out, bal_model *base, bal_model *adapter,
                   bal_error *err)
{
    BAL_LOCAL(bal_edits) self = { 0 };
    int rc = init(&self, base, adapter, err);
    if (!rc)
        rc = make(&self, err);
    if (rc)
        return rc;
    *out = self;
    self = (bal_edits){ 0 };
    return 0;
}

void bal_edits_done(bal_edits *self)
{
    size_t count = self->rows ? bal_model_count(self->base) + 1 : 0;

    for (size_t i = 0; i < count; i++) {
        bal_update *change = self->rows[i].change;
        if (change)
            free(change->lengths);
    }
    free(self->rows);
    bal_buf_done(&self->config);
    bal_adapter_done(&self->parts);
    bal_fit_done(&self->fit);
    bal_arena_done(&self->arena);
    *self = (bal_edits){ 0 };
}
