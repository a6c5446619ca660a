#include "store/intent.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"

static int draw_name(bal_intent *self, bal_error *err)
{
    uint8_t bytes[(sizeof(self->session) - 1) / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return bal_fail_errno(err, "drawing a session name");
    bal_hex_write(self->session, bytes, sizeof(bytes));
    self->session[sizeof(self->session) - 1] = '\0';
    return 0;
}

int bal_intend(bal_intent *out, const bal_tenant *tenant,
               const bal_block_row *rows, size_t count, bal_error *err)
{
    *out = (bal_intent){ 0 };
    if (!count)
        return 0;
    bal_id *ids = calloc(count, sizeof(*ids));
    if (!ids)
        return bal_fail_memory(err, "blocks");
    for (size_t i = 0; i < count; i++)
        ids[i] = rows[i].id;
    int rc = draw_name(out, err);
    if (!rc)
        rc = bal_graph_intend(tenant->store->graph, tenant->number,
                              out->session, ids, count, err);
    free(ids);
    return rc;
}

int bal_intent_done(const bal_intent *self, bal_store *store, bal_error *err)
{
    if (!self->session[0])
        return 0;
    return bal_graph_intended_done(store->graph, self->session, err);
}

/* ---- what killed writers left ------------------------------------------- */

/* A block that somebody intended. */
typedef struct left {
    char tenant[64 + 1];
    bal_id id;
} left;

static int note_one(void *ctx, const char *session, const char *tenant,
                    const bal_id *id, bal_error *err)
{
    left one = { .id = *id };

    (void)session;
    if (!bal_name_valid(tenant))
        return bal_fail(err, BAL_ECORRUPT, "'%s' is not a tenant's name",
                        tenant);
    memcpy(one.tenant, tenant, strlen(tenant));
    return bal_buf_append(ctx, &one, sizeof(one), err);
}

static const left *at(const bal_buf *all, size_t i)
{
    return &((const left *)(const void *)all->data)[i];
}

/* Those of one tenant, which come one behind the other, together. */
static int remove_unnamed(bal_store *store, bal_error *err)
{
    BAL_LOCAL(bal_buf) all = { 0 };
    BAL_LOCAL(bal_buf) ids = { 0 };
    uint64_t freed;
    int rc = bal_graph_intended(store->graph, NULL, false, note_one, &all, err);
    size_t count = all.len / sizeof(left);

    for (size_t i = 0; i < count && !rc; i++) {
        const left *one = at(&all, i);
        bool last =
            i + 1 == count || strcmp(one->tenant, at(&all, i + 1)->tenant) != 0;

        rc = bal_buf_append(&ids, &one->id, sizeof(one->id), err);
        if (rc || !last)
            continue;
        rc = bal_blocks_remove(store->blocks, one->tenant, bal_ids_of(&ids),
                               bal_ids_count(&ids), &freed, err);
        bal_buf_clear(&ids);
    }
    return rc;
}

/* One that is damaged, or cannot be read, is for fsck to tell. Decoded: a check
 * tells nothing of bytes that are not those the row is of. */
static int renew(bal_store *store, const left *one, bal_error *err)
{
    BAL_LOCAL(bal_buf) bases = { 0 };
    bal_block_info info = { 0 };
    int64_t number = 0;
    int rc =
        bal_blocks_verify(store->blocks, one->tenant, &one->id, 0, &info, NULL);
    if (!rc && info.based)
        rc = bal_blocks_bases(store->blocks, one->tenant, &one->id, &bases,
                              NULL);
    if (rc)
        return rc == BAL_ENOMEM ? bal_fail_memory(err, "a block") : 0;
    rc = bal_graph_tenant(store->graph, &number, one->tenant, 0, err);
    if (rc)
        return rc;

    const bal_block_row row = {
        .id = one->id,
        .size = info.logical,
        .stored = info.stored,
        .codec = info.codec,
        .check = info.check,
        .has_check = true,
        .bases = bal_ids_of(&bases),
        .base_count = bal_ids_count(&bases),
    };
    /* A base that has no row is one that nobody may take for granted. */
    BAL_LOCAL(bal_tx) tx = { 0 };
    rc = bal_graph_begin(&tx, store->graph, BAL_TX_WRITE, err);
    if (!rc)
        rc = bal_graph_block_renew(store->graph, number, &row, err);
    if (!rc)
        rc = bal_tx_commit(&tx, err);
    return rc == BAL_ECONFLICT ? 0 : rc;
}

static int renew_named(bal_store *store, bal_error *err)
{
    BAL_LOCAL(bal_buf) all = { 0 };
    int rc = bal_graph_intended(store->graph, NULL, true, note_one, &all, err);

    for (size_t i = 0; i < all.len / sizeof(left) && !rc; i++)
        rc = renew(store, at(&all, i), err);
    return rc;
}

int bal_intents_settle(bal_store *store, bal_error *err)
{
    int rc = remove_unnamed(store, err);
    if (!rc)
        rc = renew_named(store, err);
    return rc ? rc : bal_graph_intended_done(store->graph, NULL, err);
}
