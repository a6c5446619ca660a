/* A folder in the making: under a temporary name beside where it will be, gone
 * unless it is published. */
#ifndef MODEL_STAGE_H
#define MODEL_STAGE_H

#include "ballast.h"

#include "core/own.h"

typedef struct bal_stage {
    char *out;  /* the real path that it will have */
    char *home; /* "<out>.ballast-<16 hex digits>", locked by us */
    char *dir;  /* in it: to be filled, with the mode that a new folder has */
    char *made; /* the topmost folder above out that was not there */
    int lock;   /* home, open; -1: not yet */
} bal_stage;

/* Makes the folders above out, removes what killed writers left beside it, and
 * makes dir. out is a real path. */
BAL_CHECK int bal_stage_make(bal_stage *out, const char *path, bal_error *err);
/* dir becomes out, durably. EEXISTS: out holds something; with
 * BAL_WRITE_FORCE in flags it is replaced and removed. */
BAL_CHECK int bal_stage_publish(bal_stage *self, unsigned flags,
                                bal_error *err);
/* EEXISTS as publish would say it. */
BAL_CHECK int bal_stage_check(const char *path, unsigned flags, bal_error *err);
void bal_stage_done(bal_stage *self);
/* Remove what killed writers left in a directory, or put it back. */
BAL_CHECK int bal_stage_sweep(const char *dir, bal_error *err);

#endif
