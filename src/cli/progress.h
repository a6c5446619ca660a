/* A bar on stderr for work that lasts. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "ballast.h"

typedef struct bal_progress {
    bool wanted;
    double patience; /* seconds before it appears */
    double began;    /* 0: no work yet */
    bool drawn;
    const char *label; /* the command */
} bal_progress;

/* when: "auto", "always", "never" or NULL. */
void bal_progress_init(bal_progress *self, const char *when, bool quiet,
                       const char *label);
/* A bal_watch_fn with a bal_progress as ctx: draws, and cancels after a
 * signal. */
int bal_progress_watch(void *ctx, uint64_t done, uint64_t total);
/* Away with it, before anything else is written. */
void bal_progress_clear(bal_progress *self);

#endif
