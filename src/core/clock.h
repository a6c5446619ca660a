/* Time: nanoseconds since 1970 in UTC, and its texts. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

int64_t bal_clock_now(void);
/* Seconds on a clock that only goes forward. */
double bal_clock_ticks(void);
void bal_clock_sleep(double seconds);
/* "2026-11-30T05:38:32.123456789Z". */
void bal_clock_rfc3339(char out[40], int64_t at);
/* The time that such a text tells, as RFC 3339 allows it to be written: any
 * offset, any number of digits behind the point, of which nine count. False:
 * it is none, or not between the years 1678 and 2261. */
bool bal_clock_read(int64_t *out, const char *text);
/* "2026-11-30 06:38:32 +0100", in the local zone. */
void bal_clock_local(char out[40], int64_t at);

#endif
