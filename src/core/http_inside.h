/* What the HTTP client's files share. */
#ifndef CORE_HTTP_INSIDE_H
#define CORE_HTTP_INSIDE_H

#include <signal.h>
#include <stdbool.h>

#include "core/curl.h"
#include "core/http.h"

/* Where a request goes. */
typedef struct bal_http_place {
    CURLU *url;
    bal_buf text; /* scheme://host:port/path, for messages */
    bool loopback;
} bal_http_place;

/* EINVAL: no URL, another scheme, a user or a password in it. */
BAL_CHECK int bal_http_place_init(bal_http_place *self, const char *url,
                                  bal_error *err);
void bal_http_place_done(bal_http_place *self);

/* How a try ended. */
typedef struct bal_http_end {
    CURLcode code;
    int status;       /* where code is CURLE_OK */
    double asked;     /* seconds, by Retry-After; 0: not said */
    bool connected;   /* there was a connection */
    long os;          /* errno of connecting, 0: not known */
    const char *text; /* libcurl's own words, may be "" */
} bal_http_end;

/* SIGPIPE held back, in the calling thread, from begin to end. */
typedef struct bal_quiet {
    sigset_t before;
    bool pending; /* it was on its way already, and is not ours */
} bal_quiet;
void bal_quiet_begin(bal_quiet *self);
void bal_quiet_end(bal_quiet *self);

/* May it be tried again? */
bool bal_http_again(const bal_http_end *end);
/* Seconds until the next try: Retry-After, and a random part of a time that
 * doubles with each try. random: a state, moved on. */
double bal_http_pause(uint64_t *random, unsigned tries, double asked);
/* EIO in words; seconds: how long was waited for it. */
int bal_http_failed(const bal_http_place *place, const bal_http_end *end,
                    double seconds, bal_error *err);

#endif
