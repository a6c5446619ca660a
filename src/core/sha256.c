/* SHA-256 by libcrypto, and what to say when that refuses. */
#include "core/sha256.h"

#include <openssl/err.h>
#include <string.h>

#include "core/crypto.h"
#include "core/error.h"
#include "core/str.h"

int bal_fail_crypto(bal_error *err, const char *doing)
{
    unsigned long last = ERR_peek_last_error();
    const char *why = ERR_reason_error_string(last);

    ERR_clear_error();
    if (ERR_GET_REASON(last) == ERR_R_MALLOC_FAILURE)
        return bal_fail_memory(err, doing);
    return bal_fail(err, BAL_EIO, "%s: libcrypto refuses: %s", doing,
                    why ? why : "it does not say why");
}

int bal_sha256_of(bal_sha256 *out, const bal_bytes *parts, size_t count,
                  bal_error *err)
{
    uint8_t digest[sizeof(out->bytes)];
    BAL_OWN(EVP_MD_CTX) context = EVP_MD_CTX_new();

    if (!context)
        return bal_fail_memory(err, "sha-256");
    int good = EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    for (size_t i = 0; i < count && good; i++) {
        if (parts[i].len)
            good = EVP_DigestUpdate(context, parts[i].data, parts[i].len);
    }
    if (!good || !EVP_DigestFinal_ex(context, digest, NULL))
        return bal_fail_crypto(err, "sha-256");
    memcpy(out->bytes, digest, sizeof(digest));
    return 0;
}

void bal_sha256_hex(char out[65], const bal_sha256 *self)
{
    bal_hex_write(out, self->bytes, sizeof(self->bytes));
}

int bal_sha256_parse(bal_sha256 *out, const char *hex, bal_error *err)
{
    if (!bal_hex_read(out->bytes, sizeof(out->bytes), hex))
        return bal_fail(err, BAL_EINVAL,
                        "'%.80s' is not a sha-256 of 64 lower-case hex digits",
                        hex);
    return 0;
}

bool bal_sha256_equal(const bal_sha256 *a, const bal_sha256 *b)
{
    return !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}
