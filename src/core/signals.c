/* A signal is only noted; work asks for it between two pieces. The second one
 * of a kind has the default effect, for whoever cannot wait. */
#include "core/signals.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t pending;

static void note(int signal)
{
    pending = signal;
}

void bal_signals_watch(void)
{
    static const int stopping[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction action = { .sa_flags = SA_RESETHAND };
    struct sigaction before;

    action.sa_handler = note;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(stopping) / sizeof(stopping[0]); i++) {
        /* nohup has it ignored, and means it. */
        if (stopping[i] == SIGHUP && !sigaction(SIGHUP, NULL, &before) &&
            before.sa_handler == SIG_IGN)
            continue;
        sigaction(stopping[i], &action, NULL);
    }
    /* Writing to nobody, or past a limit on files, is an error to be told. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

int bal_signals_pending(void)
{
    return pending;
}
