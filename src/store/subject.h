/* A commit's model where it can be asked something: what it stands on is put
 * under it, and what must be a folder is made in a scratch folder of the store,
 * which goes when it is done with; when it was killed, with the next command
 * that writes. */
#ifndef STORE_SUBJECT_H
#define STORE_SUBJECT_H

#include "model/stage.h"
#include "probe/runner.h"
#include "store/store.h"

typedef struct bal_subject {
    bal_model *change; /* what the commit holds */
    bal_model *base;   /* NULL: none, or it is not needed */
    bal_model *model;  /* what is asked */
    bal_stage stage;   /* its dir is the scratch folder */
    char *base_folder; /* NULL: none */
} bal_subject;

/* wants: bal_runner_wants. EINVAL: a delta without a base. */
BAL_CHECK int bal_subject_open(bal_subject *out, bal_tenant *tenant,
                               const bal_id *commit,
                               const bal_ask_options *options, unsigned wants,
                               bal_error *err);
void bal_subject_done(bal_subject *self);

/* Who asks a model shares this; who forgets has it alone, so that no copy of
 * what is forgotten lies in a scratch folder, and no answer comes after. Taken
 * before the store's lock. EBUSY. */
BAL_CHECK int bal_asking_lock(bal_lock **out, const bal_store *store,
                              enum bal_lock_mode mode, bal_error *err);

#endif
