/* Reading blocks, and what all of blocks/ shares. Nothing leaves here that was
 * not hashed and compared to the name it was asked for by.
 *
 * The check in the header covers header and payload, so that fsck can tell a
 * damaged block without decoding it. A read does without it: the hash of what
 * was decoded says more, and hashing the payload besides would cost a quarter
 * of the time. */
#include "blocks/blocks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "blocks/base.h"
#include "blocks/inside.h"
#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"

enum { SHORT = 12 };

bal_backend *bal_blocks_backend(bal_blocks *self)
{
    return self->backend;
}

int bal_blocks_open(bal_blocks **out, bal_backend *backend, size_t cache,
                    bal_error *err)
{
    BAL_OWN(bal_blocks) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "blocks");
    pthread_mutex_init(&self->lock, NULL);
    int rc = bal_cache_new(&self->cache, cache, err);
    if (rc)
        return rc;
    self->backend = backend;
    *out = BAL_TAKE(self);
    return 0;
}

void bal_blocks_keep(bal_blocks *self, size_t cache)
{
    bal_cache_widen(self->cache, cache);
}

void bal_blocks_spill(bal_blocks *self, const char *folder, size_t block,
                      size_t most)
{
    bal_cache_spill(self->cache, folder, block, most);
}

void bal_blocks_free(bal_blocks *self)
{
    if (!self)
        return;
    bal_benches_free(self);
    bal_cache_free(self->cache);
    bal_backend_free(self->backend);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

int bal_block_name(char out[BAL_BLOCK_NAME_ROOM], const char *tenant,
                   const bal_id *id, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    if (!bal_name_valid(tenant))
        return bal_fail(err, BAL_EINVAL, "'%s' is not a tenant's name", tenant);
    bal_id_hex(hex, id);
    snprintf(out, BAL_BLOCK_NAME_ROOM, "%s/%c/%s", tenant, hex[0], hex);
    return 0;
}

int bal_block_key(bal_cache_key *key, const char *tenant, const bal_id *id,
                  bal_error *err)
{
    char name[BAL_BLOCK_NAME_ROOM];
    int rc = bal_block_name(name, tenant, id, err);
    if (rc)
        return rc;

    *key = (bal_cache_key){ .id = *id };
    memcpy(key->tenant, tenant, strlen(tenant));
    return 0;
}

void bal_block_check(uint8_t out[32], const bal_block_header *header,
                     bal_bytes extra, const bal_id *payload)
{
    uint8_t bytes[BAL_BLOCK_HEADER];
    bal_hash hash;
    bal_id check;

    bal_block_header_write(bytes, header);
    bal_hash_init(&hash);
    bal_hash_add(&hash, bytes, BAL_BLOCK_HEADER - sizeof(header->check));
    bal_hash_add(&hash, extra.data, extra.len);
    bal_hash_add(&hash, payload->bytes, sizeof(payload->bytes));
    bal_hash_end(&hash, &check);
    memcpy(out, check.bytes, sizeof(check.bytes));
}

/* ---- reading ------------------------------------------------------------ */

/* One block being looked at: who asks, and what is there. */
typedef struct block_reading {
    bal_blocks *blocks;
    const char *tenant;
    const bal_id *id;
    bal_bench *bench; /* its bytes: the block at rest, or its header alone */
    uint64_t stored;
    bal_block_header header;
    bal_bytes extra;
    bal_bytes payload;
    bool near; /* a copy on this machine will do */
    bool copy; /* and was what was read */
} block_reading;

static void block_reading_done(block_reading *self)
{
    if (self->bench)
        bal_bench_give(self->blocks, self->bench);
}

/* Say which block it is that something is wrong with. */
static int about(const bal_id *id, int rc, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    if (rc == BAL_ENOTFOUND)
        return bal_fail(err, rc, "no block %.*s", SHORT, hex);
    return bal_within(err, rc, "block %.*s", SHORT, hex);
}

/* The header out of the first bytes; lengths must add up to what is stored. */
static int read_header(block_reading *self, bal_error *err)
{
    bal_bytes bytes = { self->bench->bytes.data, self->bench->bytes.len };
    int rc = bal_block_header_read(&self->header, bytes, err);
    if (rc)
        return rc;

    uint64_t size =
        BAL_BLOCK_HEADER + (uint64_t)self->header.extra + self->header.payload;
    if (size != self->stored)
        return bal_fail(
            err, BAL_ECORRUPT, "size: %llu bytes at rest where %llu belong",
            (unsigned long long)self->stored, (unsigned long long)size);
    return 0;
}

/* Bring in the whole block, which is of `most` logical bytes or fewer. */
static int load(block_reading *self, uint64_t most, bal_error *err)
{
    char name[BAL_BLOCK_NAME_ROOM];
    int rc = bal_block_name(name, self->tenant, self->id, err);
    if (rc)
        return rc;
    rc = bal_bench_take(&self->bench, self->blocks, err);
    if (rc)
        return rc;

    assert(self->bench);
    bal_buf *bytes = &self->bench->bytes;
    bytes->ceiling = BAL_BLOCK_HEADER + BAL_BASE_MOST + (size_t)most;
    bal_backend *backend = self->blocks->backend;
    rc = self->near
             ? bal_backend_get_near(backend, name, bytes, &self->copy, err)
             : bal_backend_get(backend, name, 0, 0, bytes, err);
    if (rc == BAL_EINVAL)
        return bal_fail(err, BAL_ECORRUPT, "size: more bytes than it can have");
    if (rc)
        return rc;
    self->stored = bytes->len;
    rc = read_header(self, err);
    if (rc)
        return rc;
    const char *data = bytes->data + BAL_BLOCK_HEADER;
    self->extra = (bal_bytes){ data, self->header.extra };
    self->payload =
        (bal_bytes){ data + self->header.extra, (size_t)self->header.payload };
    return 0;
}

static int wrong_hash(bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "hash: not the bytes of this name");
}

/* What is not decoded is compared before it is copied. */
static int decode_raw(const block_reading *self, uint8_t *to, bal_error *err)
{
    bal_id hash;

    bal_hash_of(&hash, self->payload.data, self->payload.len);
    if (!bal_id_equal(&hash, self->id))
        return wrong_hash(err);
    if (self->payload.len != self->header.logical)
        return bal_fail(err, BAL_ECORRUPT, "payload: of another length");
    memcpy(to, self->payload.data, self->payload.len);
    return 0;
}

static int decode_by(const block_reading *self, uint8_t *to, bal_bytes base,
                     bal_error *err)
{
    const bal_block_header *header = &self->header;
    const bal_grain grain = { .width = header->width, .base = base };
    bal_id hash;
    int rc = bal_decode(self->bench->coder, header->codec, to,
                        (size_t)header->logical, self->payload, &grain, err);
    if (rc)
        return bal_within(err, rc, "payload");

    bal_hash_of(&hash, to, (size_t)header->logical);
    return bal_id_equal(&hash, self->id) ? 0 : wrong_hash(err);
}

/* Of a block that has a base: that first. */
static int decode_based(const block_reading *self, uint8_t *to, bal_error *err)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    bal_base base = { 0 };
    bal_buf *room = &self->bench->base;
    int rc =
        bal_base_read(&base, &arena, self->extra, self->header.logical, err);
    if (!rc)
        rc = bal_buf_reserve(room, (size_t)base.len, err);
    if (rc)
        return rc;

    rc = bal_base_gather((uint8_t *)room->data, self->blocks, self->tenant,
                         &base, err);
    return rc ? rc
              : decode_by(self, to, (bal_bytes){ room->data, (size_t)base.len },
                          err);
}

/* Decode into `to`, which has header.logical bytes, and compare. */
static int decode(const block_reading *self, uint8_t *to, bal_error *err)
{
    const bal_block_header *header = &self->header;

    if (header->flags == BAL_BLOCK_BASED)
        return decode_based(self, to, err);
    if (header->flags || header->extra)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "header: flags %02x of a newer version", header->flags);
    return header->codec == BAL_CODEC_RAW
               ? decode_raw(self, to, err)
               : decode_by(self, to, (bal_bytes){ 0 }, err);
}

/* Load and decode, of a block whose size is known. */
static int read_once(block_reading *self, uint8_t *to, uint64_t size,
                     bal_error *err)
{
    int rc = load(self, size, err);
    if (rc)
        return rc;

    if (self->header.logical != size)
        return bal_fail(err, BAL_ECORRUPT, "size: %llu bytes where %llu belong",
                        (unsigned long long)self->header.logical,
                        (unsigned long long)size);
    return decode(self, to, err);
}

/* A copy that is damaged says nothing of the block. */
static bool drop_copy(const block_reading *self)
{
    char name[BAL_BLOCK_NAME_ROOM];

    if (!self->copy || bal_block_name(name, self->tenant, self->id, NULL))
        return false;
    bal_backend_drop_near(self->blocks->backend, name);
    return true;
}

/* The whole block, whose size is known, into `to`. */
static int read_whole(bal_blocks *blocks, const char *tenant, const bal_id *id,
                      uint8_t *to, uint64_t size, bal_error *err)
{
    BAL_LOCAL(block_reading) first = { blocks, tenant, id, .near = true };
    BAL_LOCAL(block_reading) again = { blocks, tenant, id, .near = true };
    int rc = read_once(&first, to, size, err);

    if (rc != BAL_ECORRUPT || !drop_copy(&first))
        return rc;
    return read_once(&again, to, size, err);
}

typedef struct block_filling {
    bal_blocks *blocks;
    const bal_cache_key *key;
} block_filling;

static int fill(void *ctx, uint8_t *to, size_t size, bal_error *err)
{
    const block_filling *self = ctx;

    return read_whole(self->blocks, self->key->tenant, &self->key->id, to, size,
                      err);
}

static int read_part(bal_blocks *self, const bal_cache_key *key, uint64_t size,
                     uint64_t offset, void *to, size_t len, bal_error *err)
{
    const bal_cached *cached = NULL;
    block_filling filling = { self, key };
    int rc = bal_cache_take(self->cache, &cached, key, (size_t)size, fill,
                            &filling, err);
    if (rc)
        return rc;

    if (cached->size == size)
        memcpy(to, cached->data + offset, len);
    else
        rc = bal_fail(err, BAL_ECORRUPT, "size: %zu bytes where %llu belong",
                      cached->size, (unsigned long long)size);
    bal_cache_give(self->cache, cached);
    return rc;
}

static int read_range(bal_blocks *self, const bal_block_ref *block,
                      const bal_cache_key *key, uint64_t offset, void *to,
                      size_t len, bal_error *err)
{
    if (len == block->size)
        return read_whole(self, block->tenant, block->id, to, block->size, err);
    return len ? read_part(self, key, block->size, offset, to, len, err) : 0;
}

int bal_blocks_read(bal_blocks *self, const bal_block_ref *block,
                    uint64_t offset, void *to, size_t len, bal_error *err)
{
    uint64_t size = block->size;
    bal_cache_key key;

    if (offset > size || len > size - offset || size > BAL_BLOCK_LONGEST)
        return bal_fail(err, BAL_EINVAL, "a block has no such bytes");
    int rc = bal_block_key(&key, block->tenant, block->id, err);
    if (rc)
        return rc;
    rc = read_range(self, block, &key, offset, to, len, err);
    return rc ? about(block->id, rc, err) : 0;
}

void bal_blocks_pass(bal_blocks *self, const char *tenant, const bal_id *id)
{
    bal_cache_key key;

    if (!bal_block_key(&key, tenant, id, NULL))
        bal_cache_pass(self->cache, &key);
}

/* ---- verifying ---------------------------------------------------------- */

/* Size and header alone. */
static int look(block_reading *self, bal_error *err)
{
    char name[BAL_BLOCK_NAME_ROOM];
    int rc = bal_block_name(name, self->tenant, self->id, err);
    if (rc)
        return rc;
    rc = bal_backend_size(self->blocks->backend, name, &self->stored, err);
    if (rc)
        return rc;
    if (self->stored < BAL_BLOCK_HEADER)
        return bal_fail(err, BAL_ECORRUPT, "size: %llu bytes are no block",
                        (unsigned long long)self->stored);
    rc = bal_bench_take(&self->bench, self->blocks, err);
    if (rc)
        return rc;
    rc = bal_backend_get(self->blocks->backend, name, 0, BAL_BLOCK_HEADER,
                         &self->bench->bytes, err);
    if (rc)
        return rc;
    return read_header(self, err);
}

static int verify_check(const block_reading *self, const bal_id *payload,
                        bal_error *err)
{
    uint8_t check[32];

    bal_block_check(check, &self->header, self->extra, payload);
    if (memcmp(check, self->header.check, sizeof(check)) != 0)
        return bal_fail(err, BAL_ECORRUPT,
                        "header: check does not match header and payload");
    return 0;
}

/* All that is at rest, by its own check; and of a raw block, by its name. */
static int verify_payload(block_reading *self, bal_error *err)
{
    const bal_block_header *header = &self->header;
    bal_id hash;
    int rc = load(self, BAL_BLOCK_LONGEST, err);
    if (rc)
        return rc;

    bal_hash_of(&hash, self->payload.data, self->payload.len);
    rc = verify_check(self, &hash, err);
    if (rc)
        return rc;
    bool raw = header->codec == BAL_CODEC_RAW && !header->extra;
    return raw && !bal_id_equal(&hash, self->id) ? wrong_hash(err) : 0;
}

static int verify_all(block_reading *self, bal_error *err)
{
    int rc = verify_payload(self, err);
    if (rc)
        return rc;
    /* Nothing is allocated before the check has said that it is a block. */
    uint8_t *to = bal_pages((size_t)self->header.logical);
    if (!to)
        return bal_fail_memory(err, "a block");
    rc = decode(self, to, err);
    free(to);
    return rc;
}

/* The payload of a raw block hashes to its name, so its check needs no
 * payload. */
static int verify_header(block_reading *self, bal_error *err)
{
    int rc = look(self, err);
    if (rc)
        return rc;
    if (self->header.codec != BAL_CODEC_RAW || self->header.extra)
        return 0;
    return verify_check(self, self->id, err);
}

/* By flags; what is asked for least comes first. */
typedef int verify_fn(block_reading *self, bal_error *err);
static const struct {
    unsigned flag;
    verify_fn *verify;
} depths[] = {
    { BAL_VERIFY_HEADER, verify_header },
    { BAL_VERIFY_PAYLOAD, verify_payload },
};

static verify_fn *depth_of(unsigned flags)
{
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++)
        if (flags & depths[i].flag)
            return depths[i].verify;
    return verify_all;
}

int bal_base_of(bal_base *out, bal_arena *arena, bal_blocks *blocks,
                const char *tenant, const bal_id *id, bal_error *err)
{
    BAL_LOCAL(block_reading) reading = { blocks, tenant, id };
    int rc = load(&reading, BAL_BLOCK_LONGEST, err);

    *out = (bal_base){ 0 };
    if (!rc && reading.header.flags == BAL_BLOCK_BASED)
        rc = bal_base_read(out, arena, reading.extra, reading.header.logical,
                           err);
    return rc ? about(id, rc, err) : 0;
}

int bal_blocks_verify(bal_blocks *self, const char *tenant, const bal_id *id,
                      unsigned flags, bal_block_info *info, bal_error *err)
{
    BAL_LOCAL(block_reading) reading = { self, tenant, id };
    int rc = depth_of(flags)(&reading, err);
    if (rc)
        return about(id, rc, err);
    *info = (bal_block_info){
        .logical = reading.header.logical,
        .stored = reading.stored,
        .codec = reading.header.codec,
        .width = reading.header.width,
        .based = reading.header.flags == BAL_BLOCK_BASED,
    };
    memcpy(info->check.bytes, reading.header.check, sizeof(info->check.bytes));
    return 0;
}
