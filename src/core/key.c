/* Keys as libcrypto holds them. A key never changes once it is made, and any
 * number of threads may sign and check with it. What is secret is wiped before
 * its memory is given back, and nothing here prints it. */
#include "core/key.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/crypto.h"
#include "core/error.h"
#include "core/key_inside.h"
#include "core/sha256.h"
#include "core/str.h"

enum { RAW = 32, TAG = 32, SECRET_MIN = 16, DER_MAX = 48 };

/* RFC 8410: what stands in front of the 32 bytes in SPKI and in PKCS#8. */
static const uint8_t spki_front[12] = {
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
};
static const uint8_t pkcs8_front[16] = {
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
    0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
};

struct bal_key {
    EVP_PKEY *pair; /* or its public half; NULL: a shared secret */
    bool signs;
    uint8_t public[RAW];
    uint8_t *secret;
    size_t secret_len;
    char id[65];
    char pem[BAL_PEM_ROOM];
};

/* At most 48 bytes are 64 characters: one line of PEM (RFC 7468). */
static void write_pem(char out[BAL_PEM_ROOM], const char *label,
                      const uint8_t *der, size_t len)
{
    uint8_t line[DER_MAX / 3 * 4 + 1];

    EVP_EncodeBlock(line, der, (int)len);
    snprintf(out, BAL_PEM_ROOM, "-----BEGIN %s-----\n%s\n-----END %s-----\n",
             label, (const char *)line, label);
    OPENSSL_cleanse(line, sizeof(line));
}

/* Takes pair, also where it fails. */
static int key_of_pair(bal_key **out, EVP_PKEY *pair, bool signs,
                       bal_error *err)
{
    BAL_OWN(bal_key) self = calloc(1, sizeof(*self));
    uint8_t der[sizeof(spki_front) + RAW];
    size_t len = RAW;
    bal_sha256 id;

    if (!self) {
        EVP_PKEY_free(pair);
        return bal_fail_memory(err, "a key");
    }
    self->pair = pair;
    self->signs = signs;
    if (!EVP_PKEY_get_raw_public_key(pair, self->public, &len) || len != RAW)
        return bal_fail_crypto(err, "a public key");
    memcpy(der, spki_front, sizeof(spki_front));
    memcpy(der + sizeof(spki_front), self->public, RAW);
    const bal_bytes whole = { der, sizeof(der) };
    int rc = bal_sha256_of(&id, &whole, 1, err);
    if (rc)
        return rc;
    bal_sha256_hex(self->id, &id);
    write_pem(self->pem, "PUBLIC KEY", der, sizeof(der));

    *out = BAL_TAKE(self);
    return 0;
}

int bal_key_generate(bal_key **out, bal_error *err)
{
    EVP_PKEY *pair = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");

    if (!pair)
        return bal_fail_crypto(err, "making a key");
    return key_of_pair(out, pair, true, err);
}

/* The y of points of small order and its other spellings, little-endian (RFC
 * 7748, section 7; libsodium and ed25519-dalek refuse the same): anybody can
 * make a signature that one of them verifies. The last bit is x's sign. */
static bool is_weak(const uint8_t bytes[RAW])
{
    static const uint8_t weak[][RAW] = {
        { 0 },
        { 1 },
        { 0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4,
          0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6,
          0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05 },
        { 0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b,
          0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39,
          0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a },
    };
    uint8_t y[RAW];
    bool large = true;

    memcpy(y, bytes, RAW);
    y[RAW - 1] &= 0x7f;
    for (size_t i = 0; i < sizeof(weak) / sizeof(weak[0]); i++) {
        if (!memcmp(y, weak[i], RAW))
            return true;
    }
    /* p - 1, p and p + 1, with p = 2^255 - 19. */
    for (size_t i = 1; i < RAW - 1; i++)
        large = large && y[i] == 0xff;
    return large && y[RAW - 1] == 0x7f && y[0] >= 0xec && y[0] <= 0xee;
}

int bal_key_of_public(bal_key **out, const uint8_t bytes[RAW], bal_error *err)
{
    if (is_weak(bytes))
        return bal_fail(err, BAL_EINVAL,
                        "a public key that anybody can sign for");
    EVP_PKEY *half =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, bytes, RAW);

    if (!half)
        return bal_fail_crypto(err, "a public key");
    return key_of_pair(out, half, false, err);
}

int bal_key_of_seed(bal_key **out, const uint8_t seed[RAW], bal_error *err)
{
    EVP_PKEY *pair =
        EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, RAW);

    if (!pair)
        return bal_fail_crypto(err, "a private key");
    return key_of_pair(out, pair, true, err);
}

/* HMAC-SHA256 of data; false: libcrypto refuses. */
static bool tag_of(uint8_t out[TAG], const bal_key *self, bal_bytes data)
{
    size_t len = 0;
    const void *bytes = data.len ? data.data : "";

    return EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, self->secret,
                     self->secret_len, bytes, data.len, out, TAG, &len) &&
           len == TAG;
}

int bal_key_of_secret(bal_key **out, bal_bytes secret, bal_error *err)
{
    static const char named[] = "ballast key id";
    uint8_t tag[TAG];
    char hex[17];

    if (secret.len < SECRET_MIN)
        return bal_fail(err, BAL_EINVAL,
                        "a shared secret of %zu bytes, at least %d are needed",
                        secret.len, SECRET_MIN);
    BAL_OWN(bal_key) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "a key");
    self->signs = true;
    self->secret = malloc(secret.len);
    if (!self->secret)
        return bal_fail_memory(err, "a key");
    self->secret_len = secret.len;
    memcpy(self->secret, secret.data, secret.len);
    if (!tag_of(tag, self, (bal_bytes){ named, sizeof(named) - 1 }))
        return bal_fail_crypto(err, "hmac-sha256");
    bal_hex_write(hex, tag, 8);
    snprintf(self->id, sizeof(self->id), "hmac:%s", hex);

    *out = BAL_TAKE(self);
    return 0;
}

int bal_key_copy(bal_key **out, const bal_key *self, bal_error *err)
{
    if (!self->pair)
        return bal_key_of_secret(
            out, (bal_bytes){ self->secret, self->secret_len }, err);
    if (!EVP_PKEY_up_ref(self->pair))
        return bal_fail_crypto(err, "a key");
    return key_of_pair(out, self->pair, self->signs, err);
}

void bal_key_free(bal_key *self)
{
    if (!self)
        return;
    EVP_PKEY_free(self->pair); /* which wipes it */
    if (self->secret)
        OPENSSL_cleanse(self->secret, self->secret_len);
    free(self->secret);
    free(self);
}

/* ---- what it is ------------------------------------------------------------
 */

const char *bal_key_id(const bal_key *self)
{
    return self->id;
}

const char *bal_key_public(const bal_key *self)
{
    return self->pair ? self->pem : NULL;
}

bool bal_key_public_bytes(const bal_key *self, uint8_t out[RAW])
{
    if (!self->pair)
        return false;
    memcpy(out, self->public, RAW);
    return true;
}

const char *bal_key_algorithm(const bal_key *self)
{
    return self->pair ? "ed25519" : "hmac-sha256";
}

bool bal_key_signs(const bal_key *self)
{
    return self->signs;
}

int bal_key_private(const bal_key *self, char out[BAL_PEM_ROOM], bal_error *err)
{
    uint8_t der[sizeof(pkcs8_front) + RAW];
    size_t len = RAW;
    uint8_t *seed = der + sizeof(pkcs8_front);

    if (!self->pair || !self->signs)
        return bal_fail(err, BAL_EINVAL, "key %s has no private half",
                        self->id);
    memcpy(der, pkcs8_front, sizeof(pkcs8_front));
    int good = EVP_PKEY_get_raw_private_key(self->pair, seed, &len);
    if (good && len == RAW)
        write_pem(out, "PRIVATE KEY", der, sizeof(der));
    OPENSSL_cleanse(der, sizeof(der));
    return good && len == RAW ? 0 : bal_fail_crypto(err, "a private key");
}

/* ---- what it does ----------------------------------------------------------
 */

static bool sign_pair(const bal_key *self, uint8_t out[BAL_SIGNATURE_MAX],
                      bal_bytes data)
{
    size_t len = BAL_SIGNATURE_MAX;
    BAL_OWN(EVP_MD_CTX) context = EVP_MD_CTX_new();

    return context &&
           EVP_DigestSignInit(context, NULL, NULL, NULL, self->pair) == 1 &&
           EVP_DigestSign(context, out, &len, data.data, data.len) == 1 &&
           len == BAL_SIGNATURE_MAX;
}

int bal_key_sign(const bal_key *self, bal_buf *to, bal_bytes data,
                 bal_error *err)
{
    uint8_t signature[BAL_SIGNATURE_MAX];

    if (!self->signs)
        return bal_fail(err, BAL_EINVAL,
                        "key %s is a public half, which cannot sign", self->id);
    if (!data.len)
        data.data = "";
    bool good = self->pair ? sign_pair(self, signature, data)
                           : tag_of(signature, self, data);
    if (!good)
        return bal_fail_crypto(err, "signing");
    return bal_buf_append(to, signature, self->pair ? BAL_SIGNATURE_MAX : TAG,
                          err);
}

static bool verify_pair(const bal_key *self, bal_bytes data,
                        bal_bytes signature)
{
    const void *bytes = data.len ? data.data : "";
    BAL_OWN(EVP_MD_CTX) context = EVP_MD_CTX_new();

    return signature.len == BAL_SIGNATURE_MAX && context &&
           EVP_DigestVerifyInit(context, NULL, NULL, NULL, self->pair) == 1 &&
           EVP_DigestVerify(context, signature.data, signature.len, bytes,
                            data.len) == 1;
}

static bool verify_secret(const bal_key *self, bal_bytes data,
                          bal_bytes signature)
{
    uint8_t tag[TAG];

    return signature.len == TAG && tag_of(tag, self, data) &&
           !CRYPTO_memcmp(tag, signature.data, TAG);
}

bool bal_key_verifies(const bal_key *self, bal_bytes data, bal_bytes signature)
{
    bool good = self->pair ? verify_pair(self, data, signature)
                           : verify_secret(self, data, signature);

    /* What libcrypto says of a bad signature is nobody's error. */
    if (!good)
        bal_fail_crypto(NULL, "verifying");
    return good;
}
