/* SHA-256 against the examples of FIPS 180-4 (NIST's example values). */
#include <stdlib.h>
#include <string.h>

#include "core/sha256.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const struct {
    const char *text;
    const char *hex;
} examples[] = {
    { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc",
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
      "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
};

static void check_hex(const bal_sha256 *hash, const char *want)
{
    char hex[65];

    bal_sha256_hex(hex, hash);
    CHECK(!strcmp(hex, want));
}

static void hashes_are_those_of_the_standard(void)
{
    for (size_t i = 0; i < COUNT(examples); i++) {
        bal_bytes part = { examples[i].text, strlen(examples[i].text) };
        bal_sha256 hash;
        check_row(examples[i].hex);
        CHECK_OK(bal_sha256_of(&hash, &part, 1, &check_err));
        check_hex(&hash, examples[i].hex);
    }
}

static void a_million_letters_hash_as_the_standard_says(void)
{
    static char letters[1000000];
    bal_bytes part = { letters, sizeof(letters) };
    bal_sha256 hash;

    memset(letters, 'a', sizeof(letters));
    CHECK_OK(bal_sha256_of(&hash, &part, 1, &check_err));
    check_hex(&hash, "cdc76e5c9914fb9281a1c7e284d73e67"
                     "f1809a48a497200e046d39ccc7112cd0");
}

static void parts_hash_like_what_they_make(void)
{
    static const bal_bytes parts[] = {
        { "a", 1 }, { NULL, 0 }, { "bc", 2 }, { "", 0 }
    };
    bal_sha256 hash;

    CHECK_OK(bal_sha256_of(&hash, parts, COUNT(parts), &check_err));
    check_hex(&hash, examples[1].hex);
    CHECK_OK(bal_sha256_of(&hash, NULL, 0, &check_err));
    check_hex(&hash, examples[0].hex);
}

static void hex_is_read_back(void)
{
    bal_sha256 hash;
    bal_sha256 back;

    CHECK_OK(bal_sha256_of(&hash, NULL, 0, &check_err));
    CHECK_OK(bal_sha256_parse(&back, examples[0].hex, &check_err));
    CHECK(bal_sha256_equal(&hash, &back));
    back.bytes[31] ^= 1;
    CHECK(!bal_sha256_equal(&hash, &back));
}

static void what_is_not_64_digits_is_refused(void)
{
    static const char *const texts[] = {
        "",
        "e3b0",
        "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b8550",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85g",
    };
    bal_sha256 hash;

    for (size_t i = 0; i < COUNT(texts); i++) {
        check_row(texts[i]);
        CHECK_RC(BAL_EINVAL, bal_sha256_parse(&hash, texts[i], &check_err));
    }
}

static const check_test tests[] = {
    { TEST(hashes_are_those_of_the_standard) },
    { TEST(a_million_letters_hash_as_the_standard_says) },
    { TEST(parts_hash_like_what_they_make) },
    { TEST(hex_is_read_back) },
    { TEST(what_is_not_64_digits_is_refused) },
};

CHECK_MAIN(tests)
