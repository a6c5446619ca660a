/* Every backend that there is, one after the other: what a suite over them all
 * shares. */
#ifndef SUPPORT_BACKENDS_H
#define SUPPORT_BACKENDS_H

#include "blocks/backend.h"

typedef struct contract {
    char root[128];
    bal_backend *backend;
    bal_work *work;
    bool nested; /* a run cannot have others below its name */
} contract;

/* A row a scheme. */
size_t contract_rows(void);
/* False: what the row needs is not there. */
bool contract_begin(contract *self, size_t row);
void contract_done(contract *self);
void contract_stage(contract *self, bal_staged *staged, const char *name,
                    const char *text);
void contract_put(contract *self, const char *name, const char *text);
int contract_get(contract *self, bal_buf *out, const char *name,
                 uint64_t offset, uint64_t len);
/* For bal_backend_list of runs that have their own names for bytes; ctx: a
 * size_t. */
int contract_count_one(void *ctx, const char *name, uint64_t size,
                       bal_error *err);
size_t contract_count(contract *self, const char *prefix);
int contract_remove(contract *self, const char *const *names, size_t count,
                    uint64_t *freed);

#endif
