/* A library to be loaded before the program's own (LD_PRELOAD): a clock that is
 * wrong, or set back while the program runs. Not linked to anything of ours.
 *
 *   BALLAST_CLOCK=S[,BACK]     CLOCK_REALTIME is S seconds ahead, and with each
 *                              time that it is asked for BACK seconds less */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static atomic_long asked;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    const char *text = getenv("BALLAST_CLOCK");
    char *rest = NULL;

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int rc = real(clock, now);
    if (rc || !text || clock != CLOCK_REALTIME)
        return rc;
    now->tv_sec += strtol(text, &rest, 10);
    if (*rest == ',')
        now->tv_sec -= strtol(rest + 1, NULL, 10) * asked++;
    return 0;
}
