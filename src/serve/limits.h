/* How much one token may ask for: requests a second, and at once. */
#ifndef SERVE_LIMITS_H
#define SERVE_LIMITS_H

#include "ballast.h"

#include "core/own.h"

typedef struct bal_limits bal_limits;

/* rate, streams: 0 is any number. */
BAL_CHECK int bal_limits_new(bal_limits **out, uint64_t rate, uint64_t streams,
                             bal_error *err);
void bal_limits_free(bal_limits *self);
BAL_OWNABLE(bal_limits)

/* May token `number` (0: none, which has no limits) ask once more, now, in
 * seconds of bal_clock_ticks? Where it may, leave is called when that request
 * is done. A second's worth may come at once. */
bool bal_limits_enter(bal_limits *self, size_t number, double now);
void bal_limits_leave(bal_limits *self, size_t number);

#endif
