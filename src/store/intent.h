/* What a writer is about to put under blocks' names. It is noted in the graph
 * before, and taken back with the transaction that makes rows of it; so that
 * bytes and rows which a killed writer left apart are brought together by the
 * next one that finds itself alone. */
#ifndef STORE_INTENT_H
#define STORE_INTENT_H

#include "store/store.h"

/* A name of its own for one intention. */
typedef struct bal_intent {
    char session[33]; /* "": nothing is intended */
} bal_intent;

/* Durable when it returns. */
BAL_CHECK int bal_intend(bal_intent *out, const bal_tenant *tenant,
                         const bal_block_row *rows, size_t count,
                         bal_error *err);
/* It was done: in the transaction that writes the rows. */
BAL_CHECK int bal_intent_done(const bal_intent *self, bal_store *store,
                              bal_error *err);
/* What killed writers intended: blocks that no row names go, rows of others
 * follow their bytes. The caller is alone in the store. */
BAL_CHECK int bal_intents_settle(bal_store *store, bal_error *err);

#endif
