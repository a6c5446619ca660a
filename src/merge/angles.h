/* How spaces lie to each other. */
#ifndef MERGE_ANGLES_H
#define MERGE_ANGLES_H

#include "merge/lowrank.h"

typedef struct bal_angles {
    double overlap; /* mean of squared cosines; NaN: a space of no dimensions */
    double largest; /* in degrees */
} bal_angles;

/* Principal angles between the column spaces (of b) and the row spaces (of a)
 * of two maps, as many as the smaller one has dimensions (Bjorck, Golub 1973).
 * Directions below 2^-20 of the largest do not count. */
BAL_CHECK int bal_angles_between(bal_angles *columns, bal_angles *rows,
                                 const bal_spectrum *one,
                                 const bal_spectrum *two, bal_error *err);

#endif
