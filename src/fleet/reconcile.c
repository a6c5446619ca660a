/* One server made what it should be. New versions are loaded, and seen in its
 * list, before old ones go, so that there is no gap; where there is no room, or
 * it takes something only after that, old ones go first. */
#include <string.h>

#include "core/error.h"
#include "fleet/steps.h"

/* ---- which steps -------------------------------------------------------- */

static bool any(const bal_fleet_task *self, const bal_step *step)
{
    (void)self;
    return step->state == BAL_STEP_OPEN;
}

static bool early(const bal_fleet_task *self, const bal_step *step)
{
    return step->early || self->plan.full;
}

static bool failed(const bal_fleet_task *self, const bal_step *step)
{
    (void)self;
    return step->state == BAL_STEP_FAILED && step->status;
}

/* The load of its ref that failed, NULL: none. */
static const bal_step *newer(const bal_fleet_task *self, const bal_step *step)
{
    for (size_t i = 0; step->what.ref && i < self->plan.count; i++) {
        const bal_step *load = &self->plan.steps[i];
        if (load->kind == BAL_STEP_LOAD && load->state == BAL_STEP_FAILED &&
            load->what.ref && !strcmp(load->what.ref, step->what.ref))
            return load;
    }
    return NULL;
}

static bool is_lost(void *ctx, const bal_id *commit)
{
    const bal_fleet_run *run = ctx;
    BAL_OWN(bal_model) model = NULL;

    return bal_fleet_is_lost(
        bal_model_from_commit(&model, run->tenant, commit, NULL));
}

/* Would it be better than nothing where a newer one is not to be had? */
static bool may_stay(const bal_fleet_task *self, const bal_step *step)
{
    return newer(self, step) && !is_lost(self->run, &step->what.commit);
}

static bool of_no_failed(const bal_fleet_task *self, const bal_step *step)
{
    return !may_stay(self, step);
}

/* An older version of what failed, and not before when this made room. */
static bool of_new_failed(const bal_fleet_task *self, const bal_step *step)
{
    const bal_step *load = newer(self, step);

    return load && load->status && !load->refused;
}

/* An older version that went for a newer one, in vain. */
static bool in_vain(const bal_fleet_task *self, const bal_step *step)
{
    return step->kind == BAL_STEP_UNLOAD && step->state == BAL_STEP_DONE &&
           !step->early && may_stay(self, step);
}

static bool back(const bal_fleet_task *self, const bal_step *step)
{
    (void)self;
    return step->back;
}

/* ---- the order ---------------------------------------------------------- */

static bool has_failed(const bal_fleet_task *self)
{
    for (size_t i = 0; i < self->plan.count; i++) {
        const bal_step *step = &self->plan.steps[i];
        if (step->kind == BAL_STEP_LOAD && failed(self, step))
            return true;
    }
    return false;
}

/* Unload what is meant; if that made room, load what failed once more. */
static int make_room(bal_fleet_task *self, bal_step_fn *meant, bool *some,
                     bal_error *err)
{
    int rc;

    *some = false;
    if (!has_failed(self))
        return 0;
    rc = bal_fleet_unload(self, meant, some, err);
    return rc || !*some ? rc : bal_fleet_load(self, BAL_STEP_LOAD, failed, err);
}

/* What went for nothing is loaded again: an older version is better than
 * none, and its name says which one it is. */
static int bring_back(bal_fleet_task *self, bal_error *err)
{
    bool some = false;

    for (size_t i = 0; i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        step->back = in_vain(self, step);
        some |= step->back;
    }
    if (!some || self->server->why)
        return 0;
    int rc = bal_fleet_load(self, BAL_STEP_UNLOAD, back, err);
    for (size_t i = 0; !rc && i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        if (step->back)
            step->state =
                step->state == BAL_STEP_DONE ? BAL_STEP_KEPT : BAL_STEP_DONE;
    }
    return rc;
}

static void give_up(bal_step *step, bal_step_state state, const char *why)
{
    step->state = state;
    step->why = why;
}

static int carry_out(bal_fleet_task *self, bal_error *err)
{
    bool some = false;
    int rc = bal_fleet_unload(self, early, &some, err);

    if (!rc)
        rc = bal_fleet_load(self, BAL_STEP_LOAD, any, err);
    if (!rc)
        rc = make_room(self, of_no_failed, &some, err);
    if (!rc)
        rc = make_room(self, of_new_failed, &some, err);
    if (!rc)
        rc = bring_back(self, err);
    if (!rc)
        rc = bal_fleet_unload(self, of_no_failed, &some, err);
    for (size_t i = 0; !rc && i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        if (step->state == BAL_STEP_OPEN && step->kind == BAL_STEP_UNLOAD)
            give_up(step, self->server->why ? BAL_STEP_FAILED : BAL_STEP_KEPT,
                    self->server->why);
        if (step->state == BAL_STEP_OPEN && step->kind == BAL_STEP_LOAD)
            give_up(step, BAL_STEP_FAILED, self->server->why);
    }
    return rc;
}

/* ---- telling ------------------------------------------------------------ */

static void tell(bal_fleet_task *self, const bal_step *step, bool planned)
{
    static const bal_fate fates[] = {
        [BAL_STEP_LOAD] = BAL_FATE_LOADED,
        [BAL_STEP_UNLOAD] = BAL_FATE_UNLOADED,
        [BAL_STEP_SAME] = BAL_FATE_UNCHANGED,
        [BAL_STEP_TAKEN] = BAL_FATE_FAILED,
    };
    bool done = planned || step->kind == BAL_STEP_SAME ||
                step->kind == BAL_STEP_TAKEN || step->state == BAL_STEP_DONE;

    if (step->kind == BAL_STEP_GONE || step->state == BAL_STEP_KEPT ||
        (step->early && done))
        return;
    bal_fleet_tell(self->run, done ? fates[step->kind] : BAL_FATE_FAILED,
                   step->what.name, self->server->url, step->why);
}

static int say_taken(bal_fleet_task *self, bal_step *step, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    const char *by = step->other ? step->other : "something else";
    int rc = bal_buf_text(&text, "the name is taken by '", err);

    if (!rc)
        rc = bal_buf_text(&text, by, err);
    if (!rc)
        rc = bal_buf_text(&text, "'", err);
    if (rc)
        return rc;
    step->why = bal_fleet_copy(self->run, text.data);
    return step->why ? 0 : bal_fail_memory(err, "a plan");
}

static int make_plan(bal_fleet_task *self, bal_error *err)
{
    bal_fleet_run *run = self->run;
    bal_fleet_aims aims = {
        .tenant = bal_tenant_name(run->tenant),
        .place = run->place,
        .wants = run->wants,
        .want_count = run->want_count,
        .listed = self->server->listed,
        .listed_count = self->server->count,
        .whole = !run->options->spec_count,
        .scope = run->scope,
        .scope_count = run->scope_count,
        .held = run->held,
        .held_count = run->held_count,
        .lost = is_lost,
        .ctx = run,
        .slots = run->options->slots,
        .no_prune = run->options->flags & BAL_FLEET_NO_PRUNE,
    };

    aims.known =
        bal_fleet_state_of(&run->state, self->server->url, &aims.known_count);
    int rc = bal_fleet_plan_make(&self->plan, &aims, &run->arena, err);
    for (size_t i = 0; !rc && i < self->plan.count; i++) {
        if (self->plan.steps[i].kind == BAL_STEP_TAKEN)
            rc = say_taken(self, &self->plan.steps[i], err);
    }
    return rc;
}

int bal_fleet_reconcile(bal_fleet_run *run, bal_fleet_server *server,
                        bal_error *err)
{
    bal_fleet_task self = { .run = run, .server = server };
    bool dry = run->options->flags & BAL_FLEET_DRY_RUN;
    int rc = make_plan(&self, err);

    if (!rc && !dry)
        rc = bal_fleet_note(&self, err);
    if (!rc && !dry)
        rc = carry_out(&self, err);
    if (!dry) {
        /* Even after a failure: what was seen of the server is so. */
        int saved = bal_fleet_state_save(&run->state, rc ? NULL : err);
        rc = rc ? rc : saved;
    }
    for (size_t i = 0; !rc && i < self.plan.count; i++)
        tell(&self, &self.plan.steps[i], dry);
    return rc;
}
