/* The steps of a plan, carried out on one server. */
#ifndef FLEET_STEPS_H
#define FLEET_STEPS_H

#include "fleet/run.h"

typedef struct bal_fleet_task {
    bal_fleet_run *run;
    bal_fleet_server *server;
    bal_fleet_plan plan;
} bal_fleet_task;

/* Is it one of the steps that are meant? */
typedef bool bal_step_fn(const bal_fleet_task *self, const bal_step *step);

/* Notes what is there though nobody noted it, and what is not there any more:
 * what needs no request. */
BAL_CHECK int bal_fleet_note(bal_fleet_task *self, bal_error *err);
/* Loads what steps of that kind name which are meant, whatever became of them
 * before. Afterwards each is DONE, seen in the server's list, or FAILED; OPEN
 * where the server is of no use any more. */
BAL_CHECK int bal_fleet_load(bal_fleet_task *self, bal_step_kind kind,
                             bal_step_fn *meant, bal_error *err);
/* Unloads what UNLOAD steps name which are OPEN and meant; *some is set if one
 * was seen to be gone. */
BAL_CHECK int bal_fleet_unload(bal_fleet_task *self, bal_step_fn *meant,
                               bool *some, bal_error *err);

#endif
