/* The blocks of a proof: one listing and one walk over the rows, however many
 * they are. */
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "store/statement.h"
#include "store/verify.h"

/* ---- where they are seen ------------------------------------------------ */

static void mark(bal_verification *self, const bal_id *id,
                 enum bal_block_trace trace)
{
    size_t i = bal_map_find(&self->wanted, id, sizeof(*id));

    if (i != BAL_NONE)
        self->present.data[i] = (char)(self->present.data[i] | (char)trace);
}

static int mark_listed(void *ctx, const bal_id *id, const char *name,
                       uint64_t size, bal_error *err)
{
    (void)name;
    (void)size;
    (void)err;
    if (id)
        mark(ctx, id, BAL_TRACE_LISTED);
    return 0;
}

static int mark_row(void *ctx, const bal_block_row *row, bal_error *err)
{
    (void)err;
    mark(ctx, &row->id, BAL_TRACE_ROW);
    return 0;
}

static int mark_intended(void *ctx, const char *session, const char *tenant,
                         const bal_id *id, bal_error *err)
{
    bal_verification *self = ctx;

    (void)session;
    (void)err;
    if (!strcmp(tenant, self->tenant))
        mark(self, id, BAL_TRACE_INTENDED);
    return 0;
}

static int index_blocks(bal_verification *self, bal_error *err)
{
    size_t count = bal_ids_count(&self->blocks);
    int rc = bal_buf_reserve(&self->present, count + 1, err);
    if (rc)
        return rc;

    memset(self->present.data, 0, count + 1);
    for (size_t i = 0; i < count && !rc; i++) {
        size_t value = i;
        bool there;
        rc = bal_map_add(&self->wanted, bal_ids_at(&self->blocks, i),
                         sizeof(bal_id), &value, &there, err);
    }
    return rc;
}

int bal_verify_list(bal_verification *self, bal_error *err)
{
    const json_t *ids = json_object_get(self->predicate, "blocks");
    int rc = bal_statement_ids(&self->blocks, ids, err);

    if (rc == BAL_ECORRUPT) {
        bal_buf_clear(&self->blocks);
        return bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                               "the statement names a block that is no id");
    }
    if (!rc)
        rc = index_blocks(self, err);
    if (rc || !self->blocks.len)
        return rc;
    return bal_blocks_each(self->store->blocks, self->tenant, mark_listed, self,
                           err);
}

/* ---- what to say of them ------------------------------------------------ */

/* Those that were committed again, told together. */
typedef struct again {
    uint64_t count;
    int64_t since;
    bal_id first;
} again;

static int tell_block(bal_verification *self, const bal_id *id,
                      bal_finding finding, const char *what, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    return bal_verify_tell(self, finding, err, "block %s %s", hex, what);
}

static int check_row(bal_verification *self, const bal_id *id, again *later,
                     bal_error *err)
{
    bal_presence found = { .row = false };
    int rc = bal_graph_presence(self->store->graph, self->tenant,
                                BAL_PRESENCE_BLOCK, id, &found, err);
    if (rc)
        return rc;

    if (!found.there || found.oldest < self->epoch)
        return tell_block(self, id, BAL_FINDING_PROBLEM,
                          "is still in the database", err);
    if (!later->count || found.since < later->since) {
        later->since = found.since;
        later->first = *id;
    }
    later->count++;
    return 0;
}

/* Listed, and nobody names it: unless it went meanwhile. */
static int check_orphan(bal_verification *self, const bal_id *id,
                        bal_error *err)
{
    bal_block_info info;
    bal_error why;
    int rc = bal_blocks_verify(self->store->blocks, self->tenant, id,
                               BAL_VERIFY_HEADER, &info, &why);

    if (rc == BAL_ENOTFOUND)
        return 0;
    return tell_block(self, id, BAL_FINDING_PROBLEM, "is still in the backend",
                      err);
}

static int check_block(bal_verification *self, size_t i, again *later,
                       bal_error *err)
{
    unsigned seen = (unsigned char)self->present.data[i];
    const bal_id *id = bal_ids_at(&self->blocks, i);

    if (seen & BAL_TRACE_ROW)
        return check_row(self, id, later, err);
    if (!(seen & BAL_TRACE_LISTED))
        return 0;
    if (seen & BAL_TRACE_INTENDED)
        return tell_block(self, id, BAL_FINDING_NOTE,
                          "is present again (being written now)", err);
    return check_orphan(self, id, err);
}

static int tell_again(bal_verification *self, const again *later,
                      bal_error *err)
{
    char hex[BAL_ID_HEX + 1], at[40];

    if (!later->count)
        return 0;
    bal_id_hex(hex, &later->first);
    bal_clock_rfc3339(at, later->since);
    if (later->count == 1)
        return bal_verify_tell(self, BAL_FINDING_NOTE, err,
                               "block %s is present again since %s", hex, at);
    return bal_verify_tell(self, BAL_FINDING_NOTE, err,
                           "%llu blocks are present again since %s",
                           (unsigned long long)later->count, at);
}

int bal_verify_blocks(bal_verification *self, bal_error *err)
{
    bal_graph *graph = self->store->graph;
    size_t count = bal_ids_count(&self->blocks);
    again later = { .count = 0 };
    int64_t tenant = 0;
    bal_error why;
    int rc = count ? bal_graph_tenant(graph, &tenant, self->tenant, 0, &why)
                   : BAL_ENOTFOUND;

    if (rc && rc != BAL_ENOTFOUND)
        return bal_fail(err, rc, "%s", why.text);
    if (!rc)
        rc = bal_graph_blocks(graph, tenant, mark_row, self, err);
    else
        rc = 0;
    if (!rc)
        rc = bal_graph_intended(graph, NULL, false, mark_intended, self, err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = self->present.data[i] ? check_block(self, i, &later, err) : 0;
    return rc ? rc : tell_again(self, &later, err);
}
