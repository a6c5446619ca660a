/* Keys out of PEM. libcrypto takes the armour off; what is inside is read here,
 * by the few forms that RFC 8410 allows, so that no decoder of other algorithms
 * ever sees bytes that somebody gave us, and those can be named all the same.
 */
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <string.h>

#include "core/crypto.h"
#include "core/error.h"
#include "core/key_inside.h"

enum { RAW = 32, PEM_MAX = 1 << 20 };

enum der_tag {
    DER_INTEGER = 0x02,
    DER_BITS = 0x03,
    DER_OCTETS = 0x04,
    DER_OID = 0x06,
    DER_SEQUENCE = 0x30,
    DER_PUBLIC = 0x81,     /* [1] of a version 2 pair: bits */
    DER_ATTRIBUTES = 0xa0, /* [0]; of an elliptic curve key its curve */
};

/* What is left of some DER. */
typedef struct der {
    const uint8_t *at;
    size_t left;
} der;

/* The element in front, if it has this tag; then *inside is its contents.
 * Lengths of up to two bytes: no key that we read has more. */
static bool take(der *from, enum der_tag tag, der *inside)
{
    if (from->left < 2 || from->at[0] != tag)
        return false;
    size_t more = from->at[1] > 0x80 ? from->at[1] - 0x80u : 0u;
    size_t len = more ? 0u : from->at[1];
    if (from->at[1] == 0x80 || more > 2 || from->left - 2 < more)
        return false;
    for (size_t i = 0; i < more; i++)
        len = len << 8 | from->at[2 + i];
    if (len > from->left - 2 - more)
        return false;
    inside->at = from->at + 2 + more;
    inside->left = len;
    from->at = inside->at + len;
    from->left -= 2 + more + len;
    return true;
}

static bool take_public(der *from, enum der_tag tag, const uint8_t **bytes)
{
    der bits;

    if (!take(from, tag, &bits) || bits.left != RAW + 1 || bits.at[0])
        return false;
    *bytes = bits.at + 1;
    return true;
}

/* ---- what is not ours, by name ---------------------------------------------
 */

static const struct {
    const char *name; /* with its article */
    uint8_t len;
    uint8_t oid[9];
} algorithms[] = {
    { "an Ed25519", 3, { 0x2b, 0x65, 0x70 } },
    { "an Ed448", 3, { 0x2b, 0x65, 0x71 } },
    { "an X25519", 3, { 0x2b, 0x65, 0x6e } },
    { "an X448", 3, { 0x2b, 0x65, 0x6f } },
    { "a P-256", 8, { 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07 } },
    { "a P-384", 5, { 0x2b, 0x81, 0x04, 0x00, 0x22 } },
    { "a P-521", 5, { 0x2b, 0x81, 0x04, 0x00, 0x23 } },
    { "a secp256k1", 5, { 0x2b, 0x81, 0x04, 0x00, 0x0a } },
    { "an elliptic curve", 7, { 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01 } },
    { "an RSA", 9, { 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01 } },
    { "an RSA-PSS",
      9,
      { 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a } },
    { "a DSA", 7, { 0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01 } },
};

/* NULL: not known. */
static const char *name_of(const der *oid)
{
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
        if (algorithms[i].len == oid->left &&
            !memcmp(algorithms[i].oid, oid->at, oid->left))
            return algorithms[i].name;
    }
    return NULL;
}

static int hint_ours(bal_error *err, int rc)
{
    return bal_hint(err, rc, "'ballast key generate' makes an Ed25519 key");
}

static int not_ours(const char *what, const char *name, bal_error *err)
{
    return hint_ours(err, bal_fail(err, BAL_EINVAL,
                                   "'%s' holds %s key, not an Ed25519 one",
                                   what, name ? name : "some other"));
}

static int damaged(const char *what, bal_error *err)
{
    return bal_fail(err, BAL_EINVAL, "'%s' holds a damaged key", what);
}

/* An AlgorithmIdentifier that must be Ed25519's, which has no parameters. Of an
 * elliptic curve the parameters name the curve. */
static int take_algorithm(der *from, const char *what, bal_error *err)
{
    der algorithm;
    der oid;
    der curve;

    if (!take(from, DER_SEQUENCE, &algorithm) ||
        !take(&algorithm, DER_OID, &oid))
        return damaged(what, err);
    const char *name = name_of(&oid);
    if (name == algorithms[0].name)
        return algorithm.left ? damaged(what, err) : 0;
    if (take(&algorithm, DER_OID, &curve) && name_of(&curve))
        name = name_of(&curve);
    return not_ours(what, name, err);
}

/* ---- what is inside the armour ---------------------------------------------
 */

/* A SubjectPublicKeyInfo. */
static int read_public(bal_key **out, der text, const char *what,
                       bal_error *err)
{
    der whole;
    const uint8_t *bytes;

    if (!take(&text, DER_SEQUENCE, &whole) || text.left)
        return damaged(what, err);
    int rc = take_algorithm(&whole, what, err);
    if (rc)
        return rc;
    if (!take_public(&whole, DER_BITS, &bytes) || whole.left)
        return damaged(what, err);
    return bal_key_of_public(out, bytes, err);
}

/* A PrivateKeyInfo, or version 2 with the public half behind (RFC 5958). */
static int read_pair(bal_key **out, der text, const char *what, bal_error *err)
{
    BAL_OWN(bal_key) self = NULL;
    der whole;
    der part;
    der seed;
    const uint8_t *bytes = NULL;
    uint8_t own[RAW];

    if (!take(&text, DER_SEQUENCE, &whole) || text.left ||
        !take(&whole, DER_INTEGER, &part) || part.left != 1 || part.at[0] > 1)
        return damaged(what, err);
    int rc = take_algorithm(&whole, what, err);
    if (rc)
        return rc;
    if (!take(&whole, DER_OCTETS, &part) || !take(&part, DER_OCTETS, &seed) ||
        part.left || seed.left != RAW)
        return damaged(what, err);
    /* Attributes may follow; nothing of theirs is used. */
    (void)take(&whole, DER_ATTRIBUTES, &part);
    if (whole.left && (!take_public(&whole, DER_PUBLIC, &bytes) || whole.left))
        return damaged(what, err);
    rc = bal_key_of_seed(&self, seed.at, err);
    if (rc)
        return rc;
    if (bytes && (!bal_key_public_bytes(self, own) || memcmp(own, bytes, RAW)))
        return bal_fail(err, BAL_EINVAL,
                        "the halves of the key in '%s' are not of one pair",
                        what);

    *out = BAL_TAKE(self);
    return 0;
}

/* RFC 5915; the curve is an option. */
static int read_curve(bal_key **out, der text, const char *what, bal_error *err)
{
    der whole;
    der part;
    der curve;

    (void)out;
    bool named = take(&text, DER_SEQUENCE, &whole) &&
                 take(&whole, DER_INTEGER, &part) &&
                 take(&whole, DER_OCTETS, &part) &&
                 take(&whole, DER_ATTRIBUTES, &part) &&
                 take(&part, DER_OID, &curve) && name_of(&curve);
    return not_ours(what, named ? name_of(&curve) : "an elliptic curve", err);
}

/* What openssl writes in front of an elliptic curve key. */
static int read_parameters(bal_key **out, der text, const char *what,
                           bal_error *err)
{
    der curve;

    (void)out;
    bool named = take(&text, DER_OID, &curve) && name_of(&curve);
    return not_ours(what, named ? name_of(&curve) : "an elliptic curve", err);
}

static int read_rsa(bal_key **out, der text, const char *what, bal_error *err)
{
    (void)out;
    (void)text;
    return not_ours(what, "an RSA", err);
}

static int read_dsa(bal_key **out, der text, const char *what, bal_error *err)
{
    (void)out;
    (void)text;
    return not_ours(what, "a DSA", err);
}

static int read_openssh(bal_key **out, der text, const char *what,
                        bal_error *err)
{
    (void)out;
    (void)text;
    return hint_ours(err, bal_fail(err, BAL_EINVAL,
                                   "'%s' holds an OpenSSH key, not a PEM one",
                                   what));
}

static int read_encrypted(bal_key **out, der text, const char *what,
                          bal_error *err)
{
    (void)out;
    (void)text;
    int rc = bal_fail(err, BAL_EINVAL, "the key in '%s' is encrypted", what);
    return bal_hint(err, rc,
                    "decrypt it to where only you can read, with 'openssl "
                    "pkey -in FILE -out KEY'");
}

static const struct {
    const char *label;
    int (*read)(bal_key **out, der text, const char *what, bal_error *err);
} labels[] = {
    { "PRIVATE KEY", read_pair },
    { "PUBLIC KEY", read_public },
    { "ENCRYPTED PRIVATE KEY", read_encrypted },
    { "RSA PRIVATE KEY", read_rsa },
    { "RSA PUBLIC KEY", read_rsa },
    { "EC PRIVATE KEY", read_curve },
    { "EC PARAMETERS", read_parameters },
    { "DSA PRIVATE KEY", read_dsa },
    { "OPENSSH PRIVATE KEY", read_openssh },
};

/* One piece of PEM, wiped when it is left. */
typedef struct armour {
    char *label;
    char *header;
    uint8_t *data;
    long len;
} armour;

static void armour_done(armour *self)
{
    OPENSSL_secure_free(self->label);
    OPENSSL_secure_free(self->header);
    OPENSSL_secure_clear_free(self->data, (size_t)self->len);
}

static int read_labelled(bal_key **out, const armour *piece, const char *what,
                         bal_error *err)
{
    der text = { piece->data, (size_t)piece->len };

    if (strstr(piece->header, "ENCRYPTED"))
        return read_encrypted(out, text, what, err);
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
        if (!strcmp(labels[i].label, piece->label))
            return labels[i].read(out, text, what, err);
    }
    return bal_fail(err, BAL_EINVAL, "'%s' holds a '%.40s', not a key", what,
                    piece->label);
}

int bal_key_parse(bal_key **out, bal_bytes pem, const char *what,
                  bal_error *err)
{
    BAL_LOCAL(armour) piece = { 0 };

    if (pem.len > PEM_MAX)
        return bal_fail(err, BAL_EINVAL, "'%s' is too large for a key", what);
    BAL_OWN(BIO) bio = BIO_new_mem_buf(pem.len ? pem.data : "", (int)pem.len);
    if (!bio)
        return bal_fail_crypto(err, "reading a key");
    /* PEM_FLAG_SECURE: what libcrypto copies it wipes. */
    if (!PEM_read_bio_ex(bio, &piece.label, &piece.header, &piece.data,
                         &piece.len, PEM_FLAG_SECURE)) {
        int rc = bal_fail_crypto(err, "reading a key");
        if (rc == BAL_ENOMEM)
            return rc;
        return hint_ours(
            err, bal_fail(err, BAL_EINVAL, "'%s' is not a PEM key", what));
    }
    return read_labelled(out, &piece, what, err);
}
