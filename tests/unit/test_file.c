/* Files, directories, paths and locks, on a real file system. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file.h"
#include "core/str.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* A path in this test's directory; valid until the next but seven. */
static const char *at(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, 512, "%s/%s", check_dir(), name);
    return path;
}

static void make(const char *name, const char *text)
{
    CHECK_OK(bal_file_replace(at(name), text, strlen(text), &check_err));
}

static void a_file_is_replaced_whole(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    make("replaced", "one");
    make("replaced", "two");
    CHECK_OK(bal_file_slurp(&text, at("replaced"), 100, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), "two"));
}

static int count_temporaries(void *ctx, const char *name, bal_error *err)
{
    (void)err;
    if (strstr(name, ".tmp-"))
        ++*(size_t *)ctx;
    return 0;
}

static void a_device_is_not_replaced(void)
{
    CHECK(!mkfifo(at("fifo"), 0600));
    CHECK_RC(BAL_EINVAL, bal_file_replace(at("fifo"), "x", 1, &check_err));
    CHECK(bal_path_type_of(at("fifo")) == BAL_PATH_OTHER);
}

static void a_failed_replacement_leaves_nothing_behind(void)
{
    size_t count = 0;

    CHECK_OK(bal_make_dirs(at("taken/full"), &check_err));
    CHECK(bal_file_replace(at("taken"), "x", 1, &check_err) < 0);
    CHECK_RC(BAL_ENOTFOUND,
             bal_file_replace(at("absent/x"), "x", 1, &check_err));
    CHECK_OK(bal_dir_each(check_dir(), count_temporaries, &count, &check_err));
    CHECK(!count);
}

static void slurping_keeps_to_its_ceiling(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    make("slurped", "12345");
    CHECK_OK(bal_file_slurp(&text, at("slurped"), 5, &check_err));
    CHECK(text.len == 5);
    CHECK_RC(BAL_EINVAL, bal_file_slurp(&text, at("slurped"), 4, &check_err));
    CHECK_RC(BAL_ENOTFOUND, bal_file_slurp(&text, at("nope"), 4, &check_err));
    CHECK(text.len == 5);
    make("empty", "");
    CHECK_OK(bal_file_slurp(&text, at("empty"), 0, &check_err));
    CHECK(text.len == 0);
    /* Its size is 0, its content is not. */
    CHECK_OK(bal_file_slurp(&text, "/proc/self/stat", 65536, &check_err));
    CHECK(text.len > 10);
}

static void ranges_are_read_exactly(void)
{
    BAL_OWN(bal_file) file = NULL;
    char got[8] = { 0 };

    make("ranges", "0123456789");
    CHECK_OK(bal_file_open(&file, at("ranges"), &check_err));
    CHECK(file->size == 10);
    CHECK_OK(bal_file_read(file, 3, got, 4, &check_err));
    CHECK(!strcmp(got, "3456"));
    CHECK_OK(bal_file_read(file, 10, got, 0, &check_err));
    CHECK_RC(BAL_ECORRUPT, bal_file_read(file, 8, got, 3, &check_err));
    CHECK_RC(BAL_ECORRUPT, bal_file_read(file, 1 << 20, got, 1, &check_err));
    CHECK_RC(BAL_EINVAL, bal_file_read(file, UINT64_MAX, got, 2, &check_err));
    CHECK_RC(BAL_EINVAL, bal_file_read(file, INT64_MAX, got, 2, &check_err));
}

static void a_change_under_our_hands_is_seen(void)
{
    BAL_OWN(bal_file) file = NULL;
    char got[4];

    make("changing", "0123456789");
    CHECK_OK(bal_file_open(&file, at("changing"), &check_err));
    CHECK_OK(bal_file_unchanged(file, &check_err));
    CHECK(!truncate(at("changing"), 3));
    CHECK_RC(BAL_EIO, bal_file_unchanged(file, &check_err));
    CHECK_RC(BAL_ECORRUPT, bal_file_read(file, 2, got, 4, &check_err));
}

static void only_regular_files_are_opened(void)
{
    bal_file *file = NULL;

    CHECK(!mkfifo(at("pipe"), 0600));
    CHECK_RC(BAL_EINVAL, bal_file_open(&file, at("pipe"), &check_err));
    CHECK(strstr(check_err.text, "pipe' is not a regular file"));
    CHECK_RC(BAL_EINVAL, bal_file_open(&file, check_dir(), &check_err));
    CHECK_RC(BAL_EINVAL, bal_file_open(&file, "/dev/null", &check_err));
    CHECK_RC(BAL_ENOTFOUND, bal_file_open(&file, at("nope"), &check_err));
    CHECK(!file);
}

static void directories_are_made_to_any_depth(void)
{
    CHECK_OK(bal_make_dirs(at("a/b//c/d/"), &check_err));
    CHECK(bal_path_type_of(at("a/b/c/d")) == BAL_PATH_DIR);
    CHECK_OK(bal_make_dirs(at("a/b/c/d"), &check_err));
    CHECK_OK(bal_make_dirs("/", &check_err));
    make("a/file", "");
    CHECK_RC(BAL_EEXISTS, bal_make_dirs(at("a/file"), &check_err));
    CHECK_RC(BAL_EEXISTS, bal_make_dirs(at("a/file/x"), &check_err));
}

static void relative_directories_are_made_where_we_are(void)
{
    char before[512];

    CHECK(getcwd(before, sizeof(before)) && !chdir(check_dir()));
    CHECK_OK(bal_make_dirs("rel/x", &check_err));
    CHECK_OK(bal_file_replace("bare", "x", 1, &check_err));
    CHECK(!chdir(before));
    CHECK(bal_path_type_of(at("rel/x")) == BAL_PATH_DIR);
    CHECK(bal_path_type_of(at("bare")) == BAL_PATH_FILE);
}

static void renaming_moves_between_directories(void)
{
    CHECK_OK(bal_make_dirs(at("from"), &check_err));
    CHECK_OK(bal_make_dirs(at("to"), &check_err));
    make("from/x", "x");
    CHECK_OK(bal_rename(at("from/x"), at("to/y"), &check_err));
    CHECK(bal_path_type_of(at("to/y")) == BAL_PATH_FILE);
    CHECK(bal_path_type_of(at("from/x")) == BAL_PATH_ABSENT);
    CHECK_RC(BAL_ENOTFOUND, bal_rename(at("from/x"), at("to/z"), &check_err));
}

static void a_tree_is_removed_but_not_what_its_links_lead_to(void)
{
    CHECK_OK(bal_make_dirs(at("tree/sub/sub"), &check_err));
    CHECK_OK(bal_make_dirs(at("kept"), &check_err));
    make("kept/file", "x");
    make("tree/file", "x");
    make("tree/sub/file", "x");
    CHECK(!symlink(at("kept"), at("tree/sub/link")));
    CHECK(!symlink("nowhere", at("tree/dangling")));
    CHECK_OK(bal_remove_tree(at("tree"), &check_err));
    CHECK(bal_path_type_of(at("tree")) == BAL_PATH_ABSENT);
    CHECK(bal_path_type_of(at("kept/file")) == BAL_PATH_FILE);
    CHECK_OK(bal_remove_tree(at("tree"), &check_err));
    CHECK(!symlink(at("kept"), at("link")));
    CHECK_OK(bal_remove_tree(at("link"), &check_err));
    CHECK(bal_path_type_of(at("kept/file")) == BAL_PATH_FILE);
    CHECK_OK(bal_remove_tree(at("kept/file"), &check_err));
    CHECK(bal_path_type_of(at("kept/file")) == BAL_PATH_ABSENT);
}

static int gather(void *ctx, const char *name, bal_error *err)
{
    int rc = bal_buf_text(ctx, name, err);

    return rc ? rc : bal_buf_text(ctx, " ", err);
}

static int stop_at_b(void *ctx, const char *name, bal_error *err)
{
    (void)err;
    ++*(int *)ctx;
    return name[0] == 'b' ? 77 : 0;
}

static void a_directory_is_listed_bytewise(void)
{
    static const char *const names[] = {
        "b", "B", "a", "\xc3\xa9", "a.b", ".x"
    };
    BAL_LOCAL(bal_buf) all = { 0 };
    int seen = 0;

    CHECK_OK(bal_make_dirs(at("list"), &check_err));
    CHECK_OK(bal_dir_each(at("list"), gather, &all, &check_err));
    CHECK(!all.len);
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[64];
        snprintf(path, sizeof(path), "list/%s", names[i]);
        make(path, "");
    }
    CHECK_OK(bal_dir_each(at("list"), gather, &all, &check_err));
    CHECK(!strcmp(all.data, ".x B a a.b b \xc3\xa9 "));
    CHECK_RC(77, bal_dir_each(at("list"), stop_at_b, &seen, &check_err));
    CHECK(seen == 5);
    CHECK_RC(BAL_ENOTFOUND, bal_dir_each(at("nope"), gather, &all, &check_err));
}

static void paths_know_their_types(void)
{
    make("plain", "");
    CHECK(!symlink("nowhere", at("broken")));
    CHECK(!symlink("plain", at("good")));
    CHECK(bal_path_type_of(check_dir()) == BAL_PATH_DIR);
    CHECK(bal_path_type_of(at("plain")) == BAL_PATH_FILE);
    CHECK(bal_path_type_of(at("good")) == BAL_PATH_FILE);
    CHECK(bal_path_type_of(at("broken")) == BAL_PATH_OTHER);
    CHECK(bal_path_type_of("/dev/null") == BAL_PATH_OTHER);
    CHECK(bal_path_type_of(at("plain/x")) == BAL_PATH_ABSENT);
}

typedef struct coming_file {
    char path[512];
    atomic_bool done;
} coming_file;

static void *come_and_go(void *ctx)
{
    coming_file *file = ctx;

    while (!atomic_load(&file->done)) {
        int fd = open(file->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
        unlink(file->path);
    }
    return NULL;
}

static void a_file_that_others_make_and_remove_is_there_or_not(void)
{
    coming_file file = { .done = false };
    pthread_t other;
    size_t odd = 0;

    snprintf(file.path, sizeof(file.path), "%s", at("coming"));
    CHECK(!pthread_create(&other, NULL, come_and_go, &file));
    for (size_t i = 0; i < 100000; i++) {
        bal_path_type type = bal_path_type_of(file.path);
        odd += type != BAL_PATH_FILE && type != BAL_PATH_ABSENT;
    }
    atomic_store(&file.done, true);
    CHECK(!pthread_join(other, NULL));
    CHECK(odd == 0);
}

static void joined_paths_have_one_slash(void)
{
    static const char *const rows[][3] = {
        { "a", "b", "a/b" },
        { "a/", "b", "a/b" },
        { "/", "b", "/b" },
        { "", "b", "b" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *path = bal_path_join(rows[i][0], rows[i][1]);
        check_row(rows[i][2]);
        CHECK(path && !strcmp(path, rows[i][2]));
        bal_str_free(path);
    }
}

static void check_real(const char *path, const char *want)
{
    char *base = NULL;
    char *real = NULL;
    char full[1024];

    CHECK_OK(bal_path_real(&base, check_dir(), &check_err));
    CHECK_OK(bal_path_real(&real, path, &check_err));
    snprintf(full, sizeof(full), "%s%s", base, want);
    check_row(path);
    CHECK(!strcmp(real, full));
    bal_str_free(base);
    bal_str_free(real);
}

static void real_paths_have_no_links_and_no_dots(void)
{
    char *real = NULL;

    CHECK_OK(bal_make_dirs(at("real/inner"), &check_err));
    CHECK(!symlink("real/inner", at("short")));
    check_real(at("short"), "/real/inner");
    check_real(at("short/.."), "/real");
    check_real(at("short/../x/./y/../z"), "/real/x/z");
    check_real(at("nope/../short//new/"), "/real/inner/new");
    CHECK_OK(bal_path_real(&real, "/../..//.", &check_err));
    CHECK(!strcmp(real, "/"));
    bal_str_free(real);
    CHECK(!symlink("loop", at("loop")));
    CHECK(bal_path_real(&real, at("loop/x"), &check_err) < 0);
}

static void a_path_holds_itself_and_what_is_below(void)
{
    static const struct {
        const char *a;
        const char *b;
        bool holds;
    } rows[] = {
        { "/a", "/a", true },    { "/a", "/a/b", true }, { "/a", "/ab", false },
        { "/a/b", "/a", false }, { "/", "/a", true },    { "/", "/", true },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(rows[i].b);
        CHECK(bal_path_holds(rows[i].a, rows[i].b) == rows[i].holds);
    }
}

static void locks_exclude_each_other(void)
{
    BAL_OWN(bal_lock) first = NULL;
    BAL_OWN(bal_lock) second = NULL;
    const char *path = at("lock");
    double before = bal_clock_ticks();

    CHECK_OK(bal_lock_take(&first, path, BAL_LOCK_EXCLUSIVE, 0, &check_err));
    CHECK_RC(BAL_EBUSY,
             bal_lock_take(&second, path, BAL_LOCK_SHARED, 0, &check_err));
    CHECK_RC(BAL_EBUSY,
             bal_lock_take(&second, path, BAL_LOCK_EXCLUSIVE, 0.1, &check_err));
    CHECK(!second && bal_clock_ticks() - before >= 0.1);
    bal_lock_free(BAL_TAKE(first));
    CHECK_OK(bal_lock_take(&first, path, BAL_LOCK_SHARED, 0, &check_err));
    CHECK_OK(bal_lock_take(&second, path, BAL_LOCK_SHARED, 0, &check_err));
}

static void writing_names_the_file_that_failed(void)
{
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_RC(BAL_EIO, bal_write_all(fd, "x", 1, "/x", &check_err));
    CHECK(!strcmp(check_err.text, "writing '/x': no space left on device"));
    bal_sync_begin(fd, 0, UINT64_MAX);
    bal_sync_begin(fd, 0, 1);
    close(fd);
    CHECK_RC(BAL_ENOTFOUND, bal_sync_dir(at("nope"), &check_err));
    CHECK_RC(BAL_EIO, bal_sync_fd(-1, "/x", &check_err));
}

static const check_test tests[] = {
    { TEST(a_file_is_replaced_whole) },
    { TEST(a_device_is_not_replaced) },
    { TEST(a_failed_replacement_leaves_nothing_behind) },
    { TEST(slurping_keeps_to_its_ceiling) },
    { TEST(ranges_are_read_exactly) },
    { TEST(a_change_under_our_hands_is_seen) },
    { TEST(only_regular_files_are_opened) },
    { TEST(directories_are_made_to_any_depth) },
    { TEST(relative_directories_are_made_where_we_are) },
    { TEST(renaming_moves_between_directories) },
    { TEST(a_tree_is_removed_but_not_what_its_links_lead_to) },
    { TEST(a_directory_is_listed_bytewise) },
    { TEST(paths_know_their_types) },
    { TEST(a_file_that_others_make_and_remove_is_there_or_not) },
    { TEST(joined_paths_have_one_slash) },
    { TEST(real_paths_have_no_links_and_no_dots) },
    { TEST(a_path_holds_itself_and_what_is_below) },
    { TEST(locks_exclude_each_other) },
    { TEST(writing_names_the_file_that_failed) },
};

CHECK_MAIN(tests)
