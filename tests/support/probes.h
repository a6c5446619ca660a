/* Sets of probes for tests. */
#ifndef SUPPORT_PROBES_H
#define SUPPORT_PROBES_H

#include "probe/runner.h"

/* Of canonical JSON: the array that is its "probes". */
bal_probes *probes_of(const char *array);

#endif
