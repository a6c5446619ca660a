/* How the bytes of a model are cut into blocks. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "model/model.h"
#include "store/pack.h"
#include "support/check.h"

#define BLOCK ((uint64_t)4 << 20)

static int no_read(bal_model *self, size_t i, uint64_t offset, void *to,
                   size_t len, bal_error *err)
{
    (void)self;
    (void)i;
    (void)offset;
    memset(to, 0, len);
    (void)err;
    return 0;
}

static void no_free(bal_model *self)
{
    (void)self;
}

static const bal_model_ops ops = { .read = no_read, .free = no_free };

/* Tensors named t0000, t0001 … of `elements` each, all but the one left out. */
static bal_model *model_of(size_t count, uint64_t elements, bal_dtype dtype,
                           size_t left_out)
{
    bal_model *model = bal_model_alloc(sizeof(*model), &ops);
    bal_facts facts = { .kind = BAL_KIND_WEIGHTS, .name = "test" };

    CHECK(model != NULL);
    CHECK_OK(bal_model_tell(model, &facts, &check_err));
    for (size_t i = 0; i < count; i++) {
        char name[32];
        bal_tensor entry = { .name = name,
                             .dtype = dtype,
                             .of = dtype,
                             .rank = 1,
                             .shape = &elements };
        snprintf(name, sizeof(name), "t%04zu", i);
        if (i != left_out)
            CHECK_OK(bal_model_add(model, &entry, i, &check_err));
    }
    CHECK_OK(bal_model_ready(model, &check_err));
    return model;
}

/* What a block holds, as a hash over the names and ranges in it. */
static bal_id content(const bal_model *model, const bal_pack *pack, size_t b)
{
    bal_hash hash;
    bal_id id;

    bal_hash_init(&hash);
    for (size_t r = 0; r < pack->blocks[b].count; r++) {
        const bal_run *run = &pack->runs[pack->blocks[b].first + r];
        const char *name = bal_model_at(model, run->entry)->name;
        bal_hash_add(&hash, name, strlen(name) + 1);
        bal_hash_add(&hash, &run->offset, sizeof(run->offset));
        bal_hash_add(&hash, &run->len, sizeof(run->len));
    }
    bal_hash_end(&hash, &id);
    return id;
}

static size_t shared_blocks(const bal_model *a, const bal_pack *pa,
                            const bal_model *b, const bal_pack *pb)
{
    size_t shared = 0;

    for (size_t i = 0; i < pa->block_count; i++) {
        bal_id left = content(a, pa, i);
        for (size_t k = 0; k < pb->block_count; k++) {
            bal_id right = content(b, pb, k);
            shared += bal_id_equal(&left, &right);
        }
    }
    return shared;
}

static void every_byte_is_in_one_block(void)
{
    static const uint64_t sizes[] = {
        0, 1, 1000, BLOCK / 2, BLOCK / 2 + 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5
    };

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        bal_model *model = model_of(5, sizes[s], BAL_U8, SIZE_MAX);
        BAL_LOCAL(bal_pack) pack = { 0 };
        uint64_t bytes = 0;
        CHECK_OK(bal_pack_plan(&pack, model, BLOCK, &check_err));
        for (size_t b = 0; b < pack.block_count; b++) {
            uint64_t size = 0;
            for (size_t r = 0; r < pack.blocks[b].count; r++)
                size += pack.runs[pack.blocks[b].first + r].len;
            CHECK(size == pack.blocks[b].size);
            CHECK(size > 0 && size <= BLOCK);
            bytes += size;
        }
        CHECK(bytes == 5 * sizes[s]);
        bal_model_free(model);
    }
}

static void small_tensors_share_blocks(void)
{
    /* 448 tensors of 180 KB, an adapter of about 80 MB. */
    bal_model *model = model_of(448, 45000, BAL_F32, SIZE_MAX);
    BAL_LOCAL(bal_pack) pack = { 0 };

    CHECK_OK(bal_pack_plan(&pack, model, BLOCK, &check_err));
    CHECK(pack.block_count >= 20 && pack.block_count <= 36);
    bal_model_free(model);
}

static void adding_one_tensor_leaves_nearly_all_blocks(void)
{
    for (size_t added = 0; added < 448; added += 61) {
        bal_model *with = model_of(448, 45000, BAL_F32, SIZE_MAX);
        bal_model *without = model_of(448, 45000, BAL_F32, added);
        BAL_LOCAL(bal_pack) a = { 0 };
        BAL_LOCAL(bal_pack) b = { 0 };
        CHECK_OK(bal_pack_plan(&a, with, BLOCK, &check_err));
        CHECK_OK(bal_pack_plan(&b, without, BLOCK, &check_err));
        CHECK(shared_blocks(with, &a, without, &b) + 4 >= a.block_count);
        bal_model_free(with);
        bal_model_free(without);
    }
}

static void widths_do_not_mix_in_a_block(void)
{
    bal_model *model = bal_model_alloc(sizeof(*model), &ops);
    bal_facts facts = { .kind = BAL_KIND_WEIGHTS, .name = "test" };
    uint64_t elements = 1000;
    BAL_LOCAL(bal_pack) pack = { 0 };

    CHECK_OK(bal_model_tell(model, &facts, &check_err));
    for (size_t i = 0; i < 20; i++) {
        char name[32];
        bal_dtype dtype = i % 2 ? BAL_F32 : BAL_BF16;
        bal_tensor entry = { .name = name,
                             .dtype = dtype,
                             .of = dtype,
                             .rank = 1,
                             .shape = &elements };
        snprintf(name, sizeof(name), "t%zu", i);
        CHECK_OK(bal_model_add(model, &entry, i, &check_err));
    }
    CHECK_OK(bal_model_ready(model, &check_err));
    CHECK_OK(bal_pack_plan(&pack, model, BLOCK, &check_err));
    CHECK(pack.block_count == 2);
    CHECK(pack.blocks[0].width != pack.blocks[1].width);
    bal_model_free(model);
}

static const check_test tests[] = {
    { TEST(every_byte_is_in_one_block) },
    { TEST(small_tensors_share_blocks) },
    { TEST(adding_one_tensor_leaves_nearly_all_blocks) },
    { TEST(widths_do_not_mix_in_a_block) },
};

CHECK_MAIN(tests)
