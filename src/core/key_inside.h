/* What the files that make keys share: how a key is held is key.c's affair. */
#ifndef CORE_KEY_INSIDE_H
#define CORE_KEY_INSIDE_H

#include "core/key.h"

/* A PEM text with its NUL: 64 characters and two lines around them. */
#define BAL_PEM_ROOM 160

/* The pair of RFC 8032's 32 byte seed. */
BAL_CHECK int bal_key_of_seed(bal_key **out, const uint8_t seed[32],
                              bal_error *err);
/* A shared secret, copied. EINVAL: less than 16 bytes. */
BAL_CHECK int bal_key_of_secret(bal_key **out, bal_bytes secret,
                                bal_error *err);
/* PKCS#8 (RFC 8410) of a pair, to be cleansed. EINVAL: not a pair. */
BAL_CHECK int bal_key_private(const bal_key *self, char out[BAL_PEM_ROOM],
                              bal_error *err);

#endif
