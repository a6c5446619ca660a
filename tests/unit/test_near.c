/* Copies of a far backend's runs on this machine. The far one is of files. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blocks/near.h"
#include "blocks/near_files.h"
#include "core/error.h"
#include "support/check.h"

#define NAME "acme/1/abc"

static uint64_t epoch;
static int epoch_fails;

static int epoch_now(void *ctx, uint64_t *out, bal_error *err)
{
    (void)ctx;
    *out = epoch;
    return epoch_fails ? bal_fail(err, BAL_EIO, "no database") : 0;
}

/* A folder of this test's own: "near" or "far" of round n. */
static const char *folder(const char *kind, unsigned n)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, 512, "%s/%s%u", check_dir(), kind, n);
    return path;
}

static unsigned round_now;

static bal_backend *make(uint64_t most)
{
    bal_backend *far = NULL;
    bal_backend *near = NULL;
    char url[600];
    const bal_near_options options = {
        .dir = folder("near", round_now),
        .most = most,
        .epoch = epoch_now,
    };

    snprintf(url, sizeof(url), "file:%s", folder("far", round_now));
    CHECK_OK(bal_backend_open(&far, url, check_dir(), &check_err));
    CHECK_OK(bal_near_open(&near, far, &options, &check_err));
    return near;
}

static void put(bal_backend *backend, const char *name, const char *text)
{
    BAL_OWN(bal_work) work = NULL;
    bal_staged staged = { 0 };
    const bal_bytes part = { text, strlen(text) };

    CHECK_OK(bal_work_new(&work, 1, &check_err));
    CHECK_OK(bal_backend_stage(backend, &staged, name, &part, 1, &check_err));
    CHECK_OK(bal_backend_settle(backend, &staged, 1, work, &check_err));
}

/* Is it what is read, and is that a copy? */
static bool reads(bal_backend *backend, const char *name, const char *text,
                  bool copy)
{
    BAL_LOCAL(bal_buf) got = { 0 };
    bool was = !copy;

    CHECK_OK(bal_backend_get_near(backend, name, &got, &was, &check_err));
    return was == copy && got.len == strlen(text) &&
           !memcmp(got.data, text, got.len);
}

static uint64_t held(void)
{
    uint64_t bytes = 0;

    CHECK_OK(bal_near_trim(folder("near", round_now), UINT64_MAX, &bytes,
                           &check_err));
    return bytes;
}

static void begin(void)
{
    round_now++;
    epoch = 1;
    epoch_fails = 0;
}

static void what_was_read_once_is_read_here(void)
{
    begin();
    BAL_OWN(bal_backend) backend = make(1 << 20);

    put(backend, NAME, "bytes");
    CHECK(reads(backend, NAME, "bytes", false));
    CHECK(reads(backend, NAME, "bytes", true));
    CHECK(held() == 5);
}

static void who_asks_the_backend_itself_gets_no_copy(void)
{
    begin();
    BAL_OWN(bal_backend) backend = make(1 << 20);
    BAL_LOCAL(bal_buf) got = { 0 };

    put(backend, NAME, "bytes");
    CHECK(reads(backend, NAME, "bytes", false));
    char path[700];
    snprintf(path, sizeof(path), "%s/%s", folder("far", round_now), NAME);
    CHECK(!unlink(path));
    CHECK_RC(BAL_ENOTFOUND,
             bal_backend_get(backend, NAME, 0, 0, &got, &check_err));
    CHECK(reads(backend, NAME, "bytes", true));
}

static void a_new_epoch_takes_all_copies_before_the_next_read(void)
{
    begin();
    BAL_OWN(bal_backend) backend = make(1 << 20);

    put(backend, NAME, "bytes");
    put(backend, "acme/2/other", "else");
    CHECK(reads(backend, NAME, "bytes", false));
    epoch = 2;
    CHECK(reads(backend, "acme/2/other", "else", false));
    CHECK(held() == 4);
    CHECK(reads(backend, NAME, "bytes", false));
}

static void so_does_one_that_came_while_nobody_had_it_open(void)
{
    begin();
    bal_backend *before = make(1 << 20);

    put(before, NAME, "bytes");
    CHECK(reads(before, NAME, "bytes", false));
    bal_backend_free(before);
    epoch = 5;
    BAL_OWN(bal_backend) after = make(1 << 20);
    CHECK(reads(after, NAME, "bytes", false));
    CHECK(reads(after, NAME, "bytes", true));
}

static void who_is_late_adds_nothing_of_before(void)
{
    begin();
    BAL_OWN(bal_backend) late = make(1 << 20);
    BAL_OWN(bal_backend) other = make(1 << 20);

    put(late, NAME, "bytes");
    CHECK(reads(late, NAME, "bytes", false));
    epoch = 2;
    CHECK(reads(other, NAME, "bytes", false));
    epoch = 1; /* what late still sees */
    put(late, "acme/2/other", "else");
    CHECK(reads(late, "acme/2/other", "else", false));
    CHECK(held() == 5);
}

static void where_the_epoch_cannot_be_asked_nothing_is_read_here(void)
{
    begin();
    BAL_OWN(bal_backend) backend = make(1 << 20);

    put(backend, NAME, "bytes");
    CHECK(reads(backend, NAME, "bytes", false));
    epoch_fails = 1;
    CHECK(reads(backend, NAME, "bytes", false));
}

static void what_is_removed_is_gone_here_too(void)
{
    begin();
    BAL_OWN(bal_backend) backend = make(1 << 20);
    const char *const names[] = { NAME };
    uint64_t freed = 0;

    put(backend, NAME, "bytes");
    CHECK(reads(backend, NAME, "bytes", false));
    CHECK_OK(bal_backend_remove(backend, names, 1, &freed, &check_err));
    CHECK(freed == 5);
    CHECK(held() == 0);
}

static void a_copy_that_is_dropped_is_read_from_afar(void)
{
    begin();
    BAL_OWN(bal_backend) backend = make(1 << 20);

    put(backend, NAME, "bytes");
    CHECK(reads(backend, NAME, "bytes", false));
    bal_backend_drop_near(backend, NAME);
    CHECK(reads(backend, NAME, "bytes", false));
}

static void what_was_used_longest_ago_goes_first(void)
{
    begin();
    enum { RUNS = 20, LEN = 1000 };
    BAL_OWN(bal_backend) backend = make(8 * LEN);
    char text[LEN + 1], name[32], path[700];

    memset(text, 'x', LEN);
    text[LEN] = '\0';
    for (unsigned i = 0; i < RUNS; i++) {
        snprintf(name, sizeof(name), "acme/1/r%u", i);
        put(backend, name, text);
        CHECK(reads(backend, name, text, false));
        CHECK(held() <= 8 * LEN);
        /* Older than all that come behind it. */
        snprintf(path, sizeof(path), "%s/acme:1:r%u", folder("near", round_now),
                 i);
        const struct timespec times[2] = { { 1000 + i, 0 }, { 1000 + i, 0 } };
        CHECK(!utimensat(AT_FDCWD, path, times, 0));
    }
    CHECK(reads(backend, "acme/1/r19", text, true));
    CHECK(reads(backend, "acme/1/r0", text, false));
}

static void a_folder_that_cannot_be_used_is_passed_by(void)
{
    begin();
    int fd = open(folder("near", round_now), O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0 && !close(fd));
    BAL_OWN(bal_backend) backend = make(1 << 20);

    put(backend, NAME, "bytes");
    CHECK(reads(backend, NAME, "bytes", false));
    CHECK(reads(backend, NAME, "bytes", false));
}

static void the_folder_is_the_users_alone(void)
{
    begin();
    BAL_OWN(bal_backend) backend = make(1 << 20);
    struct stat info;

    put(backend, NAME, "bytes");
    CHECK(reads(backend, NAME, "bytes", false));
    CHECK(!stat(folder("near", round_now), &info));
    CHECK((info.st_mode & 0777) == 0700);
}

static const check_test tests[] = {
    { TEST(what_was_read_once_is_read_here) },
    { TEST(who_asks_the_backend_itself_gets_no_copy) },
    { TEST(a_new_epoch_takes_all_copies_before_the_next_read) },
    { TEST(so_does_one_that_came_while_nobody_had_it_open) },
    { TEST(who_is_late_adds_nothing_of_before) },
    { TEST(where_the_epoch_cannot_be_asked_nothing_is_read_here) },
    { TEST(what_is_removed_is_gone_here_too) },
    { TEST(a_copy_that_is_dropped_is_read_from_afar) },
    { TEST(what_was_used_longest_ago_goes_first) },
    { TEST(a_folder_that_cannot_be_used_is_passed_by) },
    { TEST(the_folder_is_the_users_alone) },
};

CHECK_MAIN(tests)
