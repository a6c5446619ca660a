/* Time, in integers where it is recorded. */
#include "core/clock.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
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

/* ---- reading ------------------------------------------------------------- */

/* What a text tells, field by field. */
typedef struct moment {
    int64_t year, month, day, hour, minute, second, nanoseconds;
    int64_t offset_hours, offset_minutes;
} moment;

/* Exactly count digits at *at. */
static bool read_digits(int64_t *out, const char **at, size_t count)
{
    *out = 0;
    for (size_t i = 0; i < count; i++, ++*at) {
        if (**at < '0' || **at > '9')
            return false;
        *out = *out * 10 + (**at - '0');
    }
    return true;
}

/* One of the characters. */
static bool read_mark(char *mark, const char **at, const char *of)
{
    *mark = **at;
    if (!*mark || !strchr(of, *mark))
        return false;
    ++*at;
    return true;
}

/* ".123456789", or nothing. */
static bool read_fraction(int64_t *out, const char **at)
{
    int64_t worth = second / 10;

    *out = 0;
    if (**at != '.')
        return true;
    ++*at;
    const char *first = *at;
    for (; **at >= '0' && **at <= '9'; ++*at, worth /= 10)
        *out += worth * (**at - '0');
    return *at > first;
}

static bool read_offset(moment *self, const char **at)
{
    char mark;

    if (!read_mark(&mark, at, "Zz+-"))
        return false;
    if (mark == 'Z' || mark == 'z')
        return true;
    char colon;
    if (!read_digits(&self->offset_hours, at, 2) ||
        !read_mark(&colon, at, ":") ||
        !read_digits(&self->offset_minutes, at, 2))
        return false;
    if (self->offset_hours > 23 || self->offset_minutes > 59)
        return false;
    if (mark == '-') {
        self->offset_hours = -self->offset_hours;
        self->offset_minutes = -self->offset_minutes;
    }
    return true;
}

static bool is_moment(const moment *self)
{
    static const int64_t days[] = { 31, 28, 31, 30, 31, 30,
                                    31, 31, 30, 31, 30, 31 };
    bool leap =
        self->year % 4 == 0 && (self->year % 100 != 0 || self->year % 400 == 0);

    if (self->year < 1678 || self->year > 2261 || self->month < 1 ||
        self->month > 12 || self->day < 1)
        return false;
    if (self->day > days[self->month - 1] + (leap && self->month == 2))
        return false;
    /* A leap second is the first of the next minute. */
    return self->hour < 24 && self->minute < 60 && self->second <= 60;
}

/* Days from 1970-01-01, by the calendar that begins in March. */
static int64_t days_until(const moment *self)
{
    int64_t year = self->year - (self->month <= 2);
    int64_t era = year / 400;
    int64_t in_era = year - era * 400;
    int64_t month = (self->month + 9) % 12;
    int64_t in_year = (153 * month + 2) / 5 + self->day - 1;

    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year -
           719468;
}

bool bal_clock_read(int64_t *out, const char *text)
{
    const struct {
        size_t digits;
        size_t field;
        const char *mark; /* behind it */
    } parts[] = {
        { 4, offsetof(moment, year), "-" },
        { 2, offsetof(moment, month), "-" },
        { 2, offsetof(moment, day), "Tt " },
        { 2, offsetof(moment, hour), ":" },
        { 2, offsetof(moment, minute), ":" },
        { 2, offsetof(moment, second), NULL },
    };
    moment self = { 0 };
    const char *at = text;
    char mark;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        int64_t value;
        if (!read_digits(&value, &at, parts[i].digits))
            return false;
        memcpy((char *)&self + parts[i].field, &value, sizeof(value));
        if (parts[i].mark && !read_mark(&mark, &at, parts[i].mark))
            return false;
    }
    if (!read_fraction(&self.nanoseconds, &at) || !read_offset(&self, &at) ||
        *at || !is_moment(&self))
        return false;
    int64_t minutes = (self.hour - self.offset_hours) * 60 + self.minute -
                      self.offset_minutes;
    *out = ((days_until(&self) * 1440 + minutes) * 60 + self.second) * second +
           self.nanoseconds;
    return true;
}
