/* What a leaf manifest holds, as a model: entries from the manifest, bytes from
 * blocks. */
#include "store/leaf_model.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "model/sums.h"

typedef struct leaf_model {
    bal_model base;
    bal_blocks *blocks; /* borrowed from the store */
    bal_graph *graph;   /* as well */
    int64_t number;     /* of the tenant */
    char tenant[65];
    bal_leaf leaf;
} leaf_model;

/* A manifest names its blocks: one that is not there is damage, and not the
 * answer to a question. */
static int read_bytes(leaf_model *self, const bal_id *id, uint64_t size,
                      uint64_t offset, void *to, size_t len, bal_error *err)
{
    bal_block_ref block = { self->tenant, id, size };
    char hex[BAL_ID_HEX + 1];
    int rc = bal_blocks_read(self->blocks, &block, offset, to, len, err);

    if (rc != BAL_ENOTFOUND)
        return rc;
    bal_id_hex(hex, id);
    return bal_fail(err, BAL_ECORRUPT, "block %.12s is lost", hex);
}

/* From one block of the entry. */
static int read_block(leaf_model *self, const bal_place *place,
                      uint64_t entry_size, uint64_t offset, uint8_t *to,
                      size_t len, bal_error *err)
{
    uint64_t block = self->leaf.block_size;
    size_t index = (size_t)(offset / block);
    uint64_t start = index * block;
    uint64_t size = bal_min(block, entry_size - start);

    return read_bytes(self, &self->leaf.ids[place->first + index], size,
                      offset - start, to, len, err);
}

static int leaf_read(bal_model *model, size_t i, uint64_t offset, void *to,
                     size_t len, bal_error *err)
{
    leaf_model *self = (leaf_model *)model;
    const bal_place *place = &self->leaf.places[bal_model_tag(model, i)];
    uint64_t size = bal_model_at(model, i)->size;
    uint64_t block = self->leaf.block_size;
    uint8_t *at = to;

    if (place->shared)
        return read_bytes(self, &self->leaf.ids[place->first],
                          place->block_size, place->offset + offset, to, len,
                          err);
    while (len) {
        size_t part = (size_t)bal_min(len, block - offset % block);
        int rc = read_block(self, place, size, offset, at, part, err);
        if (rc)
            return rc;
        offset += part;
        at += part;
        len -= part;
    }
    return 0;
}

static void leaf_free(bal_model *model)
{
    leaf_model *self = (leaf_model *)model;

    bal_leaf_done(&self->leaf);
}

/* Whole blocks of its own; others may be read for its neighbours. */
static void leaf_pass(bal_model *model, size_t i, uint64_t offset, uint64_t len)
{
    leaf_model *self = (leaf_model *)model;
    const bal_place *place = &self->leaf.places[bal_model_tag(model, i)];
    uint64_t size = bal_model_at(model, i)->size;
    uint64_t block = self->leaf.block_size;
    uint64_t end = bal_min(offset + len, size);

    if (place->shared)
        return;
    for (uint64_t k = (offset + block - 1) / block;
         bal_min((k + 1) * block, size) <= end && k * block < end; k++)
        bal_blocks_pass(self->blocks, self->tenant,
                        &self->leaf.ids[place->first + k]);
}

/* A range of several blocks goes by the hash of their ids. */
static bool leaf_ident(bal_model *model, size_t i, uint64_t offset,
                       uint64_t len, bal_ident *out)
{
    leaf_model *self = (leaf_model *)model;
    const bal_place *place = &self->leaf.places[bal_model_tag(model, i)];
    const bal_id *ids = &self->leaf.ids[place->first];
    uint64_t block = self->leaf.block_size;

    if (!place->count || !len)
        return false;
    *out = (bal_ident){ .id = ids[0], .offset = place->offset + offset };
    if (place->shared)
        return true;
    size_t first = (size_t)(offset / block);
    size_t count = (size_t)((offset + len - 1) / block) - first + 1;
    *out = (bal_ident){ .id = ids[first], .offset = offset % block };
    if (count == 1)
        return true;
    out->entry = block;
    bal_hash_of(&out->id, &ids[first], count * sizeof(*ids));
    return true;
}

static bool leaf_squares(bal_model *model, size_t i, uint64_t offset,
                         uint64_t len, double *out)
{
    leaf_model *self = (leaf_model *)model;
    const bal_place *place = &self->leaf.places[bal_model_tag(model, i)];
    const bal_tensor *entry = bal_model_at(model, i);
    uint64_t block = self->leaf.block_size;
    bal_tree tree = { .depth = 0 };
    unsigned level = 0;
    bool there = true;

    if (place->shared || entry->part != BAL_PART_TENSOR || offset % block ||
        (len % block && offset + len != entry->size) ||
        !bal_squares_kept(&level, entry->dtype, block))
        return false;
    for (uint64_t k = offset / block; k * block < offset + len && there; k++) {
        double node = 0;
        if (bal_graph_norm(self->graph, self->number,
                           &self->leaf.ids[place->first + k],
                           bal_dtype_name(entry->dtype), &node, &there, NULL))
            return false;
        bal_tree_add(&tree, level, node);
    }
    *out = bal_tree_sum(&tree);
    return there;
}

static const bal_model_ops leaf_ops = {
    .read = leaf_read,
    .free = leaf_free,
    .pass = leaf_pass,
    .ident = leaf_ident,
    .squares = leaf_squares,
};

int bal_leaf_model(bal_model **out, const bal_tenant *tenant, bal_bytes text,
                   const char *name, bal_error *err)
{
    leaf_model *made = bal_model_alloc(sizeof(*made), &leaf_ops);
    if (!made)
        return bal_fail_memory(err, name);
    BAL_OWN(bal_model) model = &made->base;

    made->blocks = tenant->store->blocks;
    made->graph = tenant->store->graph;
    made->number = tenant->number;
    memcpy(made->tenant, tenant->name, sizeof(made->tenant));
    int rc = bal_leaf_read(&made->leaf, text, err);
    if (rc)
        return rc;
    bal_facts facts = { made->leaf.kind, name, made->leaf.base_model,
                        made->leaf.revision, NULL };
    rc = bal_model_tell(model, &facts, err);
    for (size_t i = 0; i < made->leaf.count && !rc; i++)
        rc = bal_model_add(model, &made->leaf.entries[i], i, err);
    if (rc)
        return rc;
    rc = bal_model_ready(model, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}
