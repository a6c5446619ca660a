/* Time, in integers where it is recorded. */
#include "core/clock.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static const int64_t second = INT64_C(1000000000);

int64_t bal_clock_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * second + now.tv_nsec;
}

double bal_clock_ticks(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Not taken up again after a signal: whoever waits wants to hear of it. */
void bal_clock_sleep(double seconds)
{
    if (!(seconds > 0))
        return;
    if (seconds > 1e6)
        seconds = 1e6;
    struct timespec wait = { .tv_sec = (time_t)seconds };
    wait.tv_nsec = (long)((seconds - (double)wait.tv_sec) * 1e9);
    nanosleep(&wait, NULL);
}

/* Seconds and the nanoseconds above them, also before 1970. */
static time_t split(int64_t at, int64_t *nanoseconds)
{
    int64_t seconds = at / second;
    int64_t rest = at % second;

    if (rest < 0) {
        rest += second;
        seconds--;
    }
    *nanoseconds = rest;
    return (time_t)seconds;
}

void bal_clock_rfc3339(char out[40], int64_t at)
{
    int64_t nanoseconds;
    time_t seconds = split(at, &nanoseconds);
    struct tm parts;

    gmtime_r(&seconds, &parts);
    size_t len = strftime(out, 40, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(out + len, 40 - len, ".%09" PRId64 "Z", nanoseconds);
}

void bal_clock_local(char out[40], int64_t at)
{
    int64_t nanoseconds;
    time_t seconds = split(at, &nanoseconds);
    struct tm parts;

    localtime_r(&seconds, &parts);
    strftime(out, 40, "%Y-%m-%d %H:%M:%S %z", &parts);
}
