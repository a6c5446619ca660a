/* Anchors: which commit, and where in it. */
#include "store/anchor.h"

#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/dtype.h"
#include "store/leaf_model.h"

/* ---- kinds -------------------------------------------------------------- */

static const bal_number numbers[] = {
    [BAL_F16] = BAL_NUMBER_F16,      [BAL_BF16] = BAL_NUMBER_BF16,
    [BAL_F32] = BAL_NUMBER_F32,      [BAL_F64] = BAL_NUMBER_F64,
    [BAL_F8_E4M3] = BAL_NUMBER_E4M3, [BAL_F8_E5M2] = BAL_NUMBER_E5M2,
    [BAL_I8] = BAL_NUMBER_INT,       [BAL_U8] = BAL_NUMBER_INT,
    [BAL_I16] = BAL_NUMBER_INT,      [BAL_U16] = BAL_NUMBER_INT,
    [BAL_I32] = BAL_NUMBER_INT,      [BAL_U32] = BAL_NUMBER_INT,
};

static bal_number number_of(bal_dtype dtype)
{
    return (size_t)dtype < sizeof(numbers) / sizeof(numbers[0])
               ? numbers[dtype]
               : BAL_NUMBER_BYTES;
}

bal_block_kind bal_anchor_kind(const bal_tensor *entry)
{
    unsigned bits =
        entry->part == BAL_PART_TENSOR ? bal_dtype_bits(entry->dtype) : 0;

    return (bal_block_kind){
        .width = bits % 8 || bits > 64 ? 0 : bits / 8,
        .kind = bits ? number_of(entry->dtype) : BAL_NUMBER_BYTES,
    };
}

/* ---- how an entry stands to the anchor's -------------------------------- */

const bal_tensor *bal_anchor_entry(const bal_anchor *self,
                                   const bal_tensor *entry)
{
    size_t at = bal_map_find(&self->names, entry->name, strlen(entry->name));

    return at == BAL_NONE ? NULL : &self->leaf.entries[at];
}

/* A difference to the anchor's own values, as far as digests tell. */
static bool is_off(const bal_tensor *entry, const bal_tensor *base)
{
    bool other =
        entry->base && base->tuned && !bal_id_equal(entry->base, base->tuned);

    return entry->form == BAL_FORM_DIFFERENCE && base->form == BAL_FORM_WHOLE &&
           base->dtype == entry->of && bal_tensor_float(base) && !other;
}

/* Numbers that can be told by the anchor's: values by values, differences by
 * differences or by the values that they are to. */
bool bal_anchor_told(bal_block_kind *kind, const bal_tensor *entry,
                     const bal_tensor *base)
{
    *kind = bal_anchor_kind(entry);
    kind->base_kind = number_of(base->dtype);
    kind->difference = is_off(entry, base);
    if (!bal_tensor_same_shape(entry, base) || kind->kind == BAL_NUMBER_BYTES ||
        kind->base_kind == BAL_NUMBER_BYTES)
        return false;
    return kind->difference ||
           (entry->form == base->form && entry->dtype == base->dtype &&
            (entry->form == BAL_FORM_WHOLE ||
             entry->form == BAL_FORM_DIFFERENCE));
}

/* ---- spans -------------------------------------------------------------- */

static int add_span(bal_buf *to, const bal_block_span *span, bal_error *err)
{
    bal_block_span *last =
        to->len ? (bal_block_span *)(void *)(to->data + to->len) - 1 : NULL;

    if (last && bal_id_equal(&last->id, &span->id) &&
        last->offset + last->len == span->offset) {
        last->len += span->len;
        return 0;
    }
    return bal_buf_append(to, span, sizeof(*span), err);
}

/* Bytes [offset, offset + len) of the anchor's entry i. */
static int add_spans(bal_buf *to, const bal_anchor *self, size_t i,
                     uint64_t offset, uint64_t len, bal_error *err)
{
    const bal_leaf *leaf = &self->leaf;
    const bal_place *place = &leaf->places[i];
    uint64_t size = leaf->entries[i].size;
    int rc = 0;

    if (place->shared)
        return add_span(to,
                        &(bal_block_span){ leaf->ids[place->first],
                                           place->block_size,
                                           place->offset + offset, len },
                        err);
    while (!rc && len) {
        size_t index = (size_t)(offset / leaf->block_size);
        uint64_t start = index * leaf->block_size;
        uint64_t whole = bal_min(leaf->block_size, size - start);
        bal_block_span span = { leaf->ids[place->first + index], whole,
                                offset - start, 0 };
        span.len = bal_min(len, whole - span.offset);
        rc = add_span(to, &span, err);
        offset += span.len;
        len -= span.len;
    }
    return rc;
}

int bal_anchor_spans(bool *found, bal_buf *to, bal_block_kind *kind,
                     const bal_anchor *self, const bal_anchor_run *run,
                     bal_error *err)
{
    const bal_tensor *entry = run->entry;
    const bal_tensor *base = self->there && entry->part == BAL_PART_TENSOR
                                 ? bal_anchor_entry(self, entry)
                                 : NULL;

    *found = base && bal_anchor_told(kind, entry, base);
    if (!*found)
        return 0;
    uint64_t width = kind->width;
    uint64_t other = bal_dtype_bits(base->dtype) / 8;
    *found = run->offset % width == 0 && run->len % width == 0;
    if (!*found)
        return 0;
    return add_spans(to, self, (size_t)(base - self->leaf.entries),
                     run->offset / width * other, run->len / width * other,
                     err);
}

/* ---- opening ------------------------------------------------------------ */

int bal_anchor_open(bal_anchor *self, const bal_tenant *tenant, bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    int rc = bal_graph_manifest(tenant->store->graph, tenant->number,
                                &self->manifest, NULL, &body, err);
    const bal_bytes text = { body.data, body.len };

    if (!rc)
        rc = bal_leaf_read(&self->leaf, text, err);
    if (!rc)
        rc = bal_leaf_model(&self->model, tenant, text, "anchor", err);
    for (size_t i = 0; !rc && i < self->leaf.count; i++) {
        const bal_tensor *entry = &self->leaf.entries[i];
        size_t at = i;
        bool there;
        if (entry->part == BAL_PART_TENSOR && entry->form != BAL_FORM_RESIDUAL)
            rc = bal_map_add(&self->names, entry->name, strlen(entry->name),
                             &at, &there, err);
    }
    return rc;
}

void bal_anchor_done(bal_anchor *self)
{
    bal_model_free(self->model);
    bal_map_done(&self->names);
    bal_leaf_done(&self->leaf);
    *self = (bal_anchor){ 0 };
}
