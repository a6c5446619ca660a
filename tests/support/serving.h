/* Requests made by hand, of a small store: what handlers answer without a
 * socket. */
#ifndef SUPPORT_SERVING_H
#define SUPPORT_SERVING_H

#include "core/json.h"
#include "serve/routes.h"
#include "serve/spool.h"
#include "support/check.h"

/* acme has on main the adapters m1 to m5 (lora_r8_qv), on side
 * lora_r4_patterns, on blend a view of both, on whole a model of weights, on
 * lost a view of beta's main, whose grant was revoked; beta has lora_r8_qv. */
typedef struct serving {
    bal_store *store;
    bal_work *work;
    bal_spool *spool;
    bal_id main[5]; /* m1 to m5 */
    bal_id side, blend, whole, lost, beta;
} serving;

void serving_open(serving *self);
void serving_done(serving *self);

/* beta's main, to acme, or no more. */
void serving_grant(serving *self);
void serving_revoke(serving *self);
/* Another adapter commit of tests/data/adapters. */
bal_id serving_adapter(serving *self, const char *tenant, const char *name,
                       const char *ref, const char *message);
/* A folder of an adapter of tests/data/adapters; good for a few calls. */
const char *serving_data(const char *name);

/* What is asked, and the answer. */
typedef struct exchange {
    const char *method, *path; /* the route's */
    const char *args[BAL_ROUTE_ARGS];
    bal_field query[6];
    const char *if_match, *if_none_match;
    const char *body, *upload;
    /* the answer */
    int status; /* of an error that of its code */
    bal_reply reply;
    bal_error err;
    bal_arena arena;
    json_t *json; /* the body, where it is JSON */
} exchange;

/* Emptied of an earlier answer first. */
void serving_ask(serving *self, exchange *on);
void exchange_done(exchange *self);
/* NULL: there is none. */
const char *exchange_header(const exchange *self, const char *name);
/* The text at "loras/0/name" in the answer; numbers as digits, null as "null",
 * objects and arrays as their size; "-": nothing is there. Good for a few
 * calls. */
const char *exchange_at(const exchange *self, const char *path);
/* 64 digits; good for a few calls. */
const char *serving_hex(const bal_id *id);

#endif
