/* Keys: an Ed25519 pair (RFC 8032), its public half, or a shared secret for
 * HMAC-SHA256 (RFC 2104). What a key can do follows from what it is, never from
 * what a signature says of itself. The public functions are in ballast.h. */
#ifndef CORE_KEY_H
#define CORE_KEY_H

#include "core/buf.h"
#include "core/own.h"

BAL_OWNABLE(bal_key)

#define BAL_SIGNATURE_MAX 64

/* A PEM text: PKCS#8 "PRIVATE KEY" or SPKI "PUBLIC KEY", of Ed25519. EINVAL: an
 * encrypted one (a hint says how to decrypt), another algorithm (named),
 * neither. what: named in messages. */
BAL_CHECK int bal_key_parse(bal_key **out, bal_bytes pem, const char *what,
                            bal_error *err);
/* A public key by its 32 bytes. EINVAL: a point of small order, for which
 * anybody can sign. */
BAL_CHECK int bal_key_of_public(bal_key **out, const uint8_t bytes[32],
                                bal_error *err);
/* The 32 bytes of the public half; false: a shared secret has none. */
bool bal_key_public_bytes(const bal_key *self, uint8_t out[32]);
/* "ed25519", "hmac-sha256". */
const char *bal_key_algorithm(const bal_key *self);
/* True if it can sign: a pair or a secret. */
bool bal_key_signs(const bal_key *self);
/* Another handle on the same key. */
BAL_CHECK int bal_key_copy(bal_key **out, const bal_key *self, bal_error *err);

/* Append the signature of data: 64 bytes of Ed25519, 32 of HMAC-SHA256. EINVAL:
 * a public half cannot sign. */
BAL_CHECK int bal_key_sign(const bal_key *self, bal_buf *to, bal_bytes data,
                           bal_error *err);
/* Is it this key's signature of data? A signature of another length is not.
 * Tags are compared in constant time. */
bool bal_key_verifies(const bal_key *self, bal_bytes data, bal_bytes signature);

#endif
