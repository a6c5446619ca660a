/* The tokens in force: they change while requests look at the old ones. */
#ifndef SERVE_KEYRING_H
#define SERVE_KEYRING_H

#include "serve/tokens.h"

/* One set of tokens, counted. */
typedef struct bal_keys bal_keys;
typedef struct bal_keyring bal_keyring;

/* path NULL: no tokens, everything may be read. */
BAL_CHECK int bal_keyring_new(bal_keyring **out, const char *path,
                              bal_error *err);
void bal_keyring_free(bal_keyring *self);
BAL_OWNABLE(bal_keyring)
/* Reads the file again; what fails leaves the old ones in force. */
BAL_CHECK int bal_keyring_reload(bal_keyring *self, bal_error *err);

bal_keys *bal_keyring_take(bal_keyring *self);
void bal_keys_free(bal_keys *self); /* one reference less */
/* As bal_tokens_find; lives as long as the keys. */
const bal_scope *bal_keys_find(const bal_keys *self, const char *header,
                               int64_t now);

#endif
