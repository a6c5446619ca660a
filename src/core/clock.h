/* Time: nanoseconds since 1970 in UTC, and its texts. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <stdint.h>

int64_t bal_clock_now(void);
/* Seconds on a clock that only goes forward. */
double bal_clock_ticks(void);
void bal_clock_sleep(double seconds);
/* "2026-11-30T05:38:32.123456789Z". */
void bal_clock_rfc3339(char out[40], int64_t at);
/* "2026-11-30 06:38:32 +0100", in the local zone. */
void bal_clock_local(char out[40], int64_t at);

#endif
