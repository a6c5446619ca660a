/* Starting, signals, stopping. */
#include "serve/serve.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/signals.h"
#include "serve/daemon_inside.h"

static const double grace = 30; /* seconds for what was begun */

/* ---- before ------------------------------------------------------------- */

static int check(const bal_serve_options *options, bal_error *err)
{
    if (!options->cert != !options->key)
        return bal_fail(err, BAL_EINVAL, "TLS needs a certificate and its key");
    return 0;
}

/* Who could read it from elsewhere must have been asked for. */
static int check_reach(const bal_serve_options *options,
                       const bal_listener *listener, bal_error *err)
{
    if (listener->loopback || options->tokens || options->open)
        return 0;
    return bal_hint(err,
                    bal_fail(err, BAL_EINVAL,
                             "without tokens '%s' would be open to everybody",
                             listener->host),
                    "give --tokens FILE, or --open if that is meant");
}

/* ---- signals ------------------------------------------------------------ */

typedef struct signal_sets {
    sigset_t watched, before;
} signal_sets;

/* Blocked before there are threads, so that none of them gets one: they are
 * waited for here instead. */
static void block(signal_sets *self)
{
    sigemptyset(&self->watched);
    sigaddset(&self->watched, SIGTERM);
    sigaddset(&self->watched, SIGINT);
    sigaddset(&self->watched, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &self->watched, &self->before);
}

static void unblock(const signal_sets *self)
{
    struct timespec none = { 0 };

    while (sigtimedwait(&self->watched, NULL, &none) > 0)
        ;
    pthread_sigmask(SIG_SETMASK, &self->before, NULL);
}

/* ---- while it runs ------------------------------------------------------ */

static void reload(bal_daemon *daemon)
{
    struct timespec now;
    bal_error err = { 0 };
    char state[64];

    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
             (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    bal_notify(state);
    if (bal_keyring_reload(daemon->keyring, &err))
        fprintf(stderr, "tokens not reloaded, the old ones stay: %s\n",
                err.text);
    else
        fprintf(stderr, "tokens reloaded\n");
    bal_notify("READY=1");
}

static void wait_for_end(bal_daemon *daemon, const signal_sets *signals)
{
    int came = 0;

    while (!bal_signals_pending() && came != SIGTERM && came != SIGINT) {
        struct timespec second = { .tv_sec = 1 };
        came = sigtimedwait(&signals->watched, NULL, &second);
        if (came == SIGHUP)
            reload(daemon);
        bal_daemon_sift(daemon);
    }
}

/* What was begun is finished, unless it takes too long or is asked again. */
static void wait_for_rest(bal_daemon *daemon, const signal_sets *signals)
{
    double until = bal_clock_ticks() + grace;
    struct timespec pause = { .tv_nsec = 20000000 };

    while (bal_daemon_busy(daemon) > 0 && bal_clock_ticks() < until) {
        int came = sigtimedwait(&signals->watched, NULL, &pause);
        if (came == SIGTERM || came == SIGINT)
            return;
    }
}

static int run(bal_daemon *daemon, const signal_sets *signals, bal_error *err)
{
    const bal_serve_options *options = daemon->options;
    bal_listener listener;

    int rc = bal_listener_open(&listener,
                               options->host ? options->host : "127.0.0.1",
                               options->port, err);
    if (rc)
        return rc;
    rc = check_reach(options, &listener, err);
    if (rc) {
        close(listener.fd);
        return rc;
    }
    rc = bal_daemon_start(daemon, listener.fd, err);
    if (rc)
        return rc;
    if (!listener.loopback && geteuid() == 0)
        fprintf(stderr, "note: the server runs as root; a user of its own "
                        "would do\n");
    fprintf(stderr, "listening on %s://%s:%u\n",
            options->cert ? "https" : "http", listener.host, listener.port);
    bal_notify("READY=1");
    wait_for_end(daemon, signals);
    bal_notify("STOPPING=1");
    bal_daemon_quiesce(daemon);
    wait_for_rest(daemon, signals);
    return 0;
}

int bal_serve(const bal_serve_options *options, bal_error *err)
{
    bal_daemon *daemon = NULL;
    signal_sets signals;

    int rc = check(options, err);
    if (rc)
        return rc;
    block(&signals);
    rc = bal_daemon_new(&daemon, options, err);
    if (!rc)
        rc = run(daemon, &signals, err);
    bal_daemon_free(daemon);
    unblock(&signals);
    return rc;
}
