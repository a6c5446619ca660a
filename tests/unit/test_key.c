/* Keys: signatures of RFC 8032, 7.1, and tags of RFC 4231. */
#include <string.h>

#include "core/key_inside.h"
#include "core/str.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* ---- signatures ------------------------------------------------------------
 */

static const struct {
    const char *seed;
    const char *public;
    const char *message;
    const char *signature;
} signatures[] = {
    {
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    },
    {
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    },
    {
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    },
    {
        "f5e5767cf153319517630f226876b86c8160cc583bc013744c6bf255f5cc0ee5",
        "278117fc144c72340f67d0f2316e8386ceffbf2b2428c9c51fef7c597f1d426e",
        "08b8b2b733424243760fe426a4b54908632110a66c2f6591eabd3345e3e4eb98"
        "fa6e264bf09efe12ee50f8f54e9f77b1e355f6c50544e23fb1433ddf73be84d8"
        "79de7c0046dc4996d9e773f4bc9efe5738829adb26c81b37c93a1b270b20329d"
        "658675fc6ea534e0810a4432826bf58c941efb65d57a338bbd2e26640f89ffbc"
        "1a858efcb8550ee3a5e1998bd177e93a7363c344fe6b199ee5d02e82d522c4fe"
        "ba15452f80288a821a579116ec6dad2b3b310da903401aa62100ab5d1a36553e"
        "06203b33890cc9b832f79ef80560ccb9a39ce767967ed628c6ad573cb116dbef"
        "efd75499da96bd68a8a97b928a8bbc103b6621fcde2beca1231d206be6cd9ec7"
        "aff6f6c94fcd7204ed3455c68c83f4a41da4af2b74ef5c53f1d8ac70bdcb7ed1"
        "85ce81bd84359d44254d95629e9855a94a7c1958d1f8ada5d0532ed8a5aa3fb2"
        "d17ba70eb6248e594e1a2297acbbb39d502f1a8c6eb6f1ce22b3de1a1f40cc24"
        "554119a831a9aad6079cad88425de6bde1a9187ebb6092cf67bf2b13fd65f270"
        "88d78b7e883c8759d2c4f5c65adb7553878ad575f9fad878e80a0c9ba63bcbcc"
        "2732e69485bbc9c90bfbd62481d9089beccf80cfe2df16a2cf65bd92dd597b07"
        "07e0917af48bbb75fed413d238f5555a7a569d80c3414a8d0859dc65a46128ba"
        "b27af87a71314f318c782b23ebfe808b82b0ce26401d2e22f04d83d1255dc51a"
        "ddd3b75a2b1ae0784504df543af8969be3ea7082ff7fc9888c144da2af58429e"
        "c96031dbcad3dad9af0dcbaaaf268cb8fcffead94f3c7ca495e056a9b47acdb7"
        "51fb73e666c6c655ade8297297d07ad1ba5e43f1bca32301651339e22904cc8c"
        "42f58c30c04aafdb038dda0847dd988dcda6f3bfd15c4b4c4525004aa06eeff8"
        "ca61783aacec57fb3d1f92b0fe2fd1a85f6724517b65e614ad6808d6f6ee34df"
        "f7310fdc82aebfd904b01e1dc54b2927094b2db68d6f903b68401adebf5a7e08"
        "d78ff4ef5d63653a65040cf9bfd4aca7984a74d37145986780fc0b16ac451649"
        "de6188a7dbdf191f64b5fc5e2ab47b57f7f7276cd419c17a3ca8e1b939ae49e4"
        "88acba6b965610b5480109c8b17b80e1b7b750dfc7598d5d5011fd2dcc5600a3"
        "2ef5b52a1ecc820e308aa342721aac0943bf6686b64b2579376504ccc493d97e"
        "6aed3fb0f9cd71a43dd497f01f17c0e2cb3797aa2a2f256656168e6c496afc5f"
        "b93246f6b1116398a346f1a641f3b041e989f7914f90cc2c7fff357876e506b5"
        "0d334ba77c225bc307ba537152f3f1610e4eafe595f6d9d90d11faa933a15ef1"
        "369546868a7f3a45a96768d40fd9d03412c091c6315cf4fde7cb68606937380d"
        "b2eaaa707b4c4185c32eddcdd306705e4dc1ffc872eeee475a64dfac86aba41c"
        "0618983f8741c5ef68d3a101e8a3b8cac60c905c15fc910840b94c00a0b9d0",
        "0aab4c900501b3e24d7cdf4663326a3a87df5e4843b2cbdb67cbf6e460fec350"
        "aa5371b1508f9f4528ecea23c436d94b5e8fcd4f681e30a6ac00a9704a188a03",
    },
};

/* What hex stands for, in a buffer that is big enough for every row. */
static bal_bytes unhex(bal_buf *to, const char *hex)
{
    size_t len = strlen(hex) / 2;

    CHECK_OK(bal_buf_reserve(to, len, &check_err));
    CHECK(bal_hex_read((uint8_t *)to->data, len, hex));
    return (bal_bytes){ to->data, len };
}

static void check_signature(const bal_key *pair, const bal_key *half,
                            bal_bytes message, bal_bytes want)
{
    BAL_LOCAL(bal_buf) made = { 0 };
    BAL_LOCAL(bal_buf) longer = { 0 };
    uint8_t bent[BAL_SIGNATURE_MAX];

    CHECK_OK(bal_key_sign(pair, &made, message, &check_err));
    CHECK(made.len == want.len && !memcmp(made.data, want.data, want.len));
    CHECK(bal_key_verifies(half, message, want));
    CHECK_OK(bal_buf_append(&longer, want.data, want.len, &check_err));
    CHECK_OK(bal_buf_append(&longer, "", 1, &check_err));
    CHECK(!bal_key_verifies(half, message,
                            (bal_bytes){ longer.data, longer.len }));
    CHECK(!bal_key_verifies(half, message,
                            (bal_bytes){ want.data, want.len - 1 }));
    CHECK(!bal_key_verifies(half, message, (bal_bytes){ NULL, 0 }));
    for (size_t i = 0; i < want.len; i++) {
        memcpy(bent, want.data, want.len);
        bent[i] ^= (uint8_t)(1u << i % 8);
        CHECK(!bal_key_verifies(half, message, (bal_bytes){ bent, want.len }));
    }
    CHECK(!bal_key_verifies(half, (bal_bytes){ "other", 5 }, want));
}

static void signatures_are_those_of_rfc_8032(void)
{
    for (size_t i = 0; i < COUNT(signatures); i++) {
        BAL_LOCAL(bal_buf) seed = { 0 };
        BAL_LOCAL(bal_buf) public = { 0 };
        BAL_LOCAL(bal_buf) message = { 0 };
        BAL_LOCAL(bal_buf) signature = { 0 };
        BAL_OWN(bal_key) pair = NULL;
        BAL_OWN(bal_key) half = NULL;
        uint8_t raw[32];

        check_row(signatures[i].public);
        CHECK_OK(bal_key_of_seed(&pair, unhex(&seed, signatures[i].seed).data,
                                 &check_err));
        CHECK(bal_key_public_bytes(pair, raw));
        CHECK(!memcmp(raw, unhex(&public, signatures[i].public).data, 32));
        CHECK_OK(bal_key_of_public(&half, raw, &check_err));
        CHECK(!strcmp(bal_key_id(pair), bal_key_id(half)));
        check_signature(pair, half, unhex(&message, signatures[i].message),
                        unhex(&signature, signatures[i].signature));
    }
}

/* RFC 4231, the cases whose keys are long enough here: 1, 3, 4, 6, 7. */
static const struct {
    const char *secret;
    const char *data;
    const char *tag;
} tags[] = {
    { "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "4869205468657265",
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
    { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "dddddddddddddddddddddddddddddddddddddddddddddddddddd"
      "dddddddddddddddddddddddddddddddddddddddddddddddd",
      "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
    { "0102030405060708090a0b0c0d0e0f10111213141516171819",
      "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"
      "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd",
      "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
};

/* Cases 6 and 7: a key of 131 bytes of aa. */
static const struct {
    const char *data;
    const char *tag;
} long_key_tags[] = {
    { "Test Using Larger Than Block-Size Key - Hash Key First",
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
    { "This is a test using a larger than block-size key and a larger than "
      "block-size data. The key needs to be hashed before being used by the "
      "HMAC algorithm.",
      "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
};

static void tags_are_those_of_rfc_4231(void)
{
    uint8_t secret[131];

    for (size_t i = 0; i < COUNT(tags); i++) {
        BAL_LOCAL(bal_buf) shared = { 0 };
        BAL_LOCAL(bal_buf) data = { 0 };
        BAL_LOCAL(bal_buf) tag = { 0 };
        BAL_OWN(bal_key) key = NULL;

        check_row(tags[i].tag);
        CHECK_OK(bal_key_of_secret(&key, unhex(&shared, tags[i].secret),
                                   &check_err));
        check_signature(key, key, unhex(&data, tags[i].data),
                        unhex(&tag, tags[i].tag));
    }
    memset(secret, 0xaa, sizeof(secret));
    for (size_t i = 0; i < COUNT(long_key_tags); i++) {
        BAL_LOCAL(bal_buf) tag = { 0 };
        BAL_OWN(bal_key) key = NULL;
        const char *data = long_key_tags[i].data;

        check_row(long_key_tags[i].tag);
        CHECK_OK(bal_key_of_secret(&key, (bal_bytes){ secret, sizeof(secret) },
                                   &check_err));
        check_signature(key, key, (bal_bytes){ data, strlen(data) },
                        unhex(&tag, long_key_tags[i].tag));
    }
}

static void a_key_is_what_it_is(void)
{
    BAL_OWN(bal_key) pair = NULL;
    BAL_OWN(bal_key) half = NULL;
    BAL_OWN(bal_key) secret = NULL;
    BAL_OWN(bal_key) copy = NULL;
    BAL_LOCAL(bal_buf) to = { 0 };
    char pem[BAL_PEM_ROOM];
    uint8_t raw[32];

    CHECK_OK(bal_key_generate(&pair, &check_err));
    CHECK(bal_key_public_bytes(pair, raw) && bal_key_signs(pair));
    CHECK(!strcmp(bal_key_algorithm(pair), "ed25519"));
    CHECK_OK(bal_key_of_public(&half, raw, &check_err));
    CHECK(!bal_key_signs(half));
    CHECK_RC(BAL_EINVAL,
             bal_key_sign(half, &to, (bal_bytes){ "x", 1 }, &check_err));
    CHECK_RC(BAL_EINVAL, bal_key_private(half, pem, &check_err));
    CHECK_OK(bal_key_of_secret(&secret, (bal_bytes){ "0123456789abcdef", 16 },
                               &check_err));
    CHECK(bal_key_signs(secret) && !bal_key_public_bytes(secret, raw));
    CHECK(!bal_key_public(secret));
    CHECK(!strcmp(bal_key_algorithm(secret), "hmac-sha256"));
    /* printf 'ballast key id' | openssl dgst -sha256 -hmac 0123456789abcdef */
    CHECK(!strcmp(bal_key_id(secret), "hmac:bca398eff38cc079"));
    CHECK_RC(BAL_EINVAL, bal_key_private(secret, pem, &check_err));
    CHECK_RC(BAL_EINVAL,
             bal_key_of_secret(&copy, (bal_bytes){ "0123456789abcde", 15 },
                               &check_err));
    CHECK(!strstr(check_err.text, "0123"));
}

static void a_copy_outlives_its_key(void)
{
    static const bal_bytes data = { "x", 1 };

    for (int i = 0; i < 2; i++) {
        BAL_OWN(bal_key) key = NULL;
        BAL_OWN(bal_key) copy = NULL;
        BAL_LOCAL(bal_buf) signature = { 0 };

        CHECK_OK(i ? bal_key_generate(&key, &check_err)
                   : bal_key_of_secret(&key,
                                       (bal_bytes){ "0123456789abcdef", 16 },
                                       &check_err));
        CHECK_OK(bal_key_sign(key, &signature, data, &check_err));
        CHECK_OK(bal_key_copy(&copy, key, &check_err));
        CHECK(!strcmp(bal_key_id(copy), bal_key_id(key)));
        bal_key_free(key);
        key = NULL;
        CHECK(bal_key_signs(copy));
        CHECK(bal_key_verifies(copy, data,
                               (bal_bytes){ signature.data, signature.len }));
    }
}

static const check_test tests[] = {
    { TEST(signatures_are_those_of_rfc_8032) },
    { TEST(tags_are_those_of_rfc_4231) },
    { TEST(a_key_is_what_it_is) },
    { TEST(a_copy_outlives_its_key) },
};

CHECK_MAIN(tests)
