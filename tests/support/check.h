/* Tests as sentences: rows of functions run by cmocka. */
#ifndef SUPPORT_CHECK_H
#define SUPPORT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "ballast.h"

/* What the last CHECK_OK or CHECK_RC call put its error into. */
extern bal_error check_err;

typedef struct check_test {
    const char *name;
    void (*run)(void);
} check_test;

#define TEST(function) #function, function

/* The condition holds. */
#define CHECK(condition)                                                       \
    check_that((condition) != 0, #condition, __FILE__, __LINE__)
/* The call succeeds; if not, its error text is shown. */
#define CHECK_OK(call) check_rc((call), 0, #call, __FILE__, __LINE__)
/* The call fails with this code. */
#define CHECK_RC(code, call) check_rc((call), (code), #call, __FILE__, __LINE__)

void check_that(int holds, const char *text, const char *file, int line);
void check_rc(int rc, int want, const char *text, const char *file, int line);
/* Show which row of a table is being looked at when a check fails. */
void check_row(const char *name);
/* A new empty directory of this test program, removed when it ends. */
const char *check_dir(void);
/* Who watches work is asked ten times a second at most: until that may be. */
void check_pass_a_tenth(void);
int check_main(const check_test *tests, size_t count);

#define CHECK_MAIN(tests)                                                      \
    int main(void)                                                             \
    {                                                                          \
        return check_main((tests), sizeof(tests) / sizeof((tests)[0]));        \
    }

#endif
