/* DSSE: the specification's example, an envelope whose signature openssl made
 * and checked, and what is no envelope. */
#include <string.h>

#include "core/dsse.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* The key of RFC 8032, 7.1, test 1, as openssl writes it. */
static const char pair_pem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";
static const char half_pem[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
    "-----END PUBLIC KEY-----\n";

static const char type[] = "application/vnd.in-toto+json";
static const char statement[] =
    "{\"_type\":\"https://in-toto.io/Statement/v1\",\"predicate\":{\"blocks\":{"
    "\"bytes\":4096,\"count\":2},\"reason\":\"erasure request 17\",\"tenant\":"
    "\"acme\"},\"predicateType\":\"https://ballast.example/deletion/v1\","
    "\"subject\":[{\"digest\":{\"sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427a"
    "e41e4649b934ca495991b7852b855\"},\"name\":\"commit:acme/main\"}]}";
/* By openssl pkeyutl. */
static const char signature[] =
    "TR8xqjf33UtF+d4Fc4uV/7n26bT7C0xXV0NLBz8UUzZq/JNdxqEhHJB+Xsy1wrO9Ok8hR58zo"
    "heEx7I7v9QjCg==";

static const bal_bytes payload = { statement, sizeof(statement) - 1 };

static bal_key *key_of(const char *pem)
{
    bal_key *key = NULL;

    CHECK_OK(bal_key_parse(&key, (bal_bytes){ pem, strlen(pem) }, "the test",
                           &check_err));
    return key;
}

static int read_text(bal_dsse *out, const char *text)
{
    return bal_dsse_read(out, (bal_bytes){ text, strlen(text) }, &check_err);
}

static bool verifies(const bal_dsse *envelope, const bal_key *key)
{
    bool good = false;

    CHECK_OK(bal_dsse_verify(envelope, key, &good, &check_err));
    return good;
}

static void the_encoding_is_that_of_the_specification(void)
{
    BAL_LOCAL(bal_buf) pae = { 0 };

    CHECK_OK(bal_dsse_pae(&pae, "http://example.com/HelloWorld",
                          (bal_bytes){ "hello world", 11 }, &check_err));
    CHECK(!strcmp(pae.data,
                  "DSSEv1 29 http://example.com/HelloWorld 11 hello world"));
    bal_buf_clear(&pae);
    CHECK_OK(bal_dsse_pae(&pae, "", (bal_bytes){ NULL, 0 }, &check_err));
    CHECK(!strcmp(pae.data, "DSSEv1 0  0 "));
}

static void an_envelope_carries_the_signature_that_openssl_makes(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(bal_key) pair = key_of(pair_pem);

    CHECK_OK(bal_dsse_write(&text, type, payload, pair, &check_err));
    CHECK(strstr(text.data, signature) != NULL);
    CHECK(!strncmp(text.data, "{\"payload\":\"eyJfdHlwZSI6", 23));
    char *behind = strstr(text.data, "\",\"payloadType\":");
    CHECK(behind != NULL);
    CHECK(!strncmp(behind,
                   "\",\"payloadType\":\"application/vnd.in-toto+json\","
                   "\"signatures\":[{\"keyid\":\"06e3fd8fda29bb60ab59557de61edb"
                   "0aecdb231134be30e75b455f8e1b792fa9\",\"sig\":\"TR8xqjf3",
                   120));
}

static void what_was_written_reads_back_and_verifies(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_dsse) back = { 0 };
    BAL_OWN(bal_key) pair = key_of(pair_pem);
    BAL_OWN(bal_key) half = key_of(half_pem);

    CHECK_OK(bal_dsse_write(&text, type, payload, pair, &check_err));
    CHECK_OK(read_text(&back, text.data));
    CHECK(!strcmp(back.type, type));
    CHECK(back.payload.len == payload.len);
    CHECK(!memcmp(back.payload.data, statement, payload.len));
    CHECK(back.count == 1 && back.signatures[0].bytes.len == 64);
    CHECK(!strcmp(back.signatures[0].keyid, bal_key_id(half)));
    CHECK(verifies(&back, half));
}

static void nobody_signs_without_a_key(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_dsse) back = { 0 };
    BAL_OWN(bal_key) half = key_of(half_pem);

    CHECK_OK(
        bal_dsse_write(&text, "t", (bal_bytes){ "x", 1 }, NULL, &check_err));
    CHECK(!strcmp(text.data, "{\"payload\":\"eA==\",\"payloadType\":\"t\","
                             "\"signatures\":[]}"));
    CHECK_OK(read_text(&back, text.data));
    CHECK(back.count == 0 && !verifies(&back, half));
    bal_buf_clear(&text);
    CHECK_RC(BAL_EINVAL, bal_dsse_write(&text, "t", payload, half, &check_err));
}

static void what_is_changed_does_not_verify(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(bal_key) pair = key_of(pair_pem);
    BAL_OWN(bal_key) other = NULL;
    BAL_LOCAL(bal_dsse) back = { 0 };

    CHECK_OK(bal_key_generate(&other, &check_err));
    CHECK_OK(bal_dsse_write(&text, type, payload, pair, &check_err));
    CHECK_OK(read_text(&back, text.data));
    CHECK(!verifies(&back, other));
    back.type = "application/vnd.in-toto+jsoN";
    CHECK(!verifies(&back, pair));
    back.type = type;
    back.payload.len--;
    CHECK(!verifies(&back, pair));
    back.payload.len++;
    back.signatures[0].bytes.len--;
    CHECK(!verifies(&back, pair));
    back.signatures[0].bytes.len++;
    CHECK(verifies(&back, pair));
}

static void a_wrong_keyid_changes_nothing(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_dsse) back = { 0 };
    BAL_OWN(bal_key) half = key_of(half_pem);

    CHECK_OK(bal_buf_format(
        &text, &check_err,
        " {\"x\":[{}], \"signatures\":[{\"sig\":\"AAAA\",\"keyid\":\"06e3fd\"},"
        "{\"sig\":\"%s\",\"cert\":null}],\"payloadType\":\"http:\\/\\/t\","
        "\"payload\":\"\"}\n",
        signature));
    CHECK_OK(read_text(&back, text.data));
    CHECK(back.count == 2 && !strcmp(back.signatures[1].keyid, ""));
    CHECK(!strcmp(back.type, "http://t") && back.payload.len == 0);
    CHECK(!verifies(&back, half));
    back.type = type;
    back.payload = payload;
    CHECK(verifies(&back, half));
}

static void a_shared_secret_does_not_pass_for_a_pair(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_dsse) back = { 0 };
    BAL_OWN(bal_key) half = key_of(half_pem);
    uint8_t raw[32];

    /* The public half as a secret: what anybody could make. */
    CHECK(bal_key_public_bytes(half, raw));
    CHECK_OK(bal_dsse_write(&text, type, payload, NULL, &check_err));
    CHECK_OK(read_text(&back, text.data));
    back.count = 1;
    back.signatures[0].bytes = (bal_bytes){ raw, sizeof(raw) };
    back.signatures[0].keyid = bal_key_id(half);
    CHECK(!verifies(&back, half));
}

#define P "\"payload\":\"eA==\""
#define T "\"payloadType\":\"t\""
#define S "\"signatures\":[]"

static void what_is_no_envelope_is_corrupt(void)
{
    static const char *const texts[] = {
        "",
        "null",
        "[]",
        "{}",
        "{" P "," T "}",
        "{" P "," S "}",
        "{" T "," S "}",
        "{" P "," T "," S "} x",
        "{" P "," T "," S,
        "{" P "," T "," S "," P "}",
        "{" P "," T "," S "," S "}",
        "{" P "," T "," T "," S "}",
        "{" P "," T ",\"signatures\":{}}",
        "{" P "," T ",\"signatures\":[{}]}",
        "{" P "," T ",\"signatures\":[{\"keyid\":\"a\"}]}",
        "{" P "," T ",\"signatures\":[{\"sig\":\"AAAA\",\"sig\":\"AAAA\"}]}",
        "{" P "," T ",\"signatures\":[{\"sig\":\"AAA\"}]}",
        "{" P "," T ",\"signatures\":[{\"sig\":null}]}",
        "{" P ",\"payloadType\":\"t\\u0000\"," S "}",
        "{" P ",\"payloadType\":7," S "}",
        "{\"payload\":\"eA=\"," T "," S "}",
        "{\"payload\":\"eB==\"," T "," S "}",
        "{\"payload\":\"eA==\\n\"," T "," S "}",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        BAL_LOCAL(bal_dsse) back = { 0 };
        check_row(texts[i]);
        CHECK_RC(BAL_ECORRUPT, read_text(&back, texts[i]));
    }
}

static void sixteen_signatures_are_read_and_no_more(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_dsse) back = { 0 };

    CHECK_OK(bal_buf_text(&text, "{" P "," T ",\"signatures\":[{\"sig\":\"\"}",
                          &check_err));
    for (size_t i = 1; i < BAL_DSSE_SIGNATURES; i++)
        CHECK_OK(bal_buf_text(&text, ",{\"sig\":\"\"}", &check_err));
    size_t len = text.len;
    CHECK_OK(bal_buf_text(&text, "]}", &check_err));
    CHECK_OK(read_text(&back, text.data));
    CHECK(back.count == BAL_DSSE_SIGNATURES);
    bal_dsse_done(&back);
    text.len = len;
    CHECK_OK(bal_buf_text(&text, ",{\"sig\":\"\"}]}", &check_err));
    CHECK_RC(BAL_ECORRUPT, read_text(&back, text.data));
}

static const check_test tests[] = {
    { TEST(the_encoding_is_that_of_the_specification) },
    { TEST(an_envelope_carries_the_signature_that_openssl_makes) },
    { TEST(what_was_written_reads_back_and_verifies) },
    { TEST(nobody_signs_without_a_key) },
    { TEST(what_is_changed_does_not_verify) },
    { TEST(a_wrong_keyid_changes_nothing) },
    { TEST(a_shared_secret_does_not_pass_for_a_pair) },
    { TEST(what_is_no_envelope_is_corrupt) },
    { TEST(sixteen_signatures_are_read_and_no_more) },
};

CHECK_MAIN(tests)
