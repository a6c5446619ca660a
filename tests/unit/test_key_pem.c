/* Keys as PEM: those of RFC 8410, and what openssl makes of other algorithms.
 */
#include <string.h>

#include "core/key_inside.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

#define PEM(label, body)                                                       \
    "-----BEGIN " label "-----\n" body "\n-----END " label "-----\n"

/* RFC 8410, 10.1 and 10.3: the public half, version 1, version 2 with an
 * attribute and the public half behind. */
static const char rfc_half[] =
    PEM("PUBLIC KEY",
        "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=");
static const char rfc_pair[] =
    PEM("PRIVATE KEY",
        "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC");
static const char rfc_both[] =
    PEM("PRIVATE KEY",
        "MHICAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
        "oB8wHQYKKoZIhvcNAQkJFDEPDA1DdXJkbGUgQ2hhaXJzgSEAGb9ECWmEzf6FQbrB\n"
        "Z9w7lshQhqowtrbLDFw4rXAxZuE=");

static int parse(bal_key **out, const char *pem)
{
    return bal_key_parse(out, (bal_bytes){ pem, strlen(pem) }, "k", &check_err);
}

static void the_keys_of_rfc_8410_are_one(void)
{
    static const char *const pems[] = { rfc_pair, rfc_both };

    for (size_t i = 0; i < COUNT(pems); i++) {
        BAL_OWN(bal_key) key = NULL;
        char pem[BAL_PEM_ROOM];

        check_row(pems[i]);
        CHECK_OK(parse(&key, pems[i]));
        CHECK(bal_key_signs(key));
        CHECK(!strcmp(bal_key_public(key), rfc_half));
        CHECK_OK(bal_key_private(key, pem, &check_err));
        CHECK(!strcmp(pem, rfc_pair));
    }
}

static void a_public_half_reads_back_as_itself(void)
{
    BAL_OWN(bal_key) key = NULL;

    CHECK_OK(parse(&key, rfc_half));
    CHECK(!bal_key_signs(key));
    CHECK(!strcmp(bal_key_public(key), rfc_half));
    /* openssl pkey -pubin -outform DER | sha256sum */
    CHECK(!strcmp(
        bal_key_id(key),
        "a1e9156054e04fac899ae9f275132cdc07a5dbc4ea2c2ad3a1ffc6e0d253681f"));
}

/* A text, and what must be said of it. */
static const struct {
    const char *pem;
    const char *says;
} refused[] = {
    { "-----BEGIN PRIVATE KEY-----\n"
      "MIIBVAIBADANBgkqhkiG9w0BAQEFAASCAT4wggE6AgEAAkEAzyUtoMOdrImok+3z\n"
      "+yggathajY6pyQWUZi5JgaJ9V2rtnLaLqGQUer8ejVucZlF8pWjd5nxGkHuyl9aW\n"
      "8us26QIDAQABAkEAxTLJi0BufHDYcWuYV0NOCSlKm3RzIhITwmrSQ30jAfHrBP8j\n"
      "3DZaHVTMDA97zVNzJc4rxAzywIb07KtbANG5uQIhAP47edfzIJbYzvs0n6gLfjYc\n"
      "V2KKy/qyLfGNr3aNeZnHAiEA0JXjla7vg0vbXr/iBlcJeAxGlE4J1WTj/d4KxDRR\n"
      "Kc8CIGPvuUu8VNk3TNXOr9v8+JYIugkQinJ3zDuh+JFft6dNAiADki1dSKttEgVl\n"
      "b9+MwDy3Q26J53QfpSSKGh0REtw43QIgMWqnxmyejqjwYpvOFGIj5RbzfhfQd850\n"
      "VDsuZ8C3a68=\n"
      "-----END PRIVATE KEY-----\n",
      "'k' holds an RSA key, not an Ed25519 one" },
    { "-----BEGIN PUBLIC KEY-----\n"
      "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAM8lLaDDnayJqJPt8/soIGrYWo2OqckF\n"
      "lGYuSYGifVdq7Zy2i6hkFHq/Ho1bnGZRfKVo3eZ8RpB7spfWlvLrNukCAwEAAQ==\n"
      "-----END PUBLIC KEY-----\n",
      "'k' holds an RSA key" },
    { "-----BEGIN RSA PRIVATE KEY-----\n"
      "MIIBOgIBAAJBAM8lLaDDnayJqJPt8/soIGrYWo2OqckFlGYuSYGifVdq7Zy2i6hk\n"
      "FHq/Ho1bnGZRfKVo3eZ8RpB7spfWlvLrNukCAwEAAQJBAMUyyYtAbnxw2HFrmFdD\n"
      "TgkpSpt0cyISE8Jq0kN9IwHx6wT/I9w2Wh1UzAwPe81TcyXOK8QM8sCG9OyrWwDR\n"
      "ubkCIQD+O3nX8yCW2M77NJ+oC342HFdiisv6si3xja92jXmZxwIhANCV45Wu74NL\n"
      "216/4gZXCXgMRpROCdVk4/3eCsQ0USnPAiBj77lLvFTZN0zVzq/b/PiWCLoJEIpy\n"
      "d8w7ofiRX7enTQIgA5ItXUirbRIFZW/fjMA8t0Nuied0H6UkihodERLcON0CIDFq\n"
      "p8Zsno6o8GKbzhRiI+UW834X0HfOdFQ7LmfAt2uv\n"
      "-----END RSA PRIVATE KEY-----\n",
      "'k' holds an RSA key" },
    { "-----BEGIN RSA PRIVATE KEY-----\n"
      "Proc-Type: 4,ENCRYPTED\n"
      "DEK-Info: AES-128-CBC,609CF9E3A37023C35D189C5A5A34C0AA\n"
      "\n"
      "uv98Ay1aJ4/MwRc2965fnECtJk8LfJwQzI2oEDZIrPGRNOuTdyJTBKMR3zhXqSNe\n"
      "YOxzEvWrfa1UoFH0MwVoMpIaS1KtYz1CMUe1SD/zQ5A89CmAzPRqp1MEFAda5EK4\n"
      "n00UTZFODYrkAqnFX4PAPIVzVw9d8UicC3iBWNsPPFRYiya6f6yexPifg5kPtI3l\n"
      "8bnNdGdB6wfOql3f3XeEnibiKU1wUZ+ZRqMUyqzRv/pl7aiZeQQChnEqjmB9hM9n\n"
      "yfHo+LEt+V+X7hctkiB6vevuqLYDJokPgmRq8a2wN0Eso+uX7LvDY/zVLbStKxS7\n"
      "DSz8C3JRs3CusUt4DVSympEYIy2PVc7Lb9yXsDExL23Eh34X2vstpMyJadWBM6jZ\n"
      "B5BAS110097QN+opuOPcMnuY82yaHLt/Ew3dEbTzgAc=\n"
      "-----END RSA PRIVATE KEY-----\n",
      "the key in 'k' is encrypted" },
    { "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
      "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjj8HlYqiWcuAICCAAw\n"
      "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEF8udpcoGErgdcm/QfU3gH4EQIcT\n"
      "JTmosYmjEDz3soq3v1B3XZ3/aL7kWCBLxaiCkifkiSB1t3oj+6hXrGGj8/1kCkxn\n"
      "3+wfeQoQM1MVDTwKRUM=\n"
      "-----END ENCRYPTED PRIVATE KEY-----\n",
      "the key in 'k' is encrypted" },
    { "-----BEGIN PRIVATE KEY-----\n"
      "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg3KGWOqgH9ABblSxV\n"
      "QHV0MJz5Fu0fV1edFXcaG5u5F52hRANCAARrhyC4+9xEdeHQSm4hxCTR8WWpogzW\n"
      "Yq3+11guwcAgXtuJSIJWvjXbxJ0gx3BC9HKrWA+mWplTeMJeEeU1R1gC\n"
      "-----END PRIVATE KEY-----\n",
      "'k' holds a P-256 key" },
    { "-----BEGIN PUBLIC KEY-----\n"
      "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEa4cguPvcRHXh0EpuIcQk0fFlqaIM\n"
      "1mKt/tdYLsHAIF7biUiCVr4128SdIMdwQvRyq1gPplqZU3jCXhHlNUdYAg==\n"
      "-----END PUBLIC KEY-----\n",
      "'k' holds a P-256 key" },
    { "-----BEGIN EC PRIVATE KEY-----\n"
      "MHcCAQEEINyhljqoB/QAW5UsVUB1dDCc+RbtH1dXnRV3GhubuRedoAoGCCqGSM49\n"
      "AwEHoUQDQgAEa4cguPvcRHXh0EpuIcQk0fFlqaIM1mKt/tdYLsHAIF7biUiCVr41\n"
      "28SdIMdwQvRyq1gPplqZU3jCXhHlNUdYAg==\n"
      "-----END EC PRIVATE KEY-----\n",
      "'k' holds a P-256 key" },
    { "-----BEGIN EC PARAMETERS-----\n"
      "BggqhkjOPQMBBw==\n"
      "-----END EC PARAMETERS-----\n"
      "-----BEGIN EC PRIVATE KEY-----\n"
      "MHcCAQEEIKlNVihM9d8rWtI7ZxNc0y8LVE3kCXYuYQjsH3MERjX9oAoGCCqGSM49\n"
      "AwEHoUQDQgAEZQwgh1Kocvw2n7G0HMDQB8yznHFYqUESe6In2eXP2Q0kzGHZ87Gc\n"
      "waDuTm7wjbIdgwJPSH5dCIcDMFGgX3E/YQ==\n"
      "-----END EC PRIVATE KEY-----\n",
      "'k' holds a P-256 key" },
    { "-----BEGIN PRIVATE KEY-----\n"
      "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDC2PWN+QAgwGvPhJBtk\n"
      "QiZXyF0kW0ApsbvF+jFeg7jgckcNZosych5N7OY/8+qgqKGhZANiAATUiDTxLB7f\n"
      "nBbxZ0wOWqM6Df3Te5Jc+Q9fhH0VD4RK4dcdUlXqBF2X5nGwFfiICl88/Rdg9b+k\n"
      "1njtO6sY5HLWWPtY0A15X4zuC3tlD4tBTr8NBPn0t/CCvL6lEFE+8jw=\n"
      "-----END PRIVATE KEY-----\n",
      "'k' holds a P-384 key" },
    { "-----BEGIN PRIVATE KEY-----\n"
      "MC4CAQAwBQYDK2VuBCIEIMBWGsk0LS+0Mwprs3hKKMQP6Sr+kUWXC/gCiIOrFTNf\n"
      "-----END PRIVATE KEY-----\n",
      "'k' holds an X25519 key" },
    { "-----BEGIN PRIVATE KEY-----\n"
      "MEcCAQAwBQYDK2VxBDsEOW0f29s2qc1llbs3Hx8bmAJ3t4he8Qr7XZP59Q/W7mBx\n"
      "6ifsM7lEB+0OgiVnBPef33HHfYDHTCoh3Q==\n"
      "-----END PRIVATE KEY-----\n",
      "'k' holds an Ed448 key" },

    { "", "'k' is not a PEM key" },
    { "hello\n", "'k' is not a PEM key" },
    { "-----BEGIN PRIVATE KEY-----\n", "'k' is not a PEM key" },
    { PEM("PRIVATE KEY", "****"), "'k' is not a PEM key" },
    { PEM("CERTIFICATE", "MAA="), "'k' holds a 'CERTIFICATE', not a key" },
    { PEM("OPENSSH PRIVATE KEY", "b3BlbnNzaC1rZXktdjEA"), "an OpenSSH key" },
    { PEM("DSA PRIVATE KEY", "MAA="), "'k' holds a DSA key" },
    { PEM("PRIVATE KEY", "MAA="), "'k' holds a damaged key" },
    { PEM("PUBLIC KEY", "MAA="), "'k' holds a damaged key" },
    { PEM("PUBLIC KEY", "MIAwBQYDK2VwAyEAGb9ECWmEzf6FQbrB"),
      "'k' holds a damaged key" },
    { PEM("PUBLIC KEY", "MA8wCwYJKgMEBQYHCAkKAwA="), "holds some other key" },
    /* The last byte is missing, or one too many is there. */
    { PEM("PUBLIC KEY",
          "MCkwBQYDK2VwAyAAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZg=="),
      "'k' holds a damaged key" },
    { PEM("PUBLIC KEY",
          "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuEA"),
      "'k' holds a damaged key" },
    /* Bits that are no whole bytes. */
    { PEM("PUBLIC KEY",
          "MCowBQYDK2VwAyEBGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="),
      "'k' holds a damaged key" },
    /* Version 2 of RFC 8410 with one bit of the public half turned. */
    { PEM("PRIVATE KEY",
          "MHICAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
          "oB8wHQYKKoZIhvcNAQkJFDEPDA1DdXJkbGUgQ2hhaXJzgSEAGb9ECWmEzf6FQbrB\n"
          "Z9w7lshQhqowtrbLDFw4rXAxZuA="),
      "the halves of the key in 'k' are not of one pair" },
};

static void what_is_not_an_ed25519_key_is_named(void)
{
    for (size_t i = 0; i < COUNT(refused); i++) {
        BAL_OWN(bal_key) key = NULL;

        check_row(refused[i].says);
        CHECK_RC(BAL_EINVAL, parse(&key, refused[i].pem));
        CHECK(!key);
        if (!strstr(check_err.text, refused[i].says))
            print_error("got %s\n", check_err.text);
        CHECK(strstr(check_err.text, refused[i].says) != NULL);
    }
}

static const check_test tests[] = {
    { TEST(the_keys_of_rfc_8410_are_one) },
    { TEST(a_public_half_reads_back_as_itself) },
    { TEST(what_is_not_an_ed25519_key_is_named) },
};

CHECK_MAIN(tests)
