/* Which bucket, where and whose keys, as AWS's documentation has it ("Virtual
 * hosting of buckets", "Configuration and credential file settings"). */
#include <stdlib.h>
#include <string.h>

#include "blocks/s3_place.h"
#include "core/file.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const char *const names[] = {
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_PROFILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CA_BUNDLE",
    "AWS_MAX_ATTEMPTS",
    "HOME",
};

/* Nothing but these "NAME=value"s is set. */
static void set_environment(const char *const *set)
{
    for (size_t i = 0; i < COUNT(names); i++)
        unsetenv(names[i]);
    for (; set && *set; set++) {
        char name[64];
        size_t len = strcspn(*set, "=");
        snprintf(name, sizeof(name), "%.*s", (int)len, *set);
        setenv(name, *set + len + 1, 1);
    }
}

static int init(bal_s3_place *self, const char *rest)
{
    bal_s3_place_done(self);
    return bal_s3_place_init(self, rest, &check_err);
}

static bool same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static void a_bucket_has_its_place(void)
{
    static const struct {
        const char *rest;
        const char *set[3];
        const char *origin, *host, *path, *prefix, *text;
    } rows[] = {
        { "//buck",
          { NULL },
          "https://buck.s3.us-east-1.amazonaws.com",
          "buck.s3.us-east-1.amazonaws.com",
          "",
          "",
          "s3://buck" },
        { "//buck/a/b/",
          { "AWS_REGION=eu-west-3" },
          "https://buck.s3.eu-west-3.amazonaws.com",
          "buck.s3.eu-west-3.amazonaws.com",
          "",
          "a/b/",
          "s3://buck/a/b" },
        { "//my.buck/a",
          { "AWS_DEFAULT_REGION=cn-north-1" },
          "https://s3.cn-north-1.amazonaws.com.cn",
          "s3.cn-north-1.amazonaws.com.cn",
          "/my.buck",
          "a/",
          "s3://my.buck/a" },
        { "//buck",
          { "AWS_ENDPOINT_URL=http://127.0.0.1:9000" },
          "http://127.0.0.1:9000",
          "127.0.0.1:9000",
          "/buck",
          "",
          "s3://buck" },
        { "//buck/a",
          { "AWS_ENDPOINT_URL=http://other",
            "AWS_ENDPOINT_URL_S3=https://s3.example/base/" },
          "https://s3.example",
          "s3.example",
          "/base/buck",
          "a/",
          "s3://buck/a" },
    };
    BAL_LOCAL(bal_s3_place) place = { 0 };

    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(rows[i].rest);
        set_environment(rows[i].set);
        CHECK_OK(init(&place, rows[i].rest));
        CHECK(same(place.origin, rows[i].origin));
        CHECK(same(place.host, rows[i].host));
        CHECK(same(place.path, rows[i].path));
        CHECK(same(place.prefix, rows[i].prefix));
        CHECK(same(place.text, rows[i].text));
        CHECK(place.tls == !strncmp(place.origin, "https:", 6));
        CHECK(place.keys.access == NULL);
    }
}

static void what_is_no_bucket_is_refused_and_not_repeated(void)
{
    static const char *const rows[] = {
        "",
        "/",
        "//",
        "buck",
        "/buck",
        "//bu",
        "//Buck",
        "//-buck",
        "//.buck",
        "//bu..ck",
        "//buck_x",
        "//key:s3cr3t@buck",
        "//buck//a",
        "//buck/a//b",
        "//buck/./a",
        "//buck/../a",
        "//buck/.a",
        "//buck/a?s3cr3t",
        "//buck/a#s3cr3t",
        "//buck/s3cr3t@x",
        "//buck/a\nb",
        "//buck/\xff",
    };
    BAL_LOCAL(bal_s3_place) place = { 0 };

    set_environment(NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(rows[i]);
        CHECK_RC(BAL_EINVAL, init(&place, rows[i]));
        CHECK(!strstr(check_err.text, "s3cr3t"));
    }
}

static void what_the_environment_says_wrong_is_refused(void)
{
    static const struct {
        const char *set[4];
        int code;
    } rows[] = {
        { { "AWS_REGION=eu.west/3" }, BAL_EINVAL },
        { { "AWS_REGION=a-region-with-a-name-of-over-32-letters" },
          BAL_EINVAL },
        { { "AWS_ENDPOINT_URL=ftp://x" }, BAL_EINVAL },
        { { "AWS_ENDPOINT_URL=x" }, BAL_EINVAL },
        { { "AWS_ENDPOINT_URL=https://me:s3cr3t@x" }, BAL_EINVAL },
        { { "AWS_ENDPOINT_URL=https://x?y" }, BAL_EINVAL },
        { { "AWS_MAX_ATTEMPTS=0" }, BAL_EINVAL },
        { { "AWS_MAX_ATTEMPTS=many" }, BAL_EINVAL },
        { { "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=s3cr3t\nx" },
          BAL_EINVAL },
        { { "AWS_ACCESS_KEY_ID=a b", "AWS_SECRET_ACCESS_KEY=s3cr3t" },
          BAL_EINVAL },
        { { "AWS_PROFILE=nobody" }, BAL_ENOTFOUND },
        { { "AWS_CONFIG_FILE=/", "AWS_PROFILE=nobody" }, BAL_EINVAL },
    };
    BAL_LOCAL(bal_s3_place) place = { 0 };

    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(rows[i].set[0]);
        set_environment(rows[i].set);
        CHECK_RC(rows[i].code, init(&place, "//buck"));
        CHECK(!strstr(check_err.text, "s3cr3t"));
        CHECK(!strstr(check_err.hint, "s3cr3t"));
    }
}

/* ---- profiles ----------------------------------------------------------- */

static const char credentials[] = "# a comment\n"
                                  "[default]\r\n"
                                  "aws_access_key_id = DEFKEY\r\n"
                                  "aws_secret_access_key=def=secret+/\r\n"
                                  "\n"
                                  "[ other ]\n"
                                  "aws_access_key_id=OTHERKEY\n"
                                  "aws_secret_access_key = other-secret\n"
                                  "aws_session_token = tok==\n"
                                  "[half]\n"
                                  "aws_access_key_id = HALF\n";
static const char config[] = "[default]\n"
                             "region = eu-north-1\n"
                             "[profile other]\n"
                             "region = ap-south-1\n"
                             "endpoint_url = http://127.0.0.1:7\n"
                             "s3 =\n"
                             "  addressing_style = path\n"
                             "[other]\n"
                             "region = nowhere\n";

/* Both files in a home; "HOME=…" in out. */
static void write_home(char *out, size_t room)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/.aws", check_dir());
    CHECK_OK(bal_make_dirs(path, &check_err));
    snprintf(path, sizeof(path), "%s/.aws/credentials", check_dir());
    CHECK_OK(
        bal_file_replace(path, credentials, strlen(credentials), &check_err));
    snprintf(path, sizeof(path), "%s/.aws/config", check_dir());
    CHECK_OK(bal_file_replace(path, config, strlen(config), &check_err));
    snprintf(out, room, "HOME=%s", check_dir());
}

static void keys_are_the_environments_or_the_profiles(void)
{
    static const struct {
        const char *set[4];
        const char *access, *secret, *session, *region, *endpoint;
    } rows[] = {
        { { NULL }, "DEFKEY", "def=secret+/", NULL, "eu-north-1", NULL },
        { { "AWS_PROFILE=other" },
          "OTHERKEY",
          "other-secret",
          "tok==",
          "ap-south-1",
          "http://127.0.0.1:7" },
        { { "AWS_PROFILE=other", "AWS_REGION=us-west-2",
            "AWS_ENDPOINT_URL=http://127.0.0.1:8" },
          "OTHERKEY",
          "other-secret",
          "tok==",
          "us-west-2",
          "http://127.0.0.1:8" },
        { { "AWS_ACCESS_KEY_ID=ENV", "AWS_SECRET_ACCESS_KEY=env-secret",
            "AWS_PROFILE=other" },
          "ENV",
          "env-secret",
          NULL,
          "ap-south-1",
          "http://127.0.0.1:7" },
        { { "AWS_ACCESS_KEY_ID=ENV", "AWS_SECRET_ACCESS_KEY=env-secret",
            "AWS_SESSION_TOKEN=tok" },
          "ENV",
          "env-secret",
          "tok",
          "eu-north-1",
          NULL },
        { { "AWS_ACCESS_KEY_ID=ENV", "AWS_SECRET_ACCESS_KEY=" },
          "DEFKEY",
          "def=secret+/",
          NULL,
          "eu-north-1",
          NULL },
        { { "AWS_PROFILE=half" }, NULL, NULL, NULL, "us-east-1", NULL },
    };
    BAL_LOCAL(bal_s3_place) place = { 0 };
    char home[256];

    write_home(home, sizeof(home));
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *set[5] = { home };
        memcpy(set + 1, rows[i].set, sizeof(rows[i].set));
        check_row(rows[i].set[0] ? rows[i].set[0] : "none");
        set_environment(set);
        CHECK_OK(init(&place, "//buck"));
        CHECK(same(place.keys.access, rows[i].access));
        CHECK(same(place.keys.secret, rows[i].secret));
        CHECK(same(place.keys.session, rows[i].session));
        CHECK(same(place.region, rows[i].region));
        CHECK(same(place.endpoint, rows[i].endpoint));
    }
}

static void a_file_that_makes_no_sense_is_told_by_its_line(void)
{
    static const struct {
        const char *text;
        const char *line;
    } rows[] = {
        { "[default]\ns3cr3t\n", "line 2 " },
        { "s3cr3t", "line 1 " },
        { "\n\n[s3cr3t\n", "line 3 " },
        { "[", "line 1 " },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        bal_s3_profile profile = { 0 };
        BAL_LOCAL(bal_arena) arena = { 0 };
        bool found = false;
        const bal_bytes text = { rows[i].text, strlen(rows[i].text) };
        check_row(rows[i].text);
        CHECK_RC(BAL_ECORRUPT,
                 bal_s3_profile_read(&profile, &found, &arena, text, "default",
                                     BAL_S3_CONFIG, &check_err));
        CHECK(strstr(check_err.text, rows[i].line) != NULL);
        CHECK(!strstr(check_err.text, "s3cr3t"));
    }
}

static const check_test tests[] = {
    { TEST(a_bucket_has_its_place) },
    { TEST(what_is_no_bucket_is_refused_and_not_repeated) },
    { TEST(what_the_environment_says_wrong_is_refused) },
    { TEST(keys_are_the_environments_or_the_profiles) },
    { TEST(a_file_that_makes_no_sense_is_told_by_its_line) },
};

CHECK_MAIN(tests)
