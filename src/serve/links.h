/* The open connections, and who ends those that are too slow. libmicrohttpd
 * knows silence alone: a byte a second would hold a connection for ever. */
#ifndef SERVE_LINKS_H
#define SERVE_LINKS_H

#include <sys/socket.h>

#include "serve/metrics.h"

typedef enum bal_phase {
    BAL_PHASE_IDLE,  /* no byte of a request has come */
    BAL_PHASE_HEAD,  /* 10 seconds */
    BAL_PHASE_BODY,  /* the deadline */
    BAL_PHASE_REPLY, /* as long as it takes, silence excepted */
} bal_phase;

typedef struct bal_link bal_link;
typedef struct bal_links bal_links;

/* Starts the thread that looks, once a second. plain: no TLS, so that a status
 * can be told. */
BAL_CHECK int bal_links_new(bal_links **out, double deadline, bool plain,
                            bal_metrics *metrics, bal_error *err);
/* Ends the thread. */
void bal_links_free(bal_links *self);
BAL_OWNABLE(bal_links)

/* NULL: no memory. */
bal_link *bal_links_add(bal_links *self, int fd, const struct sockaddr *peer);
/* Before the socket is closed. */
void bal_links_remove(bal_links *self, bal_link *link);
void bal_link_phase(bal_link *self, bal_phase phase);
/* Answers where libmicrohttpd has not begun to, and says nothing more. With TLS
 * it can only end the connection. */
void bal_link_refuse(bal_link *self, int status, const char *body);
bool bal_link_plain(const bal_link *self);
/* An address, or "-". */
const char *bal_link_peer(const bal_link *self);
bool bal_link_local(const bal_link *self);

#endif
