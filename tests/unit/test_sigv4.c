/* Signatures against those that AWS publishes for S3 ("Signature Calculations
 * for the Authorization Header", Amazon S3 API reference). */
#include <string.h>

#include "core/sigv4.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define EMPTY       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static const bal_sigv4_keys keys = {
    .access = "AKIAIOSFODNN7EXAMPLE",
    .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};

/* 2013-05-24T00:00:00Z. */
static const bal_sigv4_scope scope = { "us-east-1", "s3",
                                       INT64_C(1369353600000000000) };

#define HOST                                                                   \
    {                                                                          \
        "host", "examplebucket.s3.amazonaws.com"                               \
    }
#define DATE                                                                   \
    {                                                                          \
        "x-amz-date", "20130524T000000Z"                                       \
    }

static const struct {
    const char *name;
    bal_sigv4_request request;
    const char *signed_headers;
    const char *signature;
} examples[] = {
    { "GET object",
      { "GET", "/test.txt", NULL, 0,
        (const bal_sigv4_pair[]){ HOST,
                                  { "range", "bytes=0-9" },
                                  { "x-amz-content-sha256", EMPTY },
                                  DATE },
        4, EMPTY },
      "host;range;x-amz-content-sha256;x-amz-date",
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41" },
    { "PUT object",
      { "PUT", "/test%24file.text", NULL, 0,
        (const bal_sigv4_pair[]){
            DATE,
            { "x-amz-storage-class", "REDUCED_REDUNDANCY" },
            HOST,
            { "x-amz-content-sha256",
              "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b0"
              "72" },
            { "date", "Fri, 24 May 2013 00:00:00 GMT" } },
        5, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072" },
      "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd" },
    { "GET bucket lifecycle",
      { "GET", "/", (const bal_sigv4_pair[]){ { "lifecycle", "" } }, 1,
        (const bal_sigv4_pair[]){
            HOST, DATE, { "x-amz-content-sha256", EMPTY } },
        3, EMPTY },
      "host;x-amz-content-sha256;x-amz-date",
      "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543" },
    { "GET bucket, list objects",
      { "GET", "/",
        (const bal_sigv4_pair[]){ { "prefix", "J" }, { "max-keys", "2" } }, 2,
        (const bal_sigv4_pair[]){
            HOST, DATE, { "x-amz-content-sha256", EMPTY } },
        3, EMPTY },
      "host;x-amz-content-sha256;x-amz-date",
      "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7" },
};

static void signatures_are_those_that_aws_publishes(void)
{
    for (size_t i = 0; i < COUNT(examples); i++) {
        BAL_LOCAL(bal_buf) value = { 0 };
        BAL_LOCAL(bal_buf) want = { 0 };
        check_row(examples[i].name);
        CHECK_OK(bal_sigv4_sign(&value, &keys, &scope, &examples[i].request,
                                &check_err));
        CHECK_OK(bal_buf_format(&want, &check_err,
                                "AWS4-HMAC-SHA256 Credential="
                                "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
                                "aws4_request,SignedHeaders=%s,Signature=%s",
                                examples[i].signed_headers,
                                examples[i].signature));
        CHECK(!strcmp(bal_buf_string(&value), bal_buf_string(&want)));
    }
}

static void dates_are_in_utc_and_without_fractions(void)
{
    char date[17];

    bal_sigv4_date(date, INT64_C(1369353600000000000));
    CHECK(!strcmp(date, "20130524T000000Z"));
    bal_sigv4_date(date, INT64_C(1709251199999999999));
    CHECK(!strcmp(date, "20240229T235959Z"));
}

/* By RFC 3986, section 2.3. */
static void names_are_encoded_but_for_what_is_unreserved(void)
{
    static const struct {
        const char *text;
        const char *path;
        const char *query;
    } rows[] = {
        { "", "", "" },
        { "azAZ09-._~", "azAZ09-._~", "azAZ09-._~" },
        { "a/b", "a/b", "a%2Fb" },
        { "a b+c", "a%20b%2Bc", "a%20b%2Bc" },
        { "=:'()@,!$&*;?#[]%",
          "%3D%3A%27%28%29%40%2C%21%24%26%2A%3B%3F%23%5B"
          "%5D%25",
          "%3D%3A%27%28%29%40%2C%21%24%26%2A%3B%3F%23%5B%5D%25" },
        { "%2B", "%252B", "%252B" },
        { "\xc3\xa9\n\x7f\xff", "%C3%A9%0A%7F%FF", "%C3%A9%0A%7F%FF" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_buf) path = { 0 };
        BAL_LOCAL(bal_buf) query = { 0 };
        check_row(rows[i].text);
        CHECK_OK(
            bal_sigv4_encode(&path, rows[i].text, BAL_SIGV4_SLASH, &check_err));
        CHECK_OK(bal_sigv4_encode(&query, rows[i].text, 0, &check_err));
        CHECK(!strcmp(bal_buf_string(&path), rows[i].path));
        CHECK(!strcmp(bal_buf_string(&query), rows[i].query));
    }
}

/* "a-b" is behind "a" although '-' is before '='. */
static void a_query_is_in_the_order_of_its_encoded_names(void)
{
    static const bal_sigv4_pair pairs[] = {
        { "b", "2" },  { "a-b", "x" }, { "a", "\xc3\xa9" },
        { "a", "/z" }, { "A", "" },    { "\xc3\xa9", "1" },
    };
    BAL_LOCAL(bal_buf) query = { 0 };

    CHECK_OK(bal_sigv4_query(&query, pairs, COUNT(pairs), &check_err));
    CHECK(!strcmp(query.data, "%C3%A9=1&A=&a=%2Fz&a=%C3%A9&a-b=x&b=2"));
    BAL_LOCAL(bal_buf) none = { 0 };
    CHECK_OK(bal_sigv4_query(&none, NULL, 0, &check_err));
    CHECK(none.len == 0);
}

/* The names' order and spaces in values are nothing that is signed. */
static void headers_are_signed_in_one_form(void)
{
    static const bal_sigv4_pair forms[][2] = {
        { { "host", "h" }, { "x-amz-meta-a", "b c" } },
        { { "x-amz-meta-a", "  b   c " }, { "host", "h" } },
    };
    BAL_LOCAL(bal_buf) first = { 0 };
    BAL_LOCAL(bal_buf) second = { 0 };
    bal_sigv4_request request = {
        .method = "GET", .path = "/", .header_count = 2, .payload = EMPTY
    };

    request.headers = forms[0];
    CHECK_OK(bal_sigv4_sign(&first, &keys, &scope, &request, &check_err));
    request.headers = forms[1];
    CHECK_OK(bal_sigv4_sign(&second, &keys, &scope, &request, &check_err));
    CHECK(!strcmp(first.data, second.data));
}

/* Each of these is in the signature. */
static void whatever_is_changed_changes_the_signature(void)
{
    static const bal_sigv4_pair headers[] = { { "host", "h" } };
    static const bal_sigv4_pair others[] = { { "host", "i" } };
    static const bal_sigv4_pair query[] = { { "a", "b" } };
    static const bal_sigv4_request rows[] = {
        { "GET", "/a", NULL, 0, headers, 1, EMPTY },
        { "PUT", "/a", NULL, 0, headers, 1, EMPTY },
        { "GET", "/b", NULL, 0, headers, 1, EMPTY },
        { "GET", "/a", query, 1, headers, 1, EMPTY },
        { "GET", "/a", NULL, 0, others, 1, EMPTY },
        { "GET", "/a", NULL, 0, headers, 1, BAL_SIGV4_UNSIGNED },
    };
    bal_buf made[COUNT(rows)] = { { 0 } };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CHECK_OK(bal_sigv4_sign(&made[i], &keys, &scope, &rows[i], &check_err));
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(made[i].data, made[j].data) != 0);
    }
    for (size_t i = 0; i < COUNT(rows); i++) {
        CHECK(!strstr(made[i].data, keys.secret));
        bal_buf_done(&made[i]);
    }
}

static void more_than_there_is_room_for_is_refused(void)
{
    bal_sigv4_pair pairs[BAL_SIGV4_PAIRS_MAX + 1];
    BAL_LOCAL(bal_buf) to = { 0 };
    bal_sigv4_request request = { "GET", "/",          NULL, 0,
                                  pairs, COUNT(pairs), EMPTY };

    for (size_t i = 0; i < COUNT(pairs); i++)
        pairs[i] = (bal_sigv4_pair){ "a", "b" };
    CHECK_RC(BAL_EINVAL, bal_sigv4_query(&to, pairs, COUNT(pairs), &check_err));
    CHECK_RC(BAL_EINVAL,
             bal_sigv4_sign(&to, &keys, &scope, &request, &check_err));
}

static const check_test tests[] = {
    { TEST(signatures_are_those_that_aws_publishes) },
    { TEST(dates_are_in_utc_and_without_fractions) },
    { TEST(names_are_encoded_but_for_what_is_unreserved) },
    { TEST(a_query_is_in_the_order_of_its_encoded_names) },
    { TEST(headers_are_signed_in_one_form) },
    { TEST(whatever_is_changed_changes_the_signature) },
    { TEST(more_than_there_is_room_for_is_refused) },
};

CHECK_MAIN(tests)
