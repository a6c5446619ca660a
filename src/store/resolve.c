/* Specs: a full id, a ref, or a unique prefix, then any of ~N ^ @{N}. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "store/store.h"

#define CANDIDATES 6
#define PREFIX_MIN 4
#define SPEC_MAX   ((size_t)1024)

/* A spec on its way to an id. */
typedef struct walk {
    bal_tenant *tenant;
    const char *spec; /* whole, for messages */
    char base[128];   /* what stands before the first suffix */
    bool is_ref;
    bal_id at;
} walk;

static int nothing(const walk *self, bal_error *err)
{
    return bal_hint(err,
                    bal_fail(err, BAL_ENOTFOUND,
                             "no ref or commit '%s' in tenant '%s'", self->spec,
                             self->tenant->name),
                    "'ballast refs' and 'ballast log' list what there is");
}

static int not_a_spec(const walk *self, bal_error *err)
{
    return bal_hint(err,
                    bal_fail(err, BAL_EINVAL, "'%s' is not a spec", self->spec),
                    "a commit id, a ref, or at least 4 hex digits, then any "
                    "of ~N ^ @{N}");
}

/* ---- the base ----------------------------------------------------------- */

typedef struct candidates {
    bal_id ids[CANDIDATES];
    size_t count;
} candidates;

static int add_candidate(void *ctx, const bal_id *id, bal_error *err)
{
    candidates *found = ctx;

    (void)err;
    found->ids[found->count++] = *id;
    return found->count == CANDIDATES ? BAL_ROW_STOP : 0;
}

static int ambiguous(const walk *self, const candidates *found, bal_error *err)
{
    BAL_LOCAL(bal_buf) names = { 0 };
    char hex[BAL_ID_HEX + 1];

    for (size_t i = 0; i < found->count; i++) {
        bal_id_hex(hex, &found->ids[i]);
        int rc = bal_buf_format(&names, err, "%s%.12s", i ? ", " : "", hex);
        if (rc)
            return rc;
    }
    return bal_hint(err,
                    bal_fail(err, BAL_EINVAL, "'%s' is ambiguous: %s%s",
                             self->base, bal_buf_string(&names),
                             found->count == CANDIDATES ? ", …" : ""),
                    "give more digits");
}

static int find_prefix(walk *self, bal_error *err)
{
    candidates found = { .count = 0 };
    int rc =
        bal_graph_prefix(self->tenant->store->graph, self->tenant->number,
                         self->base, CANDIDATES, add_candidate, &found, err);
    if (rc)
        return rc;
    if (!found.count)
        return nothing(self, err);
    if (found.count > 1)
        return ambiguous(self, &found, err);
    self->at = found.ids[0];
    return 0;
}

static int find_ref(walk *self, bool *there, bal_error *err)
{
    *there = false;
    if (!bal_name_valid(self->base))
        return 0;
    return bal_graph_ref(self->tenant->store->graph, self->tenant->number,
                         self->base, &self->at, there, err);
}

static int find_base(walk *self, bal_error *err)
{
    if (bal_hex_valid(self->base, BAL_ID_HEX))
        return find_prefix(self, err);
    int rc = find_ref(self, &self->is_ref, err);
    if (rc || self->is_ref)
        return rc;
    if (bal_hex_valid(self->base, 0) && strlen(self->base) >= PREFIX_MIN)
        return find_prefix(self, err);
    return bal_name_valid(self->base) ? nothing(self, err)
                                      : not_a_spec(self, err);
}

/* ---- suffixes ----------------------------------------------------------- */

typedef struct ancestor {
    uint64_t left;
    bal_id id;
} ancestor;

static int step_back(void *ctx, const bal_commit_row *row, bal_error *err)
{
    ancestor *found = ctx;

    (void)err;
    found->left--;
    found->id = row->id;
    return 0;
}

/* The n-th parent. */
static int go_back(walk *self, uint64_t n, bal_error *err)
{
    ancestor found = { n + 1, self->at };
    int rc = bal_graph_history(self->tenant->store->graph, self->tenant->number,
                               &self->at, n + 1, step_back, &found, err);
    if (rc)
        return rc;
    if (found.left)
        return nothing(self, err);
    self->at = found.id;
    return 0;
}

typedef struct moved {
    uint64_t n;
    bool there;
    bal_id id;
} moved;

static int find_move(void *ctx, const bal_move_row *row, bal_error *err)
{
    moved *found = ctx;

    (void)err;
    if (row->n == found->n && row->has_now) {
        found->there = true;
        found->id = row->now;
        return BAL_ROW_STOP;
    }
    if (row->n + 1 == found->n && row->has_old) {
        found->there = true;
        found->id = row->old;
    }
    return row->n >= found->n ? BAL_ROW_STOP : 0;
}

/* Where the ref was n moves ago. */
static int go_reflog(walk *self, uint64_t n, bal_error *err)
{
    moved found = { .n = n };
    int rc = bal_graph_reflog(self->tenant->store->graph, self->tenant->number,
                              self->base, find_move, &found, err);
    if (rc)
        return rc;
    if (!found.there)
        return nothing(self, err);
    self->at = found.id;
    return 0;
}

/* Digits at *at, the number they make; 1 where there are none. */
static int read_number(const walk *self, const char **at, uint64_t *n,
                       bal_error *err)
{
    char digits[20];
    size_t len = strspn(*at, "0123456789");

    *n = 1;
    if (!len)
        return 0;
    if (len >= sizeof(digits))
        return not_a_spec(self, err);
    memcpy(digits, *at, len);
    digits[len] = '\0';
    *at += len;
    return bal_parse_u64(n, digits, err);
}

static int read_suffix(walk *self, const char **at, bool first, bal_error *err)
{
    uint64_t n = 1;
    char mark = **at;
    int rc;

    ++*at;
    if (mark == '~' || mark == '^') {
        rc = mark == '~' ? read_number(self, at, &n, err) : 0;
        return rc ? rc : go_back(self, n, err);
    }
    if (mark != '@' || **at != '{' || !first || !self->is_ref)
        return not_a_spec(self, err);
    ++*at;
    bool digits = strspn(*at, "0123456789") > 0;
    rc = read_number(self, at, &n, err);
    if (rc)
        return rc;
    if (!digits || **at != '}')
        return not_a_spec(self, err);
    ++*at;
    return go_reflog(self, n, err);
}

int bal_resolve(bal_id *out, bal_tenant *tenant, const char *spec,
                bal_error *err)
{
    walk self = { .tenant = tenant, .spec = spec };
    size_t len = strcspn(spec, "~^@");

    if (!len || len >= sizeof(self.base) || strlen(spec) > SPEC_MAX)
        return not_a_spec(&self, err);
    memcpy(self.base, spec, len);
    int rc = find_base(&self, err);
    if (rc)
        return rc;
    const char *at = spec + len;
    for (bool first = true; *at; first = false) {
        rc = read_suffix(&self, &at, first, err);
        if (rc)
            return rc;
    }
    *out = self.at;
    return 0;
}
