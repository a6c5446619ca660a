/* Two that work on one root at once: each with a store handle of its own, in
 * two threads or in two processes. A third handle, the judge's, looks on, holds
 * what was opened before, and says afterwards whether all is as promised.
 *
 * A row sets something up, lets both go at the same moment, a drawn number of
 * turns apart, and judges. The roots are new every few rounds. */
#ifndef TORTURE_RACES_H
#define TORTURE_RACES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "model/model.h"
#include "store/proof.h"
#include "store/store.h"
#include "support/check.h"

enum { RACE_HELD = 4 };

/* What both are told; plain bytes, for a pipe has to carry it. */
typedef struct race_task {
    size_t row;
    unsigned round;
    unsigned spin[2]; /* turns that left and right wait */
    uint64_t old;     /* the seed of what was there before */
    uint64_t fresh;   /* the seed of what is committed now */
    bal_id ids[3];    /* the row's own */
    char root[96], out[128], key[128];
} race_task;

/* What one of them says it did; plain bytes, too. */
typedef struct race_result {
    int rc, second_rc;
    bal_id id;
    bool late;  /* it began after the other had answered */
    bool whole; /* what it read is what was committed */
    char attestation[65], text[256];
} race_result;

/* A handle and what is opened with it. */
typedef struct race_side {
    bal_work *work;
    bal_store *store;
    bal_tenant *acme, *beta;
    bal_key *key;     /* NULL: proofs are not signed */
    bal_model *fresh; /* what is to be committed, made beforehand */
    race_result result;
} race_side;

typedef void race_act(race_side *self, const race_task *task);

typedef struct race {
    race_task task;
    race_side left, right, judge;
    bal_model *held[RACE_HELD]; /* opened before */
    size_t held_count;
    char proofs[64][65]; /* of this root */
    size_t proof_count;
} race;

typedef struct race_row {
    const char *name;
    void (*setup)(race *self); /* with the judge's handle */
    race_act *left, *right;
    void (*judge)(race *self);
} race_row;

/* ---- the engine --------------------------------------------------------- */

/* Runs a row: in threads, or left in a process of its own. */
void race_run(const race_row *rows, size_t row, unsigned rounds,
              bool processes);
/* The program's other self, told what to do through stdin. Its exit status. */
int race_child(const race_row *rows);
/* Removes what all of it was in. */
void race_done(void);

/* ---- acting ------------------------------------------------------------- */

/* A model with a tensor of seed's values and one that all models have. */
bal_model *race_model(uint64_t seed);
/* Commits model to acme, with a message that has seed in it. */
int race_commit(race_side *self, bal_model *model, uint64_t seed,
                const char *ref, bal_id *id, bal_error *err);
/* A view over "acme:<id>@1", that has the same values. */
int race_view(race_side *self, bal_tenant *tenant, const bal_id *input,
              const char *ref, bal_id *id, bal_error *err);
/* Reads a commit through, and compares `w` with seed's values. */
int race_read(race_side *self, bal_tenant *tenant, const bal_id *id,
              uint64_t seed, bool *whole, bal_error *err);
/* Forgets a commit, or with NULL all of acme. */
void race_forget(race_side *self, const bal_id *commit);
/* Notes how it went, for the judge. */
void race_tell(race_side *self, int rc, const bal_error *err);

/* ---- judging ------------------------------------------------------------ */

#define RACE_OK(side) race_rc(&(side), 0, #side)
/* result.rc is one of the two. */
void race_rc(const race_side *side, int other, const char *name);
/* Opens a commit with the judge's handle and, where it is ours, left's. */
void race_hold(race *self, const char *tenant, const bal_id *id);
/* Nothing that is held can be read any more. */
void race_denied(race *self);
/* The commit is there and has the values of seed. */
void race_there(race *self, const bal_id *id, uint64_t seed);
/* No file below the root has the values or the message of seed. */
void race_gone(race *self, uint64_t seed);
/* The same of a message alone. */
void race_silent(race *self, uint64_t seed);
/* The same of the values, in a folder below the root. */
void race_absent(race *self, uint64_t seed, const char *folder);
/* A proof that came out of this round holds, and does from now on. */
void race_proved(race *self, const char *attestation);
/* fsck has nothing to say, and every proof of the root holds. */
void race_sound(race *self);

#endif
