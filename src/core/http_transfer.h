/* One request on its way, from its first try to its last. */
#ifndef CORE_HTTP_TRANSFER_H
#define CORE_HTTP_TRANSFER_H

#include "core/http_inside.h"

typedef enum bal_transfer_state {
    BAL_TRANSFER_IDLE,
    BAL_TRANSFER_RUNNING, /* its handle is with the multi handle */
    BAL_TRANSFER_WAITING, /* for its next try */
} bal_transfer_state;

typedef struct bal_transfer {
    bal_transfer_state state;
    CURL *easy;
    struct curl_slist *headers;
    bal_http_place place;
    bal_http_request request;
    size_t i;
    unsigned tries; /* ended so far */
    double again;   /* bal_clock_ticks of the next try */
    double seconds; /* the time that a try has */
    size_t header_bytes;
    bal_buf head; /* BAL_HTTP_HEAD: the lines, as they came */
    bal_buf body;
    int rc;      /* why body was not taken: EIO too long, ENOMEM; 0: it was */
    bool longer; /* the body was longer than it may be */
    char text[CURL_ERROR_SIZE];
} bal_transfer;

/* Make it ready for its first try; request is borrowed. bearer: a header line,
 * NULL: none. EINVAL: the URL. */
BAL_CHECK int bal_transfer_begin(bal_transfer *self,
                                 const bal_http_request *request,
                                 const char *bearer, size_t answer_max,
                                 bal_error *err);
/* Set the handle up for a try of so many seconds. */
BAL_CHECK int bal_transfer_arm(bal_transfer *self, double seconds,
                               bal_error *err);
/* What became of a try. */
void bal_transfer_end(const bal_transfer *self, CURLcode code,
                      bal_http_end *end);
/* EIO, ENOMEM, ECANCELLED in words. */
int bal_transfer_failed(const bal_transfer *self, const bal_http_end *end,
                        bal_error *err);
/* Idle, the handle kept. */
void bal_transfer_rest(bal_transfer *self);
void bal_transfer_done(bal_transfer *self);

#endif
