/* What libcrypto makes, owned like everything else; its failures, told like
 * everything else's. */
#ifndef CORE_CRYPTO_H
#define CORE_CRYPTO_H

#include <openssl/bio.h>
#include <openssl/evp.h>

#include "ballast.h"

#include "core/own.h"

BAL_OWNABLE(BIO)
BAL_OWNABLE(EVP_MD_CTX)
BAL_OWNABLE(EVP_PKEY)

/* The library refused: ENOMEM if that is why, else EIO with its reason. Its
 * queue of errors is empty afterwards. */
int bal_fail_crypto(bal_error *err, const char *doing);

#endif
