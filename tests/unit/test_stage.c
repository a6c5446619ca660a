#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "support/check.h"
#include "support/memory_model.h"
#include "support/writes.h"

static const char one_a[] =
    "{\"a\":{\"shape\":[2],\"dtype\":\"U8\",\"data_offsets\":[0,2]}}";
static const char one_c[] =
    "{\"c\":{\"shape\":[3],\"dtype\":\"U8\",\"data_offsets\":[0,3]}}";
static const uint64_t two[] = { 2 };

/* ---- where to -------------------------------------------------------------
 */

static bal_model *small(void)
{
    bal_model *made = memory_new(BAL_KIND_WEIGHTS, "small");

    memory_tensor(made, "a", BAL_U8, 1, two, "Aa");
    memory_finish(made);
    return made;
}

static void an_empty_folder_is_taken(void)
{
    BAL_OWN(bal_model) model = small();
    const char *out = write_place();

    CHECK(!mkdir(out, 0700));
    CHECK_OK(write_plain(model, out));
    CHECK(file_count(out) == 1 && write_alone(out));
}

static void folders_above_are_made(void)
{
    BAL_OWN(bal_model) model = small();
    const char *dir = file_dir();
    const char *out = file_path("%s/x/../y/./out/", strrchr(dir, '/') + 1);

    CHECK_OK(write_plain(model, out));
    CHECK(file_count(file_path("%s/y/out", strrchr(dir, '/') + 1)) == 1);
}

static void the_mode_is_that_of_a_new_folder(void)
{
    BAL_OWN(bal_model) model = small();
    const char *out = write_place();
    struct stat info;
    mode_t old = umask(027);

    int rc = write_plain(model, out);
    umask(old);
    CHECK_OK(rc);
    CHECK(!stat(out, &info) && (info.st_mode & 0777) == 0750);
}

static void what_is_there_is_kept(void)
{
    BAL_OWN(bal_model) model = small();
    const char *out = write_place();
    const char *file = file_path("%s/keep", strstr(out, "dir-"));

    file_text(file, "mine");
    CHECK_RC(BAL_EEXISTS, write_plain(model, out));
    CHECK(file_is(file, "mine") && file_count(out) == 1);
    CHECK(write_alone(out));
    CHECK_RC(BAL_EEXISTS, write_plain(model, file));
}

static void force_replaces_a_folder_whole(void)
{
    BAL_OWN(bal_model) model = small();
    const char *out = write_place();
    const char *file = file_path("%s/sub/old", strstr(out, "dir-"));
    const bal_write_options options = { .flags = BAL_WRITE_FORCE };

    file_text(file, "old");
    CHECK_OK(write_with(model, out, &options, NULL, 2));
    CHECK(!file_exists(file) && file_count(out) == 1 && write_alone(out));
}

static void out_may_not_touch_what_is_to_be_avoided(void)
{
    static const struct {
        const char *out, *avoid;
        int rc;
    } rows[] = {
        { "avoid/base", "avoid/base", BAL_EINVAL },
        { "avoid/base/out", "avoid/base", BAL_EINVAL },
        { "avoid", "avoid/base", BAL_EINVAL },
        { "avoid/x/../base/../base/y", "avoid/base", BAL_EINVAL },
        { "avoid/link/out", "avoid/base", BAL_EINVAL },
        { "avoid/link", "avoid/base", BAL_EINVAL },
        { "avoid/base2", "avoid/base", 0 },
        { "avoid/bas", "avoid/base", 0 },
    };
    BAL_OWN(bal_model) model = small();
    const char *text = file_path("avoid/base/x.txt");

    file_text(text, "base");
    CHECK(!symlink("base", file_path("avoid/link")));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *avoid = file_path("%s", rows[i].avoid);
        const char *out = file_path("%s", rows[i].out);
        const bal_write_options options = { .avoid = &avoid,
                                            .avoid_count = 1,
                                            .flags = BAL_WRITE_FORCE };
        check_row(rows[i].out);
        CHECK_RC(rows[i].rc, write_with(model, out, &options, NULL, 2));
        if (rows[i].rc)
            CHECK(strstr(check_err.text, out) && strstr(check_err.text, avoid));
    }
    CHECK(file_is(file_path("avoid/base/x.txt"), "base"));
}

/* ---- whole or not at all --------------------------------------------------
 */

/* Two files, the second of which is read last. */
static const char *two_files(void)
{
    const char *dir = file_dir();
    const char *name = strrchr(dir, '/') + 1;

    file_tensors(file_path("%s/m-1.safetensors", name), one_a, "aa", 2);
    file_tensors(file_path("%s/m-2.safetensors", name), one_c, "ccc", 3);
    return dir;
}

static void nothing_is_left_when_reading_fails(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = two_files();
    const char *out = write_place();

    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(!truncate(file_path("%s/m-2.safetensors", strrchr(dir, '/') + 1), 9));
    CHECK_RC(BAL_EIO, write_plain(model, out));
    CHECK(strstr(check_err.text, "changed while it was read") != NULL);
    CHECK(!file_exists(out) && write_alone(out));
}

static void folders_above_go_again_when_reading_fails(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = two_files();
    const char *name = strrchr(dir, '/') + 1;
    const char *out = file_path("%s-out", name);
    const char *deep = file_path("%s-out/a/b", name);

    CHECK(!rmdir(file_path("%s-out/a", name)) && !rmdir(out));
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(!truncate(file_path("%s/m-2.safetensors", name), 9));
    CHECK_RC(BAL_EIO, write_plain(model, deep));
    CHECK(!file_exists(out));
}

static void what_was_there_stays_when_reading_fails(void)
{
    BAL_OWN(bal_model) model = NULL;
    const char *dir = two_files();
    const char *out = write_place();
    const char *file = file_path("%s/old", strstr(out, "dir-"));
    const bal_write_options options = { .flags = BAL_WRITE_FORCE };

    file_text(file, "old");
    CHECK_OK(bal_model_from_path(&model, dir, &check_err));
    CHECK(!truncate(file_path("%s/m-2.safetensors", strrchr(dir, '/') + 1), 9));
    CHECK_RC(BAL_EIO, write_with(model, out, &options, NULL, 2));
    CHECK(file_is(file, "old") && write_alone(out));
}

/* A model slow enough for the watch function to be asked. */
static int slow_read(bal_model *self, size_t i, uint64_t offset, void *to,
                     size_t len, bal_error *err)
{
    (void)self;
    (void)i;
    (void)offset;
    (void)err;
    bal_clock_sleep(0.15);
    memset(to, 0, len);
    return 0;
}

static void slow_free(bal_model *self)
{
    (void)self;
}

static bal_model *slow(void)
{
    static const bal_model_ops ops = { .read = slow_read, .free = slow_free };
    bal_tensor entry = {
        .name = "a", .dtype = BAL_U8, .rank = 1, .shape = two
    };
    bal_model *self = bal_model_alloc(sizeof(*self), &ops);

    CHECK(self != NULL);
    CHECK_OK(bal_model_add(self, &entry, 0, &check_err));
    CHECK_OK(bal_model_ready(self, &check_err));
    return self;
}

static int stop(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    return 1;
}

static void nothing_is_left_when_cancelled(void)
{
    BAL_OWN(bal_model) model = slow();
    BAL_OWN(bal_work) work = NULL;
    const char *out = write_place();

    CHECK_OK(bal_work_new(&work, 2, &check_err));
    bal_work_watch(work, stop, NULL);
    CHECK_RC(BAL_ECANCELLED,
             bal_model_write(model, out, NULL, NULL, work, &check_err));
    CHECK(!file_exists(out) && write_alone(out));
}

static void a_name_that_is_a_folder_and_a_file_fails_clean(void)
{
    bal_model *made = memory_new(BAL_KIND_WEIGHTS, "clash");
    BAL_OWN(bal_model) model = made;
    const char *out = write_place();

    memory_file(made, BAL_PART_FILE, "a", "x", 1);
    memory_file(made, BAL_PART_FILE, "a/b", "x", 1);
    memory_finish(made);
    CHECK(write_plain(model, out) < 0);
    CHECK(!file_exists(out) && write_alone(out));
}

/* A writer that dies in the middle, by a watch function that does not return.
 */
static int die(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    _exit(7);
}

static void leave_behind(const char *out)
{
    int status = 0;
    pid_t child = fork();

    if (!child) {
        bal_model *model = slow();
        bal_work *work = NULL;
        if (!bal_work_new(&work, 1, NULL))
            bal_work_watch(work, die, NULL);
        _exit(bal_model_write(model, out, NULL, NULL, work, NULL) ? 1 : 0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void what_a_killed_writer_left_goes_with_the_next(void)
{
    BAL_OWN(bal_model) model = small();
    const char *out = write_place();

    leave_behind(out);
    CHECK(!file_exists(out) && !write_alone(out));
    file_listen();
    CHECK_OK(write_plain(model, out));
    CHECK(file_heard("left-over="));
    CHECK(file_exists(out) && write_alone(out));
}

static void a_folder_that_was_moved_away_is_put_back(void)
{
    BAL_OWN(bal_model) model = small();
    const char *out = write_place();
    const char *dir = strstr(out, "dir-");
    const char *old = file_path("%s.ballast-0123456789abcdef/old/keep", dir);
    const char *other = file_path("%s-2", dir);

    file_text(old, "mine");
    CHECK_OK(write_plain(model, other));
    write_holds(out, "keep", "mine");
    CHECK(!file_exists(file_path("%s.ballast-0123456789abcdef", dir)));
}

static void folders_of_like_names_are_left_alone(void)
{
    BAL_OWN(bal_model) model = small();
    const char *out = write_place();
    const char *dir = strstr(out, "dir-");
    const char *like = file_path("%s.ballast-0123456789abcdeg/x", dir);
    const char *other = file_path("%s.ballast-/x", dir);

    file_text(like, "1");
    file_text(other, "2");
    CHECK_OK(write_plain(model, out));
    CHECK(file_is(like, "1") && file_is(other, "2"));
}

static const check_test tests[] = {
    { TEST(an_empty_folder_is_taken) },
    { TEST(folders_above_are_made) },
    { TEST(the_mode_is_that_of_a_new_folder) },
    { TEST(what_is_there_is_kept) },
    { TEST(force_replaces_a_folder_whole) },
    { TEST(out_may_not_touch_what_is_to_be_avoided) },
    { TEST(nothing_is_left_when_reading_fails) },
    { TEST(folders_above_go_again_when_reading_fails) },
    { TEST(what_was_there_stays_when_reading_fails) },
    { TEST(nothing_is_left_when_cancelled) },
    { TEST(a_name_that_is_a_folder_and_a_file_fails_clean) },
    { TEST(what_a_killed_writer_left_goes_with_the_next) },
    { TEST(a_folder_that_was_moved_away_is_put_back) },
    { TEST(folders_of_like_names_are_left_alone) },
};

CHECK_MAIN(tests)
