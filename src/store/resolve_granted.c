/* Specs of other tenants. The queries that are asked for a base depend on its
 * text alone and are the same two for every text; the query for a step is asked
 * whether there is a parent or not. So neither answer nor work tells a tenant
 * that is not there from a ref, an id or an ambiguous prefix of what may not be
 * read. */
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"
#include "graph/grants.h"
#include "store/resolve.h"

enum { PREFIX_MIN = 4 };

/* Names that nothing goes by, for queries that are asked for their work. */
static const char no_ref[] = "";
static const char no_prefix[] =
    "0000000000000000000000000000000000000000000000000000000000000000";

typedef struct granted_walk {
    bal_graph *graph;
    const char *owner, *viewer;
    char base[BAL_ID_HEX + 1]; /* "": not one */
    const char *suffixes;
    bal_id at;
    bool there;
} granted_walk;

/* ---- the base ----------------------------------------------------------- */

typedef struct found_ids {
    bal_id id;
    size_t count;
} found_ids;

static int add_id(void *ctx, const bal_id *id, bal_error *err)
{
    found_ids *found = ctx;

    (void)err;
    found->id = *id;
    found->count++;
    return found->count > 1 ? BAL_ROW_STOP : 0;
}

/* The one granted commit with a prefix. */
static int find_prefix(granted_walk *self, const char *prefix, bool *there,
                       bal_id *id, bal_error *err)
{
    found_ids found = { .count = 0 };
    int rc = bal_graph_granted_prefix(self->graph, self->owner, self->viewer,
                                      prefix, add_id, &found, err);
    if (rc)
        return rc;
    *there = found.count == 1;
    *id = found.id;
    return 0;
}

static int find_base(granted_walk *self, bal_error *err)
{
    size_t len = strlen(self->base);
    bool whole = bal_hex_valid(self->base, BAL_ID_HEX);
    bool hex = len >= PREFIX_MIN && bal_hex_valid(self->base, 0);
    bool name = !whole && bal_name_valid(self->base);
    bool by_ref = false, by_prefix = false;
    bal_id ref, prefix;
    int rc =
        bal_graph_granted_ref(self->graph, self->owner, self->viewer,
                              name ? self->base : no_ref, &ref, &by_ref, err);
    if (!rc)
        rc = find_prefix(self, hex ? self->base : no_prefix, &by_prefix,
                         &prefix, err);
    if (rc)
        return rc;

    self->there = by_ref || by_prefix;
    if (self->there)
        self->at = by_ref ? ref : prefix;
    return 0;
}

/* ---- steps -------------------------------------------------------------- */

typedef struct parent {
    bal_id id;
    bool there;
} parent;

static int take_parent(void *ctx, const bal_commit_row *row, bal_error *err)
{
    parent *found = ctx;

    (void)err;
    found->there = row->has_parent;
    found->id = row->parent;
    return 0;
}

/* To a parent that is granted, too. */
static int step(granted_walk *self, const bal_tenant *owner, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];
    parent found = { 0 };
    int rc = bal_graph_commit(self->graph, owner->number, &self->at,
                              take_parent, &found, err);
    if (rc)
        return rc;

    bal_id_hex(hex, &found.id);
    return find_prefix(self, found.there ? hex : no_prefix, &self->there,
                       &self->at, err);
}

/* Digits at *at, 1 where there are none. */
static bool read_number(const char **at, uint64_t *n)
{
    char digits[20];
    size_t len = strspn(*at, "0123456789");

    *n = 1;
    if (len >= sizeof(digits))
        return false;
    memcpy(digits, *at, len);
    digits[len] = '\0';
    *at += len;
    return !len || !bal_parse_u64(n, digits, NULL);
}

/* A reflog is nobody else's: @{N} is no suffix here. */
static int take_suffix(granted_walk *self, const bal_tenant *owner,
                       const char **at, bal_error *err)
{
    char mark = *(*at)++;
    uint64_t n = 1;
    int rc = 0;

    self->there = mark == '^' || (mark == '~' && read_number(at, &n));
    for (; n && self->there && !rc; n--)
        rc = step(self, owner, err);
    return rc;
}

static int take_suffixes(granted_walk *self, bal_tenant *owner, bal_error *err)
{
    const char *at = self->suffixes;
    int rc = bal_graph_tenant(self->graph, &owner->number, self->owner, 0, err);

    while (!rc && self->there && *at)
        rc = take_suffix(self, owner, &at, err);
    return rc;
}

int bal_resolve_granted(bal_id *out, bal_tenant *owner,
                        const bal_tenant *viewer, const char *name,
                        const char *spec, bal_error *err)
{
    granted_walk self = { viewer->store->graph, name, viewer->name };
    size_t len = strcspn(spec, "~^@");
    bal_tenant found = { .store = viewer->store };

    if (len < sizeof(self.base))
        memcpy(self.base, spec, len);
    self.suffixes = spec + len;
    int rc = find_base(&self, err);
    if (!rc && self.there)
        rc = take_suffixes(&self, &found, err);
    if (rc && rc != BAL_ENOTFOUND)
        return rc;
    if (rc || !self.there)
        return bal_fail(err, BAL_ENOTFOUND,
                        "no ref or commit '%s' in tenant '%s'", spec, name);
    memcpy(found.name, name, strlen(name) + 1);
    *owner = found;
    *out = self.at;
    return 0;
}
