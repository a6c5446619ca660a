/* How many threads are worth having. */
#ifndef CORE_CORES_H
#define CORE_CORES_H

#define BAL_JOBS_MAX 256

/* The cores that this process may use: its affinity, and the quota of its
 * cgroups rounded up. 1 to BAL_JOBS_MAX. */
unsigned bal_cores_usable(void);

#endif
