/* BLAKE3 against the official test vectors (input bytes i mod 251; lengths that
 * those do not have: by the b3sum program). */
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "support/check.h"

static const struct {
    size_t len;
    const char *hex;
} vectors[] = {
    { 0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262" },
    { 1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213" },
    { 2, "7b7015bb92cf0b318037702a6cdd81dee41224f734684c2c122cd6359cb1ee63" },
    { 3, "e1be4d7a8ab5560aa4199eea339849ba8e293d55ca0a81006726d184519e647f" },
    { 63, "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b" },
    { 64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98" },
    { 65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee" },
    { 1023,
      "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11" },
    { 1024,
      "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7" },
    { 1025,
      "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444" },
    { 2048,
      "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a" },
    { 2049,
      "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030" },
    { 3072,
      "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2" },
    { 4097,
      "9b4052b38f1c5fc8b1f9ff7ac7b27cd242487b3d890d15c96a1c25b8aa0fb995" },
    { 8192,
      "aae792484c8efe4f19e2ca7d371d8c467ffb10748d8a5a1ae579948f718a2a63" },
    { 16385,
      "1dabe216be2578830263b049de1639f39f05a4da616b9b78c7a5e4e41662fd1f" },
    { 31744,
      "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47" },
    { 102400,
      "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085" },
};

enum { LONGEST = 102400, VECTOR_COUNT = sizeof(vectors) / sizeof(vectors[0]) };

static uint8_t input[LONGEST];

static void make_input(void)
{
    for (size_t i = 0; i < LONGEST; i++)
        input[i] = (uint8_t)(i % 251);
}

static void check_hex(const bal_id *id, const char *want)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    CHECK(!strcmp(hex, want));
}

static void hashes_are_those_of_the_official_vectors(void)
{
    make_input();
    for (size_t i = 0; i < VECTOR_COUNT; i++) {
        bal_id id;
        check_row(vectors[i].hex);
        bal_hash_of(&id, input, vectors[i].len);
        check_hex(&id, vectors[i].hex);
    }
}

static void pieces_do_not_matter(void)
{
    static const size_t pieces[] = { 1, 7, 64, 1000, 1024, 4096 };

    make_input();
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        bal_hash hash;
        bal_id id;
        bal_hash_init(&hash);
        for (size_t at = 0; at < LONGEST; at += pieces[i]) {
            size_t left = LONGEST - at;
            size_t len = left < pieces[i] ? left : pieces[i];
            bal_hash_add(&hash, input + at, len);
            bal_hash_add(&hash, NULL, 0);
        }
        bal_hash_end(&hash, &id);
        check_hex(&id, vectors[VECTOR_COUNT - 1].hex);
    }
}

static void a_hash_can_go_on_after_its_end(void)
{
    bal_hash hash;
    bal_id id;

    make_input();
    bal_hash_init(&hash);
    bal_hash_add(&hash, input, 1);
    bal_hash_end(&hash, &id);
    bal_hash_add(&hash, input + 1, 1);
    bal_hash_end(&hash, &id);
    check_hex(&id, vectors[2].hex);
}

static void ids_compare_by_all_their_bytes(void)
{
    bal_id a = { { 0 } };
    bal_id b = { { 0 } };

    CHECK(bal_id_equal(&a, &b));
    b.bytes[31] = 1;
    CHECK(!bal_id_equal(&a, &b));
}

static const check_test tests[] = {
    { TEST(hashes_are_those_of_the_official_vectors) },
    { TEST(pieces_do_not_matter) },
    { TEST(a_hash_can_go_on_after_its_end) },
    { TEST(ids_compare_by_all_their_bytes) },
};

CHECK_MAIN(tests)
