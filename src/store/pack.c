/* How the bytes of a model are cut into blocks; see pack.h. */
#include "store/pack.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/room.h"
#include "kernel/dtype.h"

#define WIDTHS 5 /* 0, 1, 2, 4, 8 bytes */

/* An entry that waits for its block to be closed. */
typedef struct open_run {
    bal_run run;
    uint64_t rank; /* of its name */
} open_run;

/* The block that entries of one width are going into. Its runs are kept apart,
 * since blocks of several widths fill side by side. */
typedef struct open_block {
    open_run *runs;
    size_t count, room;
    uint64_t size;
} open_block;

typedef struct planner {
    bal_pack *pack;
    uint64_t block_size;
    open_block open[WIDTHS];
} planner;

static const unsigned width_bytes[WIDTHS] = { 0, 1, 2, 4, 8 };

static size_t width_class(const bal_tensor *entry)
{
    unsigned bits = bal_dtype_bits(entry->dtype);

    if (entry->part != BAL_PART_TENSOR)
        return 0;
    for (size_t i = WIDTHS - 1; i > 1; i--) {
        if (bits == 8 * width_bytes[i])
            return i;
    }
    return 1;
}

static int add_run(bal_pack *pack, const bal_run *run, bal_error *err)
{
    bal_run *runs = bal_room_for_one(pack->runs, pack->run_count,
                                     &pack->run_room, sizeof(*runs));
    if (!runs)
        return bal_fail_memory(err, "plan of blocks");
    pack->runs = runs;
    pack->runs[pack->run_count++] = *run;
    return 0;
}

static int add_block(bal_pack *pack, const bal_pack_block *block,
                     bal_error *err)
{
    bal_pack_block *blocks = bal_room_for_one(
        pack->blocks, pack->block_count, &pack->block_room, sizeof(*blocks));
    if (!blocks)
        return bal_fail_memory(err, "plan of blocks");
    pack->blocks = blocks;
    pack->blocks[pack->block_count++] = *block;
    return 0;
}

/* Where the open block is best closed: behind the entry whose name has the
 * smallest hash, of those that leave it at least half full. Which one that is
 * depends on names alone, so blocks on either side of a new entry soon end at
 * the same places as before. */
static size_t best_end(const planner *self, const open_block *open)
{
    uint64_t filled = 0, least = UINT64_MAX;
    size_t best = open->count;

    for (size_t i = 0; i < open->count; i++) {
        uint64_t rank = open->runs[i].rank;
        filled += open->runs[i].run.len;
        if (filled < self->block_size / 2 || rank >= least)
            continue;
        least = rank;
        best = i + 1;
    }
    return best;
}

/* Give the first `count` entries of an open block to the plan; the others stay
 * for the next block. */
static int close_block(planner *self, size_t width, size_t count,
                       bal_error *err)
{
    open_block *open = &self->open[width];
    bal_pack *pack = self->pack;
    bal_pack_block block = { pack->run_count, count, 0, width_bytes[width] };

    for (size_t i = 0; i < count; i++) {
        block.size += open->runs[i].run.len;
        int rc = add_run(pack, &open->runs[i].run, err);
        if (rc)
            return rc;
    }
    open->count -= count;
    open->size -= block.size;
    if (open->count)
        memmove(open->runs, open->runs + count,
                open->count * sizeof(*open->runs));
    return add_block(pack, &block, err);
}

static int cut_entry(planner *self, const bal_tensor *entry, size_t i,
                     bal_error *err)
{
    bal_pack *pack = self->pack;
    unsigned width = width_bytes[width_class(entry)];

    for (uint64_t at = 0; at < entry->size; at += self->block_size) {
        bal_run run = { i, at, bal_min(self->block_size, entry->size - at) };
        bal_pack_block block = { pack->run_count, 1, run.len, width };
        int rc = add_run(pack, &run, err);
        if (rc)
            return rc;
        rc = add_block(pack, &block, err);
        if (rc)
            return rc;
    }
    return 0;
}

static uint64_t name_rank(const char *name)
{
    bal_id hash;

    bal_hash_of(&hash, name, strlen(name));
    return bal_get64(hash.bytes);
}

static int share_entry(planner *self, const bal_tensor *entry, size_t i,
                       bal_error *err)
{
    size_t width = width_class(entry);
    open_block *open = &self->open[width];

    while (open->size + entry->size > self->block_size) {
        int rc = close_block(self, width, best_end(self, open), err);
        if (rc)
            return rc;
    }
    open_run *runs =
        bal_room_for_one(open->runs, open->count, &open->room, sizeof(*runs));
    if (!runs)
        return bal_fail_memory(err, "plan of blocks");
    open->runs = runs;
    open->runs[open->count++] =
        (open_run){ { i, 0, entry->size }, name_rank(entry->name) };
    open->size += entry->size;
    return 0;
}

static int plan(planner *self, const bal_model *model, bal_error *err)
{
    size_t count = bal_model_count(model);

    for (size_t i = 0; i < count; i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        if (!entry->size)
            continue;
        int rc = entry->size > self->block_size / 2
                     ? cut_entry(self, entry, i, err)
                     : share_entry(self, entry, i, err);
        if (rc)
            return rc;
    }
    for (size_t width = 0; width < WIDTHS; width++) {
        size_t waiting = self->open[width].count;
        int rc = waiting ? close_block(self, width, waiting, err) : 0;
        if (rc)
            return rc;
    }
    return 0;
}

int bal_pack_plan(bal_pack *out, const bal_model *model, uint64_t block_size,
                  bal_error *err)
{
    planner self = { .pack = out, .block_size = block_size };
    int rc = plan(&self, model, err);

    for (size_t i = 0; i < WIDTHS; i++)
        free(self.open[i].runs);
    return rc;
}

void bal_pack_done(bal_pack *self)
{
    free(self->runs);
    free(self->blocks);
    memset(self, 0, sizeof(*self));
}
