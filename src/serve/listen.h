/* Where the server listens, and what it tells a service manager. */
#ifndef SERVE_LISTEN_H
#define SERVE_LISTEN_H

#include "ballast.h"

#include "core/buf.h"

typedef struct bal_listener {
    int fd; /* -1: none */
    bool loopback;
    bool local;    /* not reached by an address */
    char host[64]; /* as in a URL: brackets about an IPv6 address */
    uint16_t port;
} bal_listener;

/* The socket that systemd hands over, else a new one. EIO: the port is taken;
 * EINVAL: an address that is none. */
BAL_CHECK int bal_listener_open(bal_listener *out, const char *host,
                                uint16_t port, bal_error *err);
/* Tells the service manager, if there is one: "READY=1". */
void bal_notify(const char *state);
/* As many files as the system lets us open; how many that is. */
unsigned bal_raise_files(void);

#endif
