/* karcher inside: what both arithmetics leave for the tiles. */
#ifndef MERGE_KARCHER_IN_H
#define MERGE_KARCHER_IN_H

#include "merge/karcher.h"

/* The numbers of one step: cosine and sine of its length, the length, and the
 * norm that is divided by afterwards, 0: none is. */
typedef struct bal_karcher_step {
    double cosine, sine, length, norm;
} bal_karcher_step;

typedef struct bal_karcher {
    size_t count;
    double *factors; /* precise: the result is Σ factor X */
    double *norms;
    double *shares; /* 0: too short to count */
    double start;   /* the start's norm, 0: the first unit is the start */
    double size;    /* the result's norm */
    size_t steps, most;
    bal_karcher_step *step; /* most of them */
    double *along;          /* most by count: d, the cosine to each unit */
    double *pull;           /* most by count: k, 0: none */
    double numbers[];
} bal_karcher;

/* mergekit: find out the steps. Norms, shares and size are known. */
BAL_CHECK int bal_karcher_follow(bal_karcher *self, bal_walk *walk,
                                 const bal_tile *tile, double tol,
                                 bal_error *err);
/* And take them. */
void bal_karcher_replay(double *out, const bal_karcher *self,
                        const bal_tile *tile);

#endif
