/* Keys in files and in the environment: who may read them, what is refused, and
 * that no message repeats a secret. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/key.h"
#include "support/check.h"
#include "support/files.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

#define PEM(label, body)                                                       \
    "-----BEGIN " label "-----\n" body "\n-----END " label "-----\n"

/* RFC 8410, 10.1 and 10.3. */
static const char rfc_half[] =
    PEM("PUBLIC KEY",
        "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=");
static const char rfc_pair[] =
    PEM("PRIVATE KEY",
        "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC");

static void a_pair_is_written_for_its_owner_alone(void)
{
    const char *path = file_path("written.pem");
    BAL_OWN(bal_key) key = NULL;
    BAL_OWN(bal_key) back = NULL;
    struct stat info;

    CHECK_OK(bal_key_generate(&key, &check_err));
    mode_t before = umask(0277);
    CHECK_OK(bal_key_write(key, path, &check_err));
    umask(before);
    CHECK(!stat(path, &info) && (info.st_mode & 07777) == 0600);
    file_listen();
    CHECK_OK(bal_key_load(&back, path, &check_err));
    CHECK(!file_heard("key") && bal_key_signs(back));
    CHECK(!strcmp(bal_key_id(back), bal_key_id(key)));
}

static void no_file_is_written_over(void)
{
    const char *path = file_path("there");
    const char *link = file_path("link-to-nothing");
    BAL_OWN(bal_key) key = NULL;
    BAL_OWN(bal_key) half = NULL;
    uint8_t raw[32];

    CHECK_OK(bal_key_generate(&key, &check_err));
    file_text(path, "mine");
    CHECK_RC(BAL_EEXISTS, bal_key_write(key, path, &check_err));
    CHECK(file_is(path, "mine"));
    CHECK(!symlink("nothing", link));
    CHECK_RC(BAL_EEXISTS, bal_key_write(key, link, &check_err));
    CHECK(!file_exists(file_path("nothing")));
    CHECK_RC(BAL_ENOTFOUND,
             bal_key_write(key, "/nonexistent/no/k", &check_err));
    CHECK(bal_key_public_bytes(key, raw));
    CHECK_OK(bal_key_of_public(&half, raw, &check_err));
    CHECK_RC(BAL_EINVAL, bal_key_write(half, file_path("half"), &check_err));
    CHECK(!file_exists(file_path("half")));
}

static void a_pair_that_others_may_read_is_told_of(void)
{
    const char *open = file_path("open.pem");
    const char *half = file_path("half.pem");
    BAL_OWN(bal_key) pair = NULL;
    BAL_OWN(bal_key) public = NULL;

    file_text(open, rfc_pair);
    file_text(half, rfc_half);
    CHECK(!chmod(open, 0640) && !chmod(half, 0644));
    file_listen();
    CHECK_OK(bal_key_load(&public, half, &check_err));
    CHECK(!file_heard("half.pem"));
    CHECK_OK(bal_key_load(&pair, open, &check_err));
    CHECK(file_heard("open.pem mode=0640"));
    CHECK(!file_heard("MC4CAQ"));
}

static void make_nothing(const char *path)
{
    CHECK(!file_exists(path));
}

static void make_folder(const char *path)
{
    CHECK(!mkdir(path, 0700));
}

static void make_fifo(const char *path)
{
    CHECK(!mkfifo(path, 0600));
}

static void make_link_to_a_device(const char *path)
{
    CHECK(!symlink("/dev/zero", path));
}

static void make_huge(const char *path)
{
    file_text(path, rfc_pair);
    CHECK(!truncate(path, (off_t)1 << 30));
}

static void make_empty(const char *path)
{
    file_text(path, "");
}

static void what_is_no_key_file_is_refused(void)
{
    static const struct {
        const char *name;
        void (*make)(const char *path);
        int code;
        const char *says;
    } rows[] = {
        { "absent", make_nothing, BAL_ENOTFOUND, "no such file" },
        { "folder", make_folder, BAL_EINVAL, "is not a regular file" },
        { "fifo", make_fifo, BAL_EINVAL, "is not a regular file" },
        { "device", make_link_to_a_device, BAL_EINVAL,
          "is not a regular file" },
        { "huge", make_huge, BAL_EINVAL, "is too large for a key" },
        { "empty", make_empty, BAL_EINVAL, "is not a PEM key" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *path = file_path("no-key-%s", rows[i].name);
        BAL_OWN(bal_key) key = NULL;

        check_row(rows[i].name);
        rows[i].make(path);
        CHECK_RC(rows[i].code, bal_key_load(&key, path, &check_err));
        CHECK(strstr(check_err.text, rows[i].says) != NULL);
        CHECK(strstr(check_err.text, path) != NULL);
    }
}

/* ---- the environment -------------------------------------------------------
 */

static int from_variable(bal_key **out, const char *value)
{
    CHECK(!setenv("BALLAST_SIGNING_KEY", value, 1));
    int rc = bal_key_environment(out, &check_err);

    CHECK(!unsetenv("BALLAST_SIGNING_KEY"));
    return rc;
}

static void no_variable_is_no_key(void)
{
    bal_key *key = NULL;

    CHECK(!unsetenv("BALLAST_SIGNING_KEY"));
    CHECK_OK(bal_key_environment(&key, &check_err));
    CHECK(!key);
    CHECK_OK(from_variable(&key, ""));
    CHECK(!key);
}

static void the_variable_holds_a_path_or_a_secret(void)
{
    const char *path = file_path("named.pem");
    BAL_OWN(bal_key) pair = NULL;
    BAL_OWN(bal_key) bare = NULL;
    BAL_OWN(bal_key) secret = NULL;

    file_text(path, rfc_pair);
    CHECK(!chmod(path, 0600));
    CHECK_OK(from_variable(&pair, path));
    CHECK(!strcmp(bal_key_public(pair), rfc_half));
    file_text(file_path("a-name-of-16-bytes"), rfc_pair);
    CHECK(!chdir(check_dir()));
    CHECK_OK(from_variable(&bare, "a-name-of-16-bytes"));
    CHECK(!strcmp(bal_key_public(bare), rfc_half));
    CHECK_OK(from_variable(&secret, "0123456789abcdef"));
    CHECK(!strncmp(bal_key_id(secret), "hmac:", 5));
}

static void what_looks_like_a_path_never_is_a_secret(void)
{
    static const struct {
        const char *value;
        int code;
    } rows[] = {
        { "/nonexistent/secret-0123456789", BAL_ENOTFOUND },
        { "./secret-0123456789", BAL_ENOTFOUND },
        { "c2VjcmV0/secret0123456789==", BAL_ENOTFOUND },
        { "secret-0123456789.pem", BAL_ENOTFOUND },
        { "secret-15-bytes", BAL_EINVAL },
        { PEM("PRIVATE KEY", "secret"), BAL_EINVAL },
        { PEM("PRIVATE KEY", "a/secret"), BAL_EINVAL },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        bal_key *key = NULL;
        check_row(rows[i].value);
        CHECK_RC(rows[i].code, from_variable(&key, rows[i].value));
        CHECK(!key);
        /* It may be a secret all the same: it is not repeated. */
        CHECK(!strstr(check_err.text, "secret-0") &&
              !strstr(check_err.text, "secret0") &&
              !strstr(check_err.text, "secret-15") &&
              !strstr(check_err.text, "PRIVATE"));
        CHECK(strstr(check_err.text, "BALLAST_SIGNING_KEY") != NULL);
    }
}

static const check_test tests[] = {
    { TEST(a_pair_is_written_for_its_owner_alone) },
    { TEST(no_file_is_written_over) },
    { TEST(a_pair_that_others_may_read_is_told_of) },
    { TEST(what_is_no_key_file_is_refused) },
    { TEST(no_variable_is_no_key) },
    { TEST(the_variable_holds_a_path_or_a_secret) },
    { TEST(what_looks_like_a_path_never_is_a_secret) },
};

CHECK_MAIN(tests)
