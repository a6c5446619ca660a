/* No signals: libcurl is told not to use any, and so leaves SIGPIPE to us. It
 * comes where a TLS connection breaks, and is held back while requests run. */
#include "core/http_inside.h"

static void pipe_set(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
}

void bal_quiet_begin(bal_quiet *self)
{
    sigset_t now;
    sigset_t pipe;

    pipe_set(&pipe);
    sigpending(&now);
    self->pending = sigismember(&now, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe, &self->before);
}

void bal_quiet_end(bal_quiet *self)
{
    static const struct timespec none = { 0 };
    sigset_t pipe;

    pipe_set(&pipe);
    if (!self->pending)
        sigtimedwait(&pipe, NULL, &none);
    pthread_sigmask(SIG_SETMASK, &self->before, NULL);
}
