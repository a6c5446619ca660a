/* One request and its reply on a connection, from its first line to the last
 * byte sent. Belongs to the thread that reads the socket, but for the time
 * between bal_daemon_queue and the connection's being resumed, when it belongs
 * to a worker. */
#ifndef SERVE_TURN_H
#define SERVE_TURN_H

#include "serve/daemon_inside.h"
#include "serve/dispatch.h"
#include "serve/heads.h"
#include "serve/upload.h"

typedef enum bal_turn_stage {
    BAL_TURN_NEW,   /* the head was not looked at */
    BAL_TURN_BODY,  /* the body comes, for its route */
    BAL_TURN_DRAIN, /* it comes for nobody */
    BAL_TURN_ASKED, /* a worker has it, or had it */
    BAL_TURN_OVER,  /* the reply is queued */
    BAL_TURN_LOST,  /* it was refused in the middle of its body */
} bal_turn_stage;

typedef struct bal_turn {
    bal_daemon *daemon;
    struct MHD_Connection *connection;
    bal_link *link;
    struct bal_turn *next; /* in the workers' queue */
    bal_turn_stage stage;
    int64_t at;
    double began;
    const char *method;
    bal_heads heads;
    bal_keys *keys;
    bal_request request;
    size_t limited; /* the token whose limits it counts for; 0: none */
    bool close;     /* after the reply */
    uint64_t received;
    bal_buf body;
    bal_upload upload;
    bal_arena arena;
    bal_ready *ready; /* the reply; NULL: not yet */
    bal_buf refusal;  /* its body, where it refuses and closes */
    int status;       /* that was sent, 0: none */
    uint64_t sent;
    char uri[]; /* as it came */
} bal_turn;

/* NULL: no memory. */
bal_turn *bal_turn_new(bal_daemon *daemon, struct MHD_Connection *connection,
                       const char *uri);
/* It is over: log and counters. ok: all was sent. */
void bal_turn_end(bal_turn *self, bool ok);
/* What MHD's access handler does. */
enum MHD_Result bal_turn_step(bal_turn *self, const char *method,
                              const char *version, const char *data,
                              size_t *len);

/* ---- handle.c: from request to reply ------------------------------------ */

/* Makes the reply: by the route's handler, or from what was ready. False: a
 * worker has to. */
bool bal_turn_at_once(bal_turn *self);
/* The same by a worker, which then resumes the connection. */
void bal_turn_by_worker(bal_turn *self, bal_worker *worker);
/* Makes it an error. */
void bal_turn_refuse(bal_turn *self, const bal_refusal *refusal);

/* ---- answer.c: from reply to MHD ---------------------------------------- */

/* What the reply is sent with; it is done with after that. NULL: no memory. */
bal_ready *bal_answer_make(bal_turn *self, bal_reply *reply);
/* Queues self->ready, or 304 in its place. */
enum MHD_Result bal_answer_queue(bal_turn *self);

#endif
