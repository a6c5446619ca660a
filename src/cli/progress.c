/* The bar is drawn by the watch function of bal_work, which the library calls
 * ten times a second at most. */
#include "cli/progress.h"

#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/signals.h"

enum { BAR = 30 };

void bal_progress_init(bal_progress *self, const char *when, bool quiet,
                       const char *label)
{
    bool forced = when && !strcmp(when, "always");
    bool never = when && !strcmp(when, "never");

    *self = (bal_progress){
        .wanted = forced || (!never && !quiet && isatty(STDERR_FILENO)),
        .patience = forced ? 0 : 1,
        .label = label,
    };
}

static void put(const char *text, size_t len)
{
    ssize_t n = write(STDERR_FILENO, text, len);

    (void)n; /* a bar that cannot be drawn is not missed */
}

static const char *scaled(double *value)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    size_t unit = 0;

    while (*value >= 1024 && unit < 4) {
        *value /= 1024;
        unit++;
    }
    return units[unit];
}

static void draw(bal_progress *self, uint64_t done, uint64_t total,
                 double seconds)
{
    char line[160];
    char bar[BAR + 1] = "";
    char speed[32] = "";
    double size = (double)done;
    double rate = seconds > 0 ? size / seconds : 0;
    const char *size_unit = scaled(&size);
    const char *rate_unit = scaled(&rate);
    int len;

    if (rate > 0)
        snprintf(speed, sizeof(speed), "  %.1f %s/s", rate, rate_unit);

    if (total) {
        double part = done < total ? (double)done / (double)total : 1;
        size_t full = (size_t)(part * BAR);
        memset(bar, '#', full);
        memset(bar + full, '.', BAR - full);
        bar[BAR] = '\0';
        len = snprintf(line, sizeof(line), "\r%s [%s] %3.0f%%  %.1f %s%s\033[K",
                       self->label, bar, part * 100, size, size_unit, speed);
    } else {
        len = snprintf(line, sizeof(line), "\r%s  %.1f %s%s\033[K", self->label,
                       size, size_unit, speed);
    }
    put(line, (size_t)len);
    self->drawn = true;
}

int bal_progress_watch(void *ctx, uint64_t done, uint64_t total)
{
    bal_progress *self = ctx;
    double now = bal_clock_ticks();

    if (self->began <= 0)
        self->began = now;
    if (self->wanted && now - self->began >= self->patience)
        draw(self, done, total, now - self->began);
    return bal_signals_pending();
}

void bal_progress_clear(bal_progress *self)
{
    static const char clear[] = "\r\033[K";

    /* Threads that log come here too, where nothing is ever drawn. */
    if (!self->drawn)
        return;
    put(clear, sizeof(clear) - 1);
    self->drawn = false;
}
