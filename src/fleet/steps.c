/* Loading and unloading, and the notes of it. Each load is noted twice before
 * it is asked for: in the state, for the run after one that was killed, and in
 * the store, so that a deletion can name the server. */
#include "fleet/steps.h"

#include <string.h>

#include "core/clock.h"
#include "core/error.h"

enum { OK = 200 };

/* ---- notes -------------------------------------------------------------- */

static int note_state(bal_fleet_task *self, const bal_step *step, int64_t at,
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
static int note_store(const bal_fleet_task *self, const bal_step *step,
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
static int note_fact(const bal_fleet_task *self, const bal_step *step,
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
static int note_gone(bal_fleet_task *self, const bal_step *step, bal_error *err)
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

static int intend(bal_fleet_task *self, bal_step_kind kind, bal_step_fn *meant,
                  bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        if (step->kind != kind || !meant(self, step))
            continue;
        rc = note_state(self, step, 0, step->refused, err);
        step->state = BAL_STEP_OPEN;
        step->turn = true;
    }
    return rc ? rc : bal_fleet_state_save(&self->run->state, err);
}

static int load_one(bal_fleet_task *self, bal_step *step, bal_error *err)
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
static int see_loaded(bal_fleet_task *self, bal_step *step, bal_error *err)
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
static int look(bal_fleet_task *self, bal_step_kind kind, bal_error *err)
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

int bal_fleet_load(bal_fleet_task *self, bal_step_kind kind, bal_step_fn *meant,
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

static int see_unloaded(bal_fleet_task *self, bal_step *step, bal_error *err)
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

int bal_fleet_unload(bal_fleet_task *self, bal_step_fn *meant, bool *some,
                     bal_error *err)
{
    bool asked = false;
    int rc = 0;

    for (size_t i = 0; !rc && i < self->plan.count; i++) {
        bal_step *step = &self->plan.steps[i];
        if (step->kind != BAL_STEP_UNLOAD || step->state != BAL_STEP_OPEN ||
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

/* What needs no request: what is there though nobody noted it, and what is not
 * there any more. */
int bal_fleet_note(bal_fleet_task *self, bal_error *err)
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
