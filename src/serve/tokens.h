/* Who may do what: a file of tokens, of which only hashes are kept. */
#ifndef SERVE_TOKENS_H
#define SERVE_TOKENS_H

#include "ballast.h"

#include "core/buf.h"
#include "core/own.h"

/* What one token allows. */
typedef struct bal_scope {
    const char *const
        *read; /* names, or "*"; what may be written is here, too */
    size_t read_count;
    const char *const *write;
    size_t write_count;
    int64_t expires; /* ns since 1970, 0: never */
    size_t number; /* 1 … : which token, for the log and for limits; 0: none */
} bal_scope;

typedef struct bal_tokens bal_tokens;

/* {TOKEN: [tenant…]} or {TOKEN: {"read", "write", "expires"}}; a TOKEN may be
 * "blake3:<64 hex>" of it. EINVAL names the file and what is wrong, never a
 * token: no object, no token in it, one twice, unknown members, a name that is
 * none, a time that is none. 1 MiB at most. */
BAL_CHECK int bal_tokens_load(bal_tokens **out, const char *path,
                              bal_error *err);
/* The same of text, for tests. */
BAL_CHECK int bal_tokens_parse(bal_tokens **out, const char *text, size_t len,
                               const char *what, bal_error *err);
/* That of a server without tokens: reads every tenant, writes none. */
extern const bal_scope bal_scope_open;
/* Of a request without a token, or with a wrong or expired one: nothing. */
extern const bal_scope bal_scope_none;
/* The scope of a header "Bearer TOKEN" (NULL: none came); compares the hash
 * with every one there is, in constant time. Never NULL; lives as long as
 * self. */
const bal_scope *bal_tokens_find(const bal_tokens *self, const char *header,
                                 int64_t now);
bool bal_scope_reads(const bal_scope *self, const char *tenant);
bool bal_scope_writes(const bal_scope *self, const char *tenant);
void bal_tokens_free(bal_tokens *self);
BAL_OWNABLE(bal_tokens)

#endif
