/* One server made what it should be. New versions are loaded, and seen in its
 * list, before old ones go, so that there is no gap; where there is no room, or
 * it takes something only after that, old ones go first.
 *
 * Each load is noted twice before it is asked for: in the state, for the run
 * after one that was killed, and in the store, so that a deletion can name the
 * server. */
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "fleet/run.h"

enum { OK = 200 };

typedef struct task {
    bal_fleet_run *run;
    bal_fleet_server *server;
    bal_fleet_plan plan;
} task;

/* Is it one of the steps that are meant? */
typedef bool step_fn(const task *self, const bal_step *step);

/* ---- notes -------------------------------------------------------------- */

static int note_state(task *self, const bal_step *step, int64_t at,
                      bool refused, bal_error *err)
{
    const bal_known row = {
        .server = self->server->url,
        .name = step->what.name,
        .tenant = bal_tenant_name(self->run->tenant),
        .ref = step->what.ref,
        .path = step->what.path,
        .commit = step->what.commit,
        .loaded_at = at,
        .refused = refused,
    };

    return bal_fleet_state_put(&self->run->state, &row, err);
}

/* unloaded_at 0: it is loaded, or about to be. */
static int note_store(const task *self, const bal_step *step,
                      int64_t unloaded_at, bal_error *err)
{
    const bal_loaded row = {
        .server = self->server->url,
        .name = step->what.name,
        .path = step->what.path,
        .commit = step->what.commit,
        .loaded_at = bal_clock_now(),
        .unloaded_at = unloaded_at,
    };

    return bal_loaded_put(self->run->tenant, &row, err);
}

/* A note of what is so already, which stays so where it cannot be made. After a
 * forget there is no commit left to note it of. */
static int note_fact(const task *self, const bal_step *step,
                     int64_t unloaded_at, bal_error *err)
{
    bal_error why = { 0 };
    int rc = note_store(self, step, unloaded_at, &why);

    if (rc == BAL_ENOMEM || rc == BAL_ECANCELLED) {
        if (err)
            *err = why;
        return rc;
    }
    if (rc && rc != BAL_ENOTFOUND)
        bal_warn("fleet", "'%s' is %s, which could not be noted: %s",
                 step->what.name, unloaded_at ? "unloaded" : "loaded",
                 why.text);
    return 0;
}

/* That it is there no more, though its memory may still hold it. */
static int note_gone(task *self, const bal_step *step, bal_error *err)
{
    int rc = note_fact(self, step, bal_clock_now(), err);

    if (rc)
        return rc;
    bal_fleet_state_drop(&self->run->state, self->server->url, step->what.name);
    return bal_fleet_let_go(self->run, &step->what.commit, err);
}

static int settle(bal_step *step, bal_step_state state, const char *why)
{
    step->state = state;
    step->why = why;
    return 0;
}

static const char *or_no_memory(const char *text)
{
    return text ? text : "out of memory";
}

/* ---- loading ------------------------------------------------------------ */

static int intend(task *self, bal_step_kind kind, step_fn *meant,
                  bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        if (step->kind != kind || !meant(self, step))
            continue;
        rc = note_state(self, step, 0, step->refused, err);
        step->state = BAL_STEP_TODO;
        step->turn = true;
    }
    return rc ? rc : bal_fleet_state_save(&self->run->state, err);
}

static int load_one(task *self, bal_step *step, bal_error *err)
{
    bal_error why = { 0 };
    int rc = note_store(self, step, 0, &why);

    if (rc == BAL_ENOMEM || rc == BAL_ECANCELLED) {
        if (err)
            *err = why;
        return rc;
    }
    if (rc) {
        bal_fleet_state_drop(&self->run->state, self->server->url,
                             step->what.name);
        return settle(step, BAL_STEP_FAILED,
                      or_no_memory(bal_fleet_copy(self->run, why.text)));
    }
    step->state = BAL_STEP_ASKED;
    return bal_fleet_server_load(self->server, step->what.name, step->what.path,
                                 &step->status, &step->why, err);
}

/* What the list says of a load. One that says nothing of roots is believed. */
static int see_loaded(task *self, bal_step *step, bal_error *err)
{
    const bal_listed *listed =
        bal_fleet_server_find(self->server, step->what.name);
    bool there = listed && !listed->base &&
                 (!listed->root || !strcmp(listed->root, step->what.path));
    int rc;

    if (there) {
        settle(step, BAL_STEP_DONE, NULL);
        return note_state(self, step, bal_clock_now(), false, err);
    }
    if (!step->why)
        step->why = listed ? "something else has this name"
                           : "it is not listed after it was loaded";
    step->state = BAL_STEP_FAILED;
    rc = note_state(self, step, 0, step->status != OK, err);
    /* It may have read some of it. */
    return rc ? rc : note_fact(self, step, bal_clock_now(), err);
}

/* The server's list after it was told something; without one, what was asked
 * for has failed, and the notes stay for the next run. */
static int look(task *self, bal_step_kind kind, bal_error *err)
{
    int rc = 0;

    if (!self->server->why)
        rc = bal_fleet_server_list(self->server, err);
    for (size_t i = 0; !rc && self->server->why && i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        if (step->kind == kind && step->state == BAL_STEP_ASKED)
            settle(step, BAL_STEP_FAILED, self->server->why);
    }
    return rc;
}

static int load_all(task *self, bal_step_kind kind, step_fn *meant,
                    bal_error *err)
{
    bool asked = false;
    int rc = intend(self, kind, meant, err);

    for (size_t i = 0; !rc && i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        if (!step->turn || self->server->why)
            continue;
        step->turn = false;
        rc = load_one(self, step, err);
        asked |= step->state == BAL_STEP_ASKED;
    }
    if (!rc && asked)
        rc = look(self, kind, err);
    for (size_t i = 0; !rc && i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        if (step->kind == kind && step->state == BAL_STEP_ASKED)
            rc = see_loaded(self, step, err);
    }
    return rc;
}

/* ---- unloading ---------------------------------------------------------- */

static int see_unloaded(task *self, bal_step *step, bal_error *err)
{
    const bal_listed *listed =
        bal_fleet_server_find(self->server, step->what.name);

    if (listed && (!listed->root || !strcmp(listed->root, step->what.path))) {
        if (!step->why)
            step->why = "it is still listed after it was unloaded";
        step->state = BAL_STEP_FAILED;
        return 0;
    }
    settle(step, BAL_STEP_DONE, NULL);
    return note_gone(self, step, err);
}

static int unload_all(task *self, step_fn *meant, bool *some, bal_error *err)
{
    bool asked = false;
    int rc = 0;

    for (size_t i = 0; !rc && i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        if (step->kind != BAL_STEP_UNLOAD || step->state != BAL_STEP_TODO ||
            !meant(self, step) || self->server->why)
            continue;
        step->state = BAL_STEP_ASKED;
        asked = true;
        rc = bal_fleet_server_unload(self->server, step->what.name,
                                     &step->status, &step->why, err);
    }
    if (!rc && asked)
        rc = look(self, BAL_STEP_UNLOAD, err);
    for (size_t i = 0; !rc && i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        if (step->kind != BAL_STEP_UNLOAD || step->state != BAL_STEP_ASKED)
            continue;
        rc = see_unloaded(self, step, err);
        *some |= step->state == BAL_STEP_DONE;
    }
    return rc;
}

/* ---- which steps -------------------------------------------------------- */

static bool any(const task *self, const bal_step *step)
{
    (void)self;
    return step->state == BAL_STEP_TODO;
}

static bool early(const task *self, const bal_step *step)
{
    return step->early || self->plan.full;
}

static bool failed(const task *self, const bal_step *step)
{
    (void)self;
    return step->state == BAL_STEP_FAILED && step->status;
}

/* The load of its ref that failed, NULL: none. */
static const bal_step *newer(const task *self, const bal_step *step)
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
static bool may_stay(const task *self, const bal_step *step)
{
    return newer(self, step) && !is_lost(self->run, &step->what.commit);
}

static bool of_no_failed(const task *self, const bal_step *step)
{
    return !may_stay(self, step);
}

/* An older version of what failed, and not before when this made room. */
static bool of_new_failed(const task *self, const bal_step *step)
{
    const bal_step *load = newer(self, step);

    return load && load->status && !load->refused;
}

/* An older version that went for a newer one, in vain. */
static bool gone_in_vain(const task *self, const bal_step *step)
{
    return step->state == BAL_STEP_DONE && !step->early && may_stay(self, step);
}

/* ---- the order ---------------------------------------------------------- */

static bool has_failed(const task *self)
{
    for (size_t i = 0; i < self->plan.count; i++) {
        const bal_step *step = &self->plan.steps[i];
        if (step->kind == BAL_STEP_LOAD && failed(self, step))
            return true;
    }
    return false;
}

/* Unload what is meant; if that made room, load what failed once more. */
static int make_room(task *self, step_fn *meant, bool *some, bal_error *err)
{
    int rc;

    *some = false;
    if (!has_failed(self))
        return 0;
    rc = unload_all(self, meant, some, err);
    return rc || !*some ? rc : load_all(self, BAL_STEP_LOAD, failed, err);
}

/* What went for nothing is loaded again: an older version is better than
 * none, and its name says which one it is. */
static int bring_back(task *self, bal_error *err)
{
    bool some = false;

    for (size_t i = 0; i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        some |= step->kind == BAL_STEP_UNLOAD && gone_in_vain(self, step);
    }
    if (!some || self->server->why)
        return 0;
    int rc = load_all(self, BAL_STEP_UNLOAD, gone_in_vain, err);
    for (size_t i = 0; !rc && i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        if (step->kind != BAL_STEP_UNLOAD || step->early ||
            !may_stay(self, step))
            continue;
        if (step->state == BAL_STEP_DONE)
            step->state = BAL_STEP_KEPT;
        else if (step->state == BAL_STEP_FAILED)
            step->state = BAL_STEP_DONE;
    }
    return rc;
}

static int carry_out(task *self, bal_error *err)
{
    bool some = false;
    int rc = unload_all(self, early, &some, err);

    if (!rc)
        rc = load_all(self, BAL_STEP_LOAD, any, err);
    if (!rc)
        rc = make_room(self, of_no_failed, &some, err);
    if (!rc)
        rc = make_room(self, of_new_failed, &some, err);
    if (!rc)
        rc = bring_back(self, err);
    if (!rc)
        rc = unload_all(self, of_no_failed, &some, err);
    for (size_t i = 0; !rc && i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        if (step->state == BAL_STEP_TODO && step->kind == BAL_STEP_UNLOAD)
            settle(step, self->server->why ? BAL_STEP_FAILED : BAL_STEP_KEPT,
                   self->server->why);
        if (step->state == BAL_STEP_TODO && step->kind == BAL_STEP_LOAD)
            settle(step, BAL_STEP_FAILED, self->server->why);
    }
    return rc;
}

/* What needs no request: what is there though nobody noted it, and what is not
 * there any more. */
static int take_notes(task *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        if (step->kind == BAL_STEP_GONE)
            rc = note_gone(self, step, err);
        if (step->kind != BAL_STEP_SAME || step->known)
            continue;
        rc = note_fact(self, step, 0, err);
        if (!rc)
            rc = note_state(self, step, bal_clock_now(), false, err);
    }
    return rc;
}

/* ---- telling ------------------------------------------------------------ */

static void tell(task *self, const bal_step *step, bool planned)
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

static int say_taken(task *self, bal_step *step, bal_error *err)
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

static int make_plan(task *self, bal_error *err)
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
    task self = { .run = run, .server = server };
    bool dry = run->options->flags & BAL_FLEET_DRY_RUN;
    int rc = make_plan(&self, err);

    if (!rc && !dry)
        rc = take_notes(&self, err);
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
