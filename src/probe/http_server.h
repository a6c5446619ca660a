/* A server of completions, and what it serves: which engine it is, its models,
 * the one that is the commit's. */
#ifndef PROBE_HTTP_SERVER_H
#define PROBE_HTTP_SERVER_H

#include "core/http.h"
#include "probe/runner.h"

/* What sets one engine apart from another. */
typedef struct bal_engine {
    const char *name;
    const char *owner; /* owned_by of its models */
    const char *extra; /* members of its own in every request, a JSON object */
    /* How an adapter is asked for: by its name; by its base's name, this text
     * and its name; NULL: by its number in a list of GET /lora-adapters. */
    const char *between;
    bool salt;       /* takes cache_salt */
    bool known;      /* what follows can be relied on: adapters have a parent
                        or a number, log-probabilities come when asked for,
                        answers name their model */
    unsigned top[2]; /* likely tokens that it can be asked for, by bal_api */
} bal_engine;

typedef enum bal_api { BAL_API_PROMPT, BAL_API_CHAT } bal_api;

/* A model of a server. */
typedef struct bal_served {
    const char *id;     /* its name */
    const char *other;  /* another, NULL: none */
    const char *model;  /* what requests ask for, and answers say */
    const char *parent; /* the model that it is an adapter on; NULL: none */
    const char *root;   /* where it was read from; NULL: not told */
    int64_t lora;       /* its number, -1: none */
} bal_served;

typedef struct bal_server {
    bal_http *http;
    bal_work *work;
    const char *key; /* never told; NULL: none */
    const bal_engine *engine;
    bal_arena arena;
    const char *url;     /* without /v1 */
    const char *version; /* "": not told */
    bal_served *served;
    size_t count;
    size_t adapters; /* that have a number; they are the last */
} bal_server;

/* The engine's row of tables, the models. EIO, ENOTFOUND. */
BAL_CHECK int bal_server_open(bal_server *self, const bal_question *question,
                              bal_error *err);
void bal_server_done(bal_server *self);
/* EINVAL: no URL, or none of a server. */
BAL_CHECK int bal_server_check(const char *url, bal_error *err);

/* JSON of GET url + path. *out stays NULL where the status is not 200, and
 * *status tells. EIO: no answer, or no JSON. */
BAL_CHECK int bal_server_get(json_t **out, int *status, bal_server *self,
                             const char *path, bal_error *err);
/* EIO: "'url/path' answered 500: text of the answer". */
int bal_server_refused(const bal_server *self, const char *path, int status,
                       bal_bytes body, bal_error *err);
/* A JSON value of an answer; ECORRUPT is EIO. U+0000 in texts becomes U+FFFD.
 * body is written to. */
BAL_CHECK int bal_server_parse(json_t **out, const bal_server *self,
                               const char *path, bal_buf *body, bal_error *err);

/* The model that is the question's: by options->model, by the commit's first 8
 * hex digits at its name's end, or by the ballast.json where it was read from.
 * ENOTFOUND lists what is there; EINVAL: several; EIO: it is another commit's,
 * or the base's where an adapter is wanted. */
BAL_CHECK int bal_server_pick(const bal_served **out, const bal_server *self,
                              const bal_question *question, bal_error *err);
/* The model that an adapter is on, NULL: it cannot be asked. */
const bal_served *bal_server_base(const bal_server *self,
                                  const bal_served *adapter);

#endif
