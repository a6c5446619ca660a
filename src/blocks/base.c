#include "blocks/base.h"

#include <stdlib.h>
#include <string.h>

#include "blocks/inside.h"
#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"

/* ---- at rest ------------------------------------------------------------ */

int bal_base_write(bal_buf *to, const bal_base *self, bal_error *err)
{
    uint8_t head[BAL_BASE_HEAD] = { (uint8_t)self->depth };
    int rc = bal_buf_append(to, head, sizeof(head), err);

    for (size_t i = 0; !rc && i < self->count; i++) {
        const bal_block_span *span = &self->spans[i];
        uint8_t bytes[BAL_BASE_SPAN];
        memcpy(bytes, span->id.bytes, sizeof(span->id.bytes));
        bal_put64(bytes + 32, span->size);
        bal_put64(bytes + 40, span->offset);
        bal_put64(bytes + 48, span->len);
        rc = bal_buf_append(to, bytes, sizeof(bytes), err);
    }
    return rc;
}

static int bad(const char *what, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "base: %s", what);
}

static void read_span(bal_block_span *out, const uint8_t *from)
{
    memcpy(out->id.bytes, from, sizeof(out->id.bytes));
    out->size = bal_get64(from + 32);
    out->offset = bal_get64(from + 40);
    out->len = bal_get64(from + 48);
}

static bool is_in_block(const bal_block_span *span)
{
    return span->size <= BAL_BLOCK_LONGEST && span->offset <= span->size &&
           span->len <= span->size - span->offset;
}

int bal_base_read(bal_base *out, bal_arena *arena, bal_bytes extra,
                  uint64_t most, bal_error *err)
{
    static const uint8_t none[BAL_BASE_HEAD - 1];
    const uint8_t *from = extra.data;
    size_t body = extra.len < BAL_BASE_HEAD ? 0 : extra.len - BAL_BASE_HEAD;
    size_t count = body / BAL_BASE_SPAN;
    bal_base self = { .count = count };

    if (!count || body % BAL_BASE_SPAN || count > BAL_BASE_SPANS_MAX)
        return bad("cut short", err);
    if (!from[0] || from[0] > BAL_BASE_DEPTH_MAX ||
        memcmp(from + 1, none, sizeof(none)) != 0)
        return bad("no depth that there is", err);
    self.depth = from[0];
    bal_block_span *spans = bal_arena_alloc(arena, count * sizeof(*spans));
    if (!spans)
        return bal_fail_memory(err, "a block's base");
    for (size_t i = 0; i < count; i++) {
        read_span(&spans[i], from + BAL_BASE_HEAD + i * BAL_BASE_SPAN);
        if (!is_in_block(&spans[i]))
            return bad("bytes that its block has not", err);
        self.len += spans[i].len;
        if (self.len > most)
            return bad("more bytes than the block has", err);
    }
    self.spans = spans;
    *out = self;
    return 0;
}

/* ---- reading ------------------------------------------------------------ */

int bal_block_depth(unsigned *out, bal_blocks *blocks, const char *tenant,
                    const bal_id *id, bal_error *err)
{
    BAL_LOCAL(bal_buf) bytes = { 0 };
    bal_block_header header;
    char name[BAL_BLOCK_NAME_ROOM];
    int rc = bal_block_name(name, tenant, id, err);

    *out = 0;
    if (!rc)
        rc = bal_backend_get(blocks->backend, name, 0, BAL_BLOCK_HEADER + 1,
                             &bytes, err);
    if (rc)
        return rc;
    rc = bal_block_header_read(&header, (bal_bytes){ bytes.data, bytes.len },
                               err);
    if (rc || !(header.flags & BAL_BLOCK_BASED))
        return rc;
    if (bytes.len <= BAL_BLOCK_HEADER || !header.extra)
        return bad("cut short", err);
    *out = (uint8_t)bytes.data[BAL_BLOCK_HEADER];
    return 0;
}

static int gather_span(uint8_t *to, bal_blocks *blocks, const char *tenant,
                       const bal_block_span *span, unsigned depth,
                       bal_error *err)
{
    const bal_block_ref ref = { tenant, &span->id, span->size };
    unsigned its = 0;
    int rc = bal_block_depth(&its, blocks, tenant, &span->id, err);
    if (rc)
        return rc;

    if (its >= depth)
        return bad("as deep as what it is the base of", err);
    return bal_blocks_read(blocks, &ref, span->offset, to, (size_t)span->len,
                           err);
}

int bal_base_gather(uint8_t *to, bal_blocks *blocks, const char *tenant,
                    const bal_base *self, bal_error *err)
{
    for (size_t i = 0; i < self->count; i++) {
        const bal_block_span *span = &self->spans[i];
        char hex[BAL_ID_HEX + 1];
        int rc = gather_span(to, blocks, tenant, span, self->depth, err);
        bal_id_hex(hex, &span->id);
        if (rc == BAL_ENOTFOUND)
            return bal_fail(err, BAL_ECORRUPT, "its base %.12s is lost", hex);
        if (rc)
            return bal_within(err, rc, "its base %.12s", hex);
        to += span->len;
    }
    return 0;
}

/* Of one that is there; of another, whoever looks for it tells. */
static int check_depth(const bal_base *self, bal_blocks *blocks,
                       const char *tenant, const bal_id *base, bal_error *err)
{
    unsigned its = 0;
    char hex[BAL_ID_HEX + 1];

    if (bal_block_depth(&its, blocks, tenant, base, NULL) || its < self->depth)
        return 0;
    bal_id_hex(hex, base);
    return bal_fail(err, BAL_ECORRUPT,
                    "its base %.12s is as deep as it is itself", hex);
}

int bal_blocks_bases(bal_blocks *self, const char *tenant, const bal_id *id,
                     bal_buf *to, bal_error *err)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    bal_base base;
    int rc = bal_base_of(&base, &arena, self, tenant, id, err);

    for (size_t i = 0; !rc && i < base.count; i++) {
        const bal_id *one = &base.spans[i].id;
        if (i && bal_id_equal(one, &base.spans[i - 1].id))
            continue;
        rc = bal_buf_append(to, one, sizeof(*one), err);
        if (!rc)
            rc = check_depth(&base, self, tenant, one, err);
    }
    return rc;
}

int bal_blocks_spans(bal_blocks *self, const char *tenant, const bal_id *id,
                     bal_buf *to, bal_error *err)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    bal_base base;
    int rc = bal_base_of(&base, &arena, self, tenant, id, err);

    if (rc || !base.count)
        return rc;
    return bal_buf_append(to, base.spans, base.count * sizeof(*base.spans),
                          err);
}

/* ---- for a block that is being written ------------------------------------
 */

void bal_ground_done(bal_ground *self)
{
    free(self->bytes);
    bal_arena_done(&self->arena);
}

static int depth_of(bal_ground *self, const bal_batch *batch, const bal_id *id,
                    bal_error *err)
{
    bal_base *base = &self->base;

    base->depth = 0;
    base->len = 0;
    for (size_t i = 0; i < base->count; i++) {
        const bal_block_span *span = &base->spans[i];
        unsigned depth = 0;
        int rc = 0;
        base->len += span->len;
        if (bal_id_equal(&span->id, id))
            return bal_fail(err, BAL_EINVAL, "a block is no base of itself");
        if (!i || !bal_id_equal(&span->id, &span[-1].id))
            rc = bal_block_depth(&depth, batch->blocks, batch->tenant,
                                 &span->id, err);
        if (rc)
            return rc;
        base->depth = base->depth > depth ? base->depth : depth + 1;
    }
    return 0;
}

/* Where a base is too deep, what it is coded by itself is as good a base, if
 * less near: of a whole block that is coded by as many bytes. */
static int climb(bal_ground *self, const bal_batch *batch, bool *climbed,
                 bal_error *err)
{
    const bal_block_span *span = self->base.spans;
    bal_base above = { 0 };
    int rc = 0;

    *climbed = false;
    if (self->base.count != 1 || span->offset || span->len != span->size)
        return 0;
    rc = bal_base_of(&above, &self->arena, batch->blocks, batch->tenant,
                     &span->id, err);
    if (rc || above.len != span->len)
        return rc;
    self->base = above;
    *climbed = true;
    return 0;
}

static int open_ground(bal_ground *self, const bal_batch *batch,
                       const bal_id *id, bal_error *err)
{
    bool climbed = true;
    int rc = depth_of(self, batch, id, err);

    for (unsigned i = 0; !rc && climbed && self->base.depth > self->deepest;
         i++) {
        rc = climb(self, batch, &climbed, err);
        if (!rc && climbed)
            rc = depth_of(self, batch, id, err);
        climbed = climbed && i < BAL_BASE_DEPTH_MAX;
    }
    if (rc || self->base.depth > self->deepest)
        return rc;
    self->bytes = bal_pages((size_t)self->base.len + 1);
    if (!self->bytes)
        return bal_fail_memory(err, "a block's base");
    return bal_base_gather(self->bytes, batch->blocks, batch->tenant,
                           &self->base, err);
}

int bal_ground_find(bal_ground *self, const bal_batch *batch, const bal_id *id,
                    const bal_block_kind *kind, bal_error *err)
{
    if (!kind->base_count || kind->base_count > BAL_BASE_SPANS_MAX ||
        batch->effort == BAL_EFFORT_NONE)
        return 0;
    self->base = (bal_base){ .spans = kind->base, .count = kind->base_count };
    self->deepest = BAL_BASE_DEPTH_MAX;
    int rc = kind->keeps_depth ? bal_block_depth(&self->deepest, batch->blocks,
                                                 batch->tenant, id, NULL)
                               : 0;
    if (!rc)
        rc = open_ground(self, batch, id, NULL);
    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "a block's base");
    if (!rc)
        return 0;
    free(self->bytes);
    self->bytes = NULL;
    return 0;
}
