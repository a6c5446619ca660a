/* What is to be loaded: each spec as an adapter with a name and a folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "core/room.h"
#include "fleet/run.h"

enum {
    REF_HEX = 8, /* digits of a commit behind a ref */
    PLAIN_HEX = 12
};

typedef struct refs {
    bal_fleet_run *run;
    const char **names;
    size_t count, room;
    bool no_memory;
} refs;

static void refs_done(refs *self)
{
    free(self->names);
}

static int add_ref(void *ctx, const char *name, const bal_id *commit)
{
    refs *self = ctx;

    (void)commit;
    const char **names =
        bal_room_for_one(self->names, self->count, &self->room, sizeof(*names));
    self->no_memory = !names;
    if (!names)
        return 1;
    self->names = names;
    self->names[self->count] = bal_fleet_copy(self->run, name);
    self->no_memory = !self->names[self->count];
    self->count++;
    return self->no_memory;
}

static int by_name(const void *a, const void *b)
{
    const char *const *one = a;
    const char *const *other = b;

    return strcmp(*one, *other);
}

static int list_refs(refs *self, bal_error *err)
{
    int rc = bal_ref_each(self->run->tenant, add_ref, self, err);

    if (rc)
        return rc;
    if (self->no_memory)
        return bal_fail_memory(err, "refs");
    if (self->count)
        qsort(self->names, self->count, sizeof(*self->names), by_name);
    return 0;
}

static bool is_ref(const refs *self, const char *name)
{
    return self->count && bsearch(&name, self->names, self->count,
                                  sizeof(*self->names), by_name);
}

/* ---- one of them -------------------------------------------------------- */

typedef struct exported {
    bal_fleet_run *run;
    bal_want *want;
} exported;

static int take_export(void *ctx, const bal_exported_info *info)
{
    exported *self = ctx;

    self->want->name = bal_fleet_copy(self->run, info->name);
    self->want->path = bal_fleet_copy(self->run, info->path);
    self->want->ref = info->ref ? bal_fleet_copy(self->run, info->ref) : NULL;
    self->want->commit = info->commit;
    return 0;
}

static int export_one(bal_want *out, bal_fleet_run *run, const char *spec,
                      const char *engine, bal_error *err)
{
    const bal_fleet_options *given = run->options;
    const bal_export_options options = {
        .dir = run->dir,
        .serve = { engine, given->base, given->max_rank },
        .flags = given->flags & BAL_FLEET_ADAPT ? BAL_EXPORT_ADAPT : 0,
    };
    exported taken = { run, out };
    int rc = bal_export(run->tenant, spec, &options, take_export, &taken, err);

    if (rc)
        return rc;
    return out->name && out->path ? 0 : bal_fail_memory(err, "an export");
}

/* The first thing that stands against serving it. */
typedef struct hearing {
    bool bad;
    char why[sizeof(((bal_error *)NULL)->text)];
} hearing;

static int hear(void *ctx, const bal_preflight_row *row)
{
    hearing *self = ctx;

    if (self->bad || row->outcome == BAL_OUTCOME_ADAPTED ||
        row->outcome == BAL_OUTCOME_NOTED)
        return 0;
    self->bad = true;
    snprintf(self->why, sizeof(self->why), "%s: %s", row->rule, row->text);
    return 0;
}

/* As an export would look at it. */
static int check_served(const bal_fleet_run *run, bal_model *adapter,
                        const char *engine, bal_error *err)
{
    const bal_fleet_options *given = run->options;
    const bal_serving_options serve = { engine, given->base, given->max_rank };
    BAL_OWN(bal_model) made = NULL;
    hearing heard = { 0 };
    int rc = 0;

    if (given->flags & BAL_FLEET_ADAPT)
        rc = bal_lora_adapt(&made, adapter, &serve, hear, &heard, err);
    if (!rc)
        rc = bal_preflight(made ? made : adapter, &serve, hear, &heard, err);
    if (!rc && heard.bad)
        rc = bal_fail(err, BAL_EUNSUPPORTED, "%s", heard.why);
    return rc;
}

/* What an export would be called, without making it. */
static int name_one(bal_want *out, bal_fleet_run *run, const char *spec,
                    bool ref, const char *engine, bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;
    BAL_LOCAL(bal_buf) name = { 0 };
    BAL_LOCAL(bal_buf) path = { 0 };
    char hex[BAL_ID_HEX + 1];
    int rc = bal_resolve(&out->commit, run->tenant, spec, err);

    if (!rc)
        rc = bal_model_from_commit(&model, run->tenant, &out->commit, err);
    if (rc)
        return rc;
    if (bal_model_facts(model)->kind != BAL_KIND_ADAPTER)
        return bal_fail(err, BAL_EUNSUPPORTED, "'%s' is not an adapter", spec);
    rc = engine ? check_served(run, model, engine, err) : 0;
    if (rc)
        return rc;
    bal_id_hex(hex, &out->commit);
    rc = bal_buf_format(&name, err, "%s-%s%s%.*s", bal_tenant_name(run->tenant),
                        ref ? spec : "", ref ? "-" : "",
                        ref ? REF_HEX : PLAIN_HEX, hex);
    if (!rc)
        rc = bal_buf_format(&path, err, "%s/%s", run->place, hex);
    if (rc)
        return rc;
    out->name = bal_fleet_copy(run, name.data);
    out->path = bal_fleet_copy(run, path.data);
    out->ref = ref ? spec : NULL;
    return out->name && out->path ? 0 : bal_fail_memory(err, "an export");
}

static bool is_there(const bal_fleet_run *run, const char *name)
{
    for (size_t i = 0; run->options->spec_count && i < run->want_count; i++) {
        if (!strcmp(run->wants[i].name, name))
            return true;
    }
    return false;
}

bool bal_fleet_is_lost(int rc)
{
    return rc == BAL_EBROKEN || rc == BAL_ENOTFOUND || rc == BAL_EDENIED;
}

static int add_want(bal_fleet_run *run, const char *spec, bool ref,
                    const char *engine, bal_error *err)
{
    /* For whom is not known where no server gave a list: nothing is made. */
    bool dry = !engine || run->options->flags & BAL_FLEET_DRY_RUN;
    bal_error why = { 0 };
    bal_want want = { 0 };
    int rc = dry ? name_one(&want, run, spec, ref, engine, &why)
                 : export_one(&want, run, spec, engine, &why);

    if (rc == BAL_ENOMEM || rc == BAL_ECANCELLED) {
        if (err)
            *err = why;
        return rc;
    }
    if (rc) {
        if (!bal_fleet_is_lost(rc))
            run->held[run->held_count++] = spec;
        bal_fleet_tell(run, BAL_FATE_SKIPPED, spec, NULL, why.text);
        return 0;
    }
    if (!is_there(run, want.name))
        run->wants[run->want_count++] = want;
    return 0;
}

int bal_fleet_wants(bal_fleet_run *run, const char *engine, bal_error *err)
{
    const bal_fleet_options *given = run->options;
    BAL_LOCAL(refs) all = { .run = run };
    int rc = list_refs(&all, err);
    size_t n = given->spec_count ? given->spec_count : all.count;

    if (rc)
        return rc;
    run->wants = bal_arena_alloc(&run->arena, (n + 1) * sizeof(*run->wants));
    run->scope = bal_arena_alloc(&run->arena, (n + 1) * sizeof(*run->scope));
    run->held = bal_arena_alloc(&run->arena, (n + 1) * sizeof(*run->held));
    if (!run->wants || !run->scope || !run->held)
        return bal_fail_memory(err, "what is to be loaded");
    for (size_t i = 0; !rc && i < n; i++) {
        const char *spec = given->spec_count ? given->specs[i] : all.names[i];
        run->scope[run->scope_count++] = spec;
        rc = add_want(run, spec, is_ref(&all, spec), engine, err);
    }
    return rc;
}
