/* Tests as sentences: rows of functions run by cmocka. */
#include "support/check.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

bal_error check_err;

static const char *row;
static char dir[64];

void check_row(const char *name)
{
    row = name;
}

static void fail_at(const char *text, const char *file, int line)
{
    if (row)
        print_error("row: %s\n", row);
    _assert_true(0, text, file, line);
}

void check_that(int holds, const char *text, const char *file, int line)
{
    if (!holds)
        fail_at(text, file, line);
}

void check_rc(int rc, int want, const char *text, const char *file, int line)
{
    if (rc == want)
        return;
    print_error("%s gave %d, not %d: %s\n", text, rc, want, check_err.text);
    fail_at(text, file, line);
}

static int remove_one(const char *path, const struct stat *stat, int type,
                      struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_dir(void)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *check_dir(void)
{
    if (dir[0])
        return dir;
    snprintf(dir, sizeof(dir), "/tmp/ballast-test-XXXXXX");
    if (!mkdtemp(dir))
        abort();
    atexit(remove_dir);
    return dir;
}

static void run_row(void **state)
{
    const check_test *test = *state;

    row = NULL;
    memset(&check_err, 0, sizeof(check_err));
    test->run();
}

void check_pass_a_tenth(void)
{
    double start = bal_clock_ticks();

    while (bal_clock_ticks() - start < 0.11)
        ;
}

int check_main(const check_test *tests, size_t count)
{
    struct CMUnitTest *rows = calloc(count, sizeof(*rows));

    if (!rows)
        return 1;
    for (size_t i = 0; i < count; i++) {
        rows[i].name = tests[i].name;
        rows[i].test_func = run_row;
        rows[i].initial_state = (void *)(uintptr_t)&tests[i];
    }
    int failed = _cmocka_run_group_tests("ballast", rows, count, NULL, NULL);
    free(rows);
    return failed ? 1 : 0;
}
