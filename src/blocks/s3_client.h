/* Requests to a bucket: signed, sent over connections that are kept, tried
 * again. Any number of threads; each request waits in the one that makes it. */
#ifndef BLOCKS_S3_CLIENT_H
#define BLOCKS_S3_CLIENT_H

#include <pthread.h>

#include "blocks/s3_place.h"
#include "core/http_transfer.h"

#define BAL_S3_PAIRS 6

typedef struct bal_s3_call {
    const char *method;
    const char *key; /* behind the prefix; NULL: the bucket itself */
    bal_sigv4_pair query[BAL_S3_PAIRS];   /* a name NULL ends them */
    bal_sigv4_pair headers[BAL_S3_PAIRS]; /* of the request's own, signed */
    bal_bytes body;                       /* data NULL: none */
    size_t answer_max;                    /* bytes; 0: of an XML answer */
} bal_s3_call;

/* A handle and what came by it, kept for the next. */
typedef struct bal_s3_link {
    struct bal_s3_link *next;
    bal_transfer transfer;
    bal_buf url;
    bal_buf lines[BAL_S3_PAIRS + 5];
    const char *headers[BAL_S3_PAIRS + 6];
} bal_s3_link;

typedef struct bal_s3_client {
    bal_s3_place place;
    pthread_mutex_t lock; /* guards idle and random */
    bal_s3_link *idle;
    uint64_t random;
} bal_s3_client;

/* What was answered; the body is the link's. */
typedef struct bal_s3_reply {
    bal_s3_client *client;
    bal_s3_link *link;
    int status;
    bal_bytes body; /* NUL behind it */
    bool longer;    /* there was more than answer_max, and none is kept */
} bal_s3_reply;

BAL_CHECK int bal_s3_client_init(bal_s3_client *self, const char *rest,
                                 bal_error *err);
void bal_s3_client_done(bal_s3_client *self);
/* Any status is success, after what can be tried again was. EIO: there is no
 * answer; it says where, never by which key. */
BAL_CHECK int bal_s3_send(bal_s3_reply *out, bal_s3_client *client,
                          const bal_s3_call *call, bal_error *err);
void bal_s3_reply_done(bal_s3_reply *self);
/* The value of a header line in `to`, cleared first; false: there is none. Its
 * name in lower case. */
bool bal_s3_reply_header(const bal_s3_reply *self, const char *name,
                         bal_buf *to);

/* ---- s3_answer.c -------------------------------------------------------- */

/* The code of an answer that is an error, "" where it has none. */
#define BAL_S3_CODE 64
void bal_s3_reply_code(const bal_s3_reply *self, char code[BAL_S3_CODE]);
/* An answer that was not wanted, in words: ENOTFOUND where it says for sure
 * that there is no such key, else EIO. what: "reading 'acme/3/3f…'". */
int bal_s3_refused(const bal_s3_reply *self, const char *what, bal_error *err);

#endif
