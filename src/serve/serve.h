/* The HTTP server: a store behind the routes of docs/http.md. */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include "ballast.h"

typedef struct bal_serve_options {
    bal_store_options
        store;              /* how each worker opens it; its work is not used */
    const char *host;       /* NULL: 127.0.0.1 */
    uint16_t port;          /* 0: any that is free */
    const char *tokens;     /* file, NULL: open for reading */
    const char *cert, *key; /* PEM files; NULL: no TLS */
    bool open;              /* an address beyond loopback without tokens */
    uint64_t max_body;      /* bytes of an upload, 0: 8 GiB */
    double deadline;        /* seconds for a request to arrive, 0: 600; its
                               head has 10 of them, silence 30 */
    uint64_t spool;         /* bytes of adapters kept ready on disk, 0: 4 GiB */
    uint64_t rate;          /* requests a second and token, 0: any */
    uint64_t streams;       /* requests at once and token, 0: 256 */
    unsigned workers;       /* threads for what takes time, 0: 4 or the cores */
    const char *log;        /* json text off; NULL: text */
} bal_serve_options;

/* Says "listening on http://127.0.0.1:PORT" on stderr when it does, and serves
 * until SIGTERM or SIGINT: then it stops accepting, finishes what was begun (30
 * seconds at most) and succeeds. SIGHUP reads the tokens again. EINVAL: an
 * address, a tokens file without tokens, an open server that is not on
 * loopback. EIO: the port is taken. */
BAL_CHECK int bal_serve(const bal_serve_options *options, bal_error *err);

#endif
