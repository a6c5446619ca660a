/* The last step of every commit: rows and ref in one transaction, so that a
 * commit is there with everything it names or not at all, and two writers end
 * as if one after the other. */
#include "store/publish.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/str.h"
#include "store/commit_object.h"

#define METADATA_MAX ((size_t)1 << 20)
#define MAIN         "main"

/* What a transaction works on. */
typedef struct publishing {
    bal_tenant *tenant;
    const bal_publication *publication;
    const bal_draft *draft;
    const char *ref;
    const char *author;
    const char *metadata;
    bal_id head;
    bool has_head;
    bal_commit *made;
    bal_commit_report *report;
} publishing;

/* ---- the draft ---------------------------------------------------------- */

static int check_metadata(const bal_draft *draft, bal_error *err)
{
    const char *metadata = draft->metadata;
    size_t len = strlen(metadata);

    if (len > METADATA_MAX)
        return bal_fail(err, BAL_EINVAL, "metadata is larger than 1 MiB");
    BAL_OWN(json_t) json = NULL;
    bal_error why;
    if (bal_json_parse(&json, metadata, len, "metadata", &why))
        return bal_fail(err, BAL_EINVAL, "%s", why.text);
    if (!json_is_object(json))
        return bal_fail(err, BAL_EINVAL, "metadata is not a JSON object");
    if (draft->residual && json_object_get(json, "residual"))
        return bal_fail(err, BAL_EINVAL,
                        "metadata has a 'residual', and one is recorded");
    return 0;
}

static void residual_member(bal_json *json, const bal_residual *residual)
{
    bal_json_key(json, "residual");
    bal_json_object(json);
    bal_json_key(json, "total");
    bal_json_f64(json, residual->total);
    bal_json_key(json, "worst");
    bal_json_f64(json, residual->worst);
    bal_json_key(json, "module");
    bal_json_string(json, residual->module[0] ? residual->module : NULL);
    bal_json_close(json);
}

/* Metadata as recorded: the user's own numbers, no white space. */
static int metadata_text(bal_buf *to, const bal_draft *draft, bal_error *err)
{
    int rc = draft->metadata ? check_metadata(draft, err) : 0;
    if (rc)
        return rc;

    bal_json out;
    bal_json_begin(&out, to, 0);
    bal_json_object(&out);
    if (draft->metadata)
        bal_json_members(&out, draft->metadata);
    if (draft->residual)
        residual_member(&out, draft->residual);
    bal_json_close(&out);
    return bal_json_end(&out, err);
}

/* An id covers JSON, which can hold nothing else. NULL is fine. */
static int check_text(const char *what, const char *text, bal_error *err)
{
    if (!text || bal_utf8_valid(text, strlen(text)))
        return 0;
    return bal_fail(err, BAL_EINVAL, "the %s is not UTF-8", what);
}

int bal_draft_check(const bal_draft *draft, bal_error *err)
{
    const char *ref = draft->ref ? draft->ref : MAIN;
    BAL_LOCAL(bal_buf) metadata = { 0 };

    if (!draft->message || !draft->message[0])
        return bal_fail(err, BAL_EINVAL, "a commit needs a message");
    int rc = check_text("message", draft->message, err);
    if (!rc)
        rc = check_text("author", draft->author, err);
    if (!rc)
        rc = check_text("base model", draft->base_model, err);
    if (!rc)
        rc = bal_ref_check(ref, err);
    if (rc)
        return rc;
    return metadata_text(&metadata, draft, err);
}

int bal_ref_check(const char *ref, bal_error *err)
{
    if (!bal_name_valid(ref))
        return bal_hint(
            err, bal_fail(err, BAL_EINVAL, "'%s' is not a ref name", ref),
            "letters, digits, '.', '_', '-'; 64 at most; a "
            "letter or digit first");
    if (bal_hex_valid(ref, BAL_ID_HEX))
        return bal_fail(err, BAL_EINVAL, "ref '%s' looks like a commit id",
                        ref);
    return 0;
}

/* The user's name, for a draft that has no author. */
static const char *default_author(char room[64])
{
    char text[1024];
    struct passwd entry, *found = NULL;

    if (getpwuid_r(geteuid(), &entry, text, sizeof(text), &found) || !found)
        return "unknown";
    snprintf(room, 64, "%s", entry.pw_name);
    return room;
}

/* ---- the transaction ---------------------------------------------------- */

/* wanted NULL: any. */
static int check_head(const publishing *self, const bal_id *wanted,
                      bal_error *err)
{
    char hex[BAL_ID_HEX + 1] = "nothing";

    if (!wanted || (self->has_head && bal_id_equal(wanted, &self->head)))
        return 0;
    if (self->has_head)
        bal_id_hex(hex, &self->head);
    return bal_fail(err, BAL_ECONFLICT, "ref '%s' is at %.12s", self->ref, hex);
}

static int find_head(publishing *self, bal_error *err)
{
    const bal_draft *draft = self->draft;
    int rc = bal_graph_ref(self->tenant->store->graph, self->tenant->number,
                           self->ref, &self->head, &self->has_head, err);
    if (rc)
        return rc;

    rc = check_head(self, draft->expect, err);
    if (rc || !self->has_head)
        return rc; /* a new ref may start anywhere */
    return check_head(self, draft->parent, err);
}

/* Does the head say just what would be committed? */
static int same_as_head(void *ctx, const bal_commit_row *row, bal_error *err)
{
    publishing *self = ctx;
    const char *base = self->publication->base_model;
    bool same_base = row->base_model && base ? !strcmp(row->base_model, base)
                                             : row->base_model == base;

    if (!bal_id_equal(&row->manifest, &self->publication->manifest->id) ||
        strcmp(row->message, self->draft->message) ||
        strcmp(row->metadata, self->metadata) || !same_base)
        return 0;
    self->report->nothing_changed = true;
    return bal_commit_of_row(&self->made, self->tenant, row, err);
}

static int look_at_head(publishing *self, bal_error *err)
{
    if (!self->has_head || (self->draft->flags & BAL_DRAFT_ALLOW_EMPTY))
        return 0;
    return bal_graph_commit(self->tenant->store->graph, self->tenant->number,
                            &self->head, same_as_head, self, err);
}

/* The commit's row: what its id covers, then the id. */
static int make_row(const publishing *self, bal_commit_row *row, bal_error *err)
{
    const bal_draft *draft = self->draft;

    row->manifest = self->publication->manifest->id;
    row->has_parent = self->has_head || draft->parent;
    if (row->has_parent)
        row->parent = self->has_head ? self->head : *draft->parent;
    row->made_on = row->parent;
    row->has_made_on = row->has_parent;
    row->kind = self->publication->manifest->kind;
    row->message = draft->message;
    row->author = self->author;
    row->base_model = self->publication->base_model;
    row->metadata = self->metadata;
    row->created_at = bal_clock_now();
    return bal_commit_id(&row->id, self->tenant->name, row, err);
}

static int insert(publishing *self, bal_error *err)
{
    const bal_publication *publication = self->publication;
    bal_graph *graph = self->tenant->store->graph;
    int64_t tenant = self->tenant->number;
    bal_manifest_row manifest = *publication->manifest;
    manifest.uses = publication->ids;
    manifest.use_count = publication->id_count;
    int rc =
        bal_graph_manifest_put(graph, tenant, &manifest, publication->blocks,
                               publication->block_count, err);
    if (rc)
        return rc;

    bal_commit_row row = { 0 };
    rc = make_row(self, &row, err);
    if (rc)
        return rc;
    rc = bal_graph_commit_put(graph, tenant, &row, err);
    if (rc)
        return rc;
    bal_move_row move = {
        .ref = self->ref,
        .op = publication->op,
        .old = self->head,
        .has_old = self->has_head,
        .now = row.id,
        .has_now = true,
        .at = row.created_at,
        .message = row.message,
    };
    rc = bal_graph_move(graph, tenant, &move, err);
    if (rc)
        return rc;
    return bal_commit_of_row(&self->made, self->tenant, &row, err);
}

/* The same content again, of which blocks were lost and put anew. */
static int renew_blocks(const publishing *self, bal_error *err)
{
    const bal_publication *publication = self->publication;
    int rc = 0;

    for (size_t i = 0; !rc && i < publication->block_count; i++)
        rc = bal_graph_block_renew(self->tenant->store->graph,
                                   self->tenant->number,
                                   &publication->blocks[i], err);
    return rc;
}

static int transact(publishing *self, bal_error *err)
{
    bal_graph *graph = self->tenant->store->graph;
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);
    if (rc)
        return rc;

    rc = bal_tenant_make(self->tenant, err);
    if (!rc)
        rc = find_head(self, err);
    if (!rc)
        rc = look_at_head(self, err);
    if (!rc)
        rc = self->report->nothing_changed ? renew_blocks(self, err)
                                           : insert(self, err);
    if (!rc && self->publication->intent)
        rc = bal_intent_done(self->publication->intent, self->tenant->store,
                             err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

int bal_publish(bal_commit **out, bal_tenant *tenant,
                const bal_publication *publication, const bal_draft *draft,
                bal_commit_report *report, bal_error *err)
{
    char name[64];
    BAL_LOCAL(bal_buf) metadata = { 0 };
    int rc = metadata_text(&metadata, draft, err);
    if (rc)
        return rc;

    int64_t number = tenant->number;
    publishing self = {
        .tenant = tenant,
        .publication = publication,
        .draft = draft,
        .ref = draft->ref ? draft->ref : MAIN,
        .author = draft->author ? draft->author : default_author(name),
        .metadata = bal_buf_string(&metadata),
        .report = report,
    };
    rc = transact(&self, err);
    if (rc) {
        tenant->number = number;
        bal_commit_free(self.made);
        return rc;
    }
    *out = self.made;
    return 0;
}
