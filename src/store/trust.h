/* Which keys the store's proofs are trusted by: the setting `trusted_keys`, one
 * word a key, a space between. An Ed25519 key is its 32 public bytes in base64,
 * a shared secret its key id ("hmac:…"), which tells nothing of it. */
#ifndef STORE_TRUST_H
#define STORE_TRUST_H

#include "core/key.h"
#include "store/store.h"

/* Does the store trust any key? */
BAL_CHECK int bal_trust_any(bal_store *self, bool *any, bal_error *err);
/* Does it trust this one? */
BAL_CHECK int bal_trusts(bal_store *self, const bal_key *key, bool *trusted,
                         bal_error *err);
/* Does it trust the shared secret of this key id? */
BAL_CHECK int bal_trusts_secret(bal_store *self, const char *id, bool *trusted,
                                bal_error *err);
/* Trust it, if it does not yet; inside a transaction or not. */
BAL_CHECK int bal_trust_add(bal_store *self, const bal_key *key,
                            bal_error *err);
/* Calls fn with every trusted key that can check a signature here: the public
 * halves, and the secret in the environment if it is a trusted one. fn that
 * returns BAL_ROW_STOP ends the walk. */
typedef int bal_trust_fn(void *ctx, const bal_key *key, bal_error *err);
BAL_CHECK int bal_trust_each(bal_store *self, bal_trust_fn *fn, void *ctx,
                             bal_error *err);

#endif
