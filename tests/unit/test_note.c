/* Checkpoints: one made by another program with the key of RFC 8032, test 1,
 * and everything that is not one. */
#include <string.h>

#include "core/key_inside.h"
#include "core/note.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

#define ROOT "0FUUgFHGsptcuXceFY7gTVXDw0b46ZzWCy0jRt1o21M="
#define SIG                                                                    \
    "QpJ8RPhzhKBUauXwS1yPVVzYt0d4MapwA/muQPP+pZURmTJIP06oCmC6pEfR2damaFKSHRuI" \
    "A6pIUtHf6MWpy76ahgA="
#define NAME "ballast.example/acme"
#define DASH "\xe2\x80\x94 "

static const char checkpoint[] =
    NAME "\n1\n" ROOT "\n\n" DASH NAME " " SIG "\n";

static const char pair_pem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";

static bal_key *pair(void)
{
    bal_key *key = NULL;

    CHECK_OK(bal_key_parse(&key, (bal_bytes){ pair_pem, sizeof(pair_pem) - 1 },
                           "the test", &check_err));
    return key;
}

static int read_text(bal_note *out, const char *text)
{
    return bal_note_read(out, (bal_bytes){ text, strlen(text) }, &check_err);
}

static bool verifies(const bal_note *note, const bal_key *key)
{
    bool good = false;

    CHECK_OK(bal_note_verify(note, key, &good, &check_err));
    return good;
}

static void a_checkpoint_of_another_program_reads_and_verifies(void)
{
    BAL_LOCAL(bal_note) note = { 0 };
    BAL_OWN(bal_key) key = pair();
    BAL_OWN(bal_key) other = NULL;
    char hex[65];

    CHECK_OK(read_text(&note, checkpoint));
    CHECK(!strcmp(note.origin, NAME) && note.head.size == 1);
    bal_sha256_hex(hex, &note.head.root);
    CHECK(!strcmp(hex, "d055148051c6b29b5cb9771e158ee04d"
                       "55c3c346f8e99cd60b2d2346dd68db53"));
    CHECK(note.text.len == strlen(NAME "\n1\n" ROOT "\n"));
    CHECK(verifies(&note, key));
    CHECK_OK(bal_key_generate(&other, &check_err));
    CHECK(!verifies(&note, other));
}

static void what_we_write_is_what_the_other_program_wrote(void)
{
    BAL_LOCAL(bal_note) note = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(bal_key) key = pair();

    CHECK_OK(read_text(&note, checkpoint));
    CHECK_OK(bal_note_write(&text, NAME, &note.head, key, &check_err));
    CHECK(!strcmp(text.data, checkpoint));
}

static void lines_that_extend_it_are_part_of_what_is_signed(void)
{
    BAL_LOCAL(bal_note) note = { 0 };
    BAL_LOCAL(bal_note) bent = { 0 };
    BAL_OWN(bal_key) key = pair();

    CHECK_OK(read_text(&note,
                       NAME "\n1\n" ROOT "\nmore of it\n\xc3\xa4\n\n" DASH NAME
                            " " SIG "\n"));
    CHECK(note.text.len ==
          strlen(NAME "\n1\n" ROOT "\nmore of it\n\xc3\xa4\n"));
    CHECK(!verifies(&note, key));
    CHECK_OK(read_text(&bent, NAME "\n2\n" ROOT "\n\n" DASH NAME " " SIG "\n"));
    CHECK(!verifies(&bent, key));
}

static void signatures_of_others_are_passed_over(void)
{
    BAL_LOCAL(bal_note) note = { 0 };
    BAL_LOCAL(bal_note) renamed = { 0 };
    BAL_OWN(bal_key) key = pair();

    CHECK_OK(read_text(&note, NAME "\n1\n" ROOT "\n\n" DASH
                                   "witness.example AAAAAAAA\n" DASH NAME
                                   " AAAAAAAA\n" DASH NAME
                                   " QpJ8RAAA\n" DASH NAME " " SIG "\n"));
    CHECK(verifies(&note, key));
    CHECK_OK(read_text(&renamed, NAME "\n1\n" ROOT "\n\n" DASH
                                      "ballast.example/acm " SIG "\n"));
    CHECK(!verifies(&renamed, key));
}

static void names_that_would_end_the_name_are_refused(void)
{
    static const char *const names[] = {
        "",
        "a b",
        "a+b",
        "a\nb",
        "a\tb",
        "a\x7f",
        "\xff",
        "a\xc2\xa0"
        "b",
        "a\xe3\x80\x80"
        "b",
        "a\xc2\x85",
    };
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(bal_key) key = pair();
    bal_merkle_head head = { .size = 1 };

    for (size_t i = 0; i < COUNT(names); i++) {
        check_row(names[i]);
        CHECK_RC(BAL_EINVAL,
                 bal_note_write(&text, names[i], &head, key, &check_err));
    }
    CHECK(text.len == 0);
}

static void only_a_pair_signs_a_checkpoint(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(bal_key) key = pair();
    BAL_OWN(bal_key) half = NULL;
    BAL_OWN(bal_key) secret = NULL;
    bal_merkle_head head = { .size = 1 };
    uint8_t raw[32];

    CHECK(bal_key_public_bytes(key, raw));
    CHECK_OK(bal_key_of_public(&half, raw, &check_err));
    CHECK_RC(BAL_EINVAL, bal_note_write(&text, "a", &head, half, &check_err));
    CHECK_OK(bal_key_of_secret(&secret, (bal_bytes){ "0123456789abcdef", 16 },
                               &check_err));
    CHECK_RC(BAL_EINVAL, bal_note_write(&text, "a", &head, secret, &check_err));
}

static void the_largest_size_goes_through(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_note) note = { 0 };
    BAL_OWN(bal_key) key = pair();
    bal_merkle_head head = { .size = UINT64_MAX };

    CHECK_OK(bal_note_write(&text, "a", &head, key, &check_err));
    CHECK_OK(read_text(&note, text.data));
    CHECK(note.head.size == UINT64_MAX && verifies(&note, key));
}

#define TAIL "\n\n" DASH "a AAAAAAAA\n"

static void what_is_no_checkpoint_is_corrupt(void)
{
    static const char *const texts[] = {
        "",
        "a",
        "\n\n",
        "a\n1\n" ROOT,
        "a\n1\n" ROOT "\n",
        "a\n1\n" ROOT "\n\n",
        "a\n1\n" ROOT "\n\n" DASH "a AAAAAAAA",
        "a\n1\n" ROOT "\n\n" DASH "a AAAAAAAA\n\n",
        "a\n1\n" ROOT "\n\n" DASH "a AAAA\n",
        "a\n1\n" ROOT "\n\n" DASH "a AAAAAAA\n",
        "a\n1\n" ROOT "\n\n" DASH "a\n",
        "a\n1\n" ROOT "\n\n" DASH " AAAAAAAA\n",
        "a\n1\n" ROOT "\n\n" DASH "a AAAA_AAA\n",
        "a\n1\n" ROOT "\n\n- a AAAAAAAA\n",
        "a\n1\n" ROOT "\nx\n\ny" TAIL,
        "\n1\n" ROOT TAIL,
        "a\n\n" ROOT TAIL,
        "a\n01\n" ROOT TAIL,
        "a\n+1\n" ROOT TAIL,
        "a\n-1\n" ROOT TAIL,
        "a\n 1\n" ROOT TAIL,
        "a\n18446744073709551616\n" ROOT TAIL,
        "a\n1\nAAAA" TAIL,
        "a\n1\n" ROOT ROOT TAIL,
        "a\n1\n-FUUgFHGsptcuXceFY7gTVXDw0b46ZzWCy0jRt1o21M=" TAIL,
        "a\r\n1\n" ROOT TAIL,
        "a\n1\n" ROOT "\n\xff" TAIL,
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        BAL_LOCAL(bal_note) note = { 0 };
        check_row(texts[i]);
        CHECK_RC(BAL_ECORRUPT, read_text(&note, texts[i]));
    }
}

static void a_note_has_64_kib_at_most(void)
{
    static char text[65536 + 2];
    BAL_LOCAL(bal_note) note = { 0 };
    size_t front = strlen("a\n1\n" ROOT "\n");
    size_t tail = strlen(TAIL);

    memset(text, 'x', sizeof(text));
    memcpy(text, "a\n1\n" ROOT "\n", front);
    memcpy(text + 65536 - tail, TAIL, tail);
    CHECK_OK(bal_note_read(&note, (bal_bytes){ text, 65536 }, &check_err));
    memset(text + front, 'x', sizeof(text) - front);
    memcpy(text + 65537 - tail, TAIL, tail);
    CHECK_RC(BAL_ECORRUPT,
             bal_note_read(&note, (bal_bytes){ text, 65537 }, &check_err));
}

static const check_test tests[] = {
    { TEST(a_checkpoint_of_another_program_reads_and_verifies) },
    { TEST(what_we_write_is_what_the_other_program_wrote) },
    { TEST(lines_that_extend_it_are_part_of_what_is_signed) },
    { TEST(signatures_of_others_are_passed_over) },
    { TEST(names_that_would_end_the_name_are_refused) },
    { TEST(only_a_pair_signs_a_checkpoint) },
    { TEST(the_largest_size_goes_through) },
    { TEST(what_is_no_checkpoint_is_corrupt) },
    { TEST(a_note_has_64_kib_at_most) },
};

CHECK_MAIN(tests)
