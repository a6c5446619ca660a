/* Steps for one server. A name carries its commit, so an older version that
 * stays loaded for a while answers rightly; what must never happen is that
 * something is unloaded which somebody else loaded. */
#include "fleet/plan.h"

#include <string.h>

#include "core/error.h"
#include "core/map.h"
#include "core/str.h"

enum {
    REF_HEX = 8,   /* digits of a commit behind a ref */
    PLAIN_HEX = 12 /* and where there is none */
};

typedef struct planner {
    const bal_fleet_aims *in;
    bal_fleet_plan *plan;
    bal_arena *arena;
    bal_map wants, listed, known; /* by name */
} planner;

static void planner_done(planner *self)
{
    bal_map_done(&self->wants);
    bal_map_done(&self->listed);
    bal_map_done(&self->known);
}

static int add_name(bal_map *map, const char *name, size_t i, bal_error *err)
{
    bool there;

    return bal_map_add(map, name, strlen(name), &i, &there, err);
}

static int index_all(planner *self, bal_error *err)
{
    const bal_fleet_aims *in = self->in;
    int rc = 0;

    for (size_t i = 0; !rc && i < in->want_count; i++)
        rc = add_name(&self->wants, in->wants[i].name, i, err);
    for (size_t i = 0; !rc && i < in->listed_count; i++)
        rc = add_name(&self->listed, in->listed[i].name, i, err);
    for (size_t i = 0; !rc && i < in->known_count; i++) {
        if (!strcmp(in->known[i].tenant, in->tenant))
            rc = add_name(&self->known, in->known[i].name, i, err);
    }
    return rc;
}

static const bal_listed *find_listed(const planner *self, const char *name)
{
    size_t i = bal_map_find(&self->listed, name, strlen(name));

    return i == BAL_NONE ? NULL : &self->in->listed[i];
}

static const bal_known *find_known(const planner *self, const char *name)
{
    size_t i = bal_map_find(&self->known, name, strlen(name));

    return i == BAL_NONE ? NULL : &self->in->known[i];
}

static bool is_wanted(const planner *self, const char *name)
{
    return bal_map_find(&self->wants, name, strlen(name)) != BAL_NONE;
}

static bal_step *add_step(planner *self, bal_step_kind kind,
                          const bal_want *what)
{
    bal_step *step = &self->plan->steps[self->plan->count++];

    *step = (bal_step){ .kind = kind, .what = *what };
    return step;
}

/* ---- whose is it? ------------------------------------------------------- */

bool bal_fleet_commit_of(bal_id *out, const char *place, const char *path)
{
    size_t len = strlen(place);

    return path && !strncmp(path, place, len) && path[len] == '/' &&
           bal_hex_valid(path + len + 1, BAL_ID_HEX) &&
           !bal_id_parse(out, path + len + 1, NULL);
}

/* Is it what we told the server to load? */
static bool is_known(const bal_known *known, const bal_listed *listed)
{
    return known && !listed->base &&
           (!listed->root || !strcmp(known->path, listed->root));
}

/* The rest of text if it begins so, else NULL. */
static const char *behind(const char *text, const char *start)
{
    size_t len = strlen(start);

    return strncmp(text, start, len) != 0 ? NULL : text + len;
}

/* What lies in our place, under the name that this commit gets there: it was
 * loaded for us though no state says so (any more). */
static int read_own(bool *own, bal_want *out, const planner *self,
                    const bal_listed *listed, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];
    const char *rest = behind(listed->name, self->in->tenant);

    *own = false;
    *out = (bal_want){ .name = listed->name, .path = listed->root };
    if (listed->base || !rest || *rest++ != '-' ||
        !bal_fleet_commit_of(&out->commit, self->in->place, listed->root))
        return 0;
    bal_id_hex(hex, &out->commit);
    size_t len = strlen(rest);
    if (len == PLAIN_HEX && !strncmp(rest, hex, PLAIN_HEX)) {
        *own = true;
        return 0;
    }
    if (len < REF_HEX + 2 || rest[len - REF_HEX - 1] != '-' ||
        strncmp(rest + len - REF_HEX, hex, REF_HEX) != 0)
        return 0;
    char *ref = bal_arena_copy(self->arena, rest, len - REF_HEX - 1);
    if (!ref)
        return bal_fail_memory(err, "a plan");
    out->ref = ref;
    *own = bal_name_valid(ref);
    return 0;
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; name && i < count; i++) {
        if (!strcmp(name, names[i]))
            return true;
    }
    return false;
}

/* Is it for this run to say that it should not be there? */
static bool may_go(const bal_fleet_aims *in, const bal_want *what)
{
    return !in->no_prune &&
           (in->whole || is_among(what->ref, in->scope, in->scope_count));
}

/* Does it stay until its ref can be exported again? */
static bool is_held(const bal_fleet_aims *in, const bal_want *what)
{
    return is_among(what->ref, in->held, in->held_count) &&
           !in->lost(in->ctx, &what->commit);
}

/* ---- steps -------------------------------------------------------------- */

/* Ours under this name, but loaded from where exports were before. Another
 * commit may have the same digits: a name is of the first one. */
static bool has_moved(const planner *self, const bal_want *want,
                      const bal_known *known, const bal_listed *listed)
{
    return listed->root && is_known(known, listed) && !self->in->no_prune &&
           !memcmp(&known->commit, &want->commit, sizeof(bal_id));
}

/* Was it loaded from there, by the list or, where that does not say, by us? */
static bool is_at(const bal_listed *listed, const bal_known *known,
                  const char *path)
{
    const char *root = listed->root;

    if (!root && known)
        root = known->path;
    return root && !strcmp(root, path);
}

static void plan_want(planner *self, const bal_want *want)
{
    const bal_listed *listed = find_listed(self, want->name);
    const bal_known *known = find_known(self, want->name);
    bal_step_kind kind = BAL_STEP_TAKEN;

    if (!listed)
        kind = BAL_STEP_LOAD;
    else if (!listed->base && is_at(listed, known, want->path))
        kind = BAL_STEP_SAME;
    if (kind == BAL_STEP_TAKEN && has_moved(self, want, known, listed)) {
        bal_want before = *want;
        before.path = known->path;
        add_step(self, BAL_STEP_UNLOAD, &before)->early = true;
        kind = BAL_STEP_LOAD;
    }
    bal_step *step = add_step(self, kind, want);
    step->known = known && !strcmp(known->path, want->path) &&
                  (known->loaded_at || kind == BAL_STEP_LOAD);
    step->refused = known && known->refused;
    step->other = listed ? listed->root : NULL;
}

static int plan_listed(planner *self, const bal_listed *listed, bal_error *err)
{
    const bal_known *known = find_known(self, listed->name);
    bool own = is_known(known, listed);
    bal_want what;

    if (is_wanted(self, listed->name))
        return 0;
    if (own) {
        what =
            (bal_want){ known->name, known->ref, known->path, known->commit };
    } else {
        int rc = read_own(&own, &what, self, listed, err);
        if (rc || !own)
            return rc;
        known = NULL;
    }
    if (may_go(self->in, &what) && !is_held(self->in, &what))
        add_step(self, BAL_STEP_UNLOAD, &what)->known = known != NULL;
    return 0;
}

static void plan_known(planner *self, const bal_known *known)
{
    const bal_want what = { known->name, known->ref, known->path,
                            known->commit };
    const bal_listed *listed = find_listed(self, known->name);

    if (strcmp(known->tenant, self->in->tenant) != 0 ||
        is_wanted(self, known->name) || (listed && is_known(known, listed)) ||
        !may_go(self->in, &what))
        return;
    add_step(self, BAL_STEP_GONE, &what)->known = true;
}

static bool is_full(const planner *self)
{
    uint64_t there = 0;

    for (size_t i = 0; i < self->in->listed_count; i++)
        there += !self->in->listed[i].base;
    for (size_t i = 0; i < self->plan->count; i++)
        there += self->plan->steps[i].kind == BAL_STEP_LOAD;
    return self->in->slots && there > self->in->slots;
}

int bal_fleet_plan_make(bal_fleet_plan *out, const bal_fleet_aims *in,
                        bal_arena *arena, bal_error *err)
{
    BAL_LOCAL(planner) self = { .in = in, .plan = out, .arena = arena };
    size_t most = in->want_count * 2 + in->listed_count + in->known_count;
    int rc = index_all(&self, err);

    *out = (bal_fleet_plan){ 0 };
    if (rc)
        return rc;
    out->steps = bal_arena_alloc(arena, (most + 1) * sizeof(*out->steps));
    if (!out->steps)
        return bal_fail_memory(err, "a plan");
    for (size_t i = 0; i < in->want_count; i++)
        plan_want(&self, &in->wants[i]);
    for (size_t i = 0; !rc && i < in->listed_count; i++)
        rc = plan_listed(&self, &in->listed[i], err);
    for (size_t i = 0; i < in->known_count; i++)
        plan_known(&self, &in->known[i]);
    out->full = is_full(&self);
    return rc;
}
