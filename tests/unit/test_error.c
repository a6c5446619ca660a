/* Errors: codes, texts, where and what to do. */
#include <errno.h>
#include <string.h>

#include "core/error.h"
#include "support/check.h"

static void every_code_has_its_exit_status_and_word(void)
{
    static const struct {
        int code;
        const char *word;
        int exit;
    } rows[] = {
        { BAL_EINVAL, "usage", 2 },
        { BAL_ENOTFOUND, "not-found", 3 },
        { BAL_EDENIED, "denied", 3 },
        { BAL_EEXISTS, "conflict", 5 },
        { BAL_ECONFLICT, "conflict", 5 },
        { BAL_EBROKEN, "unsupported", 9 },
        { BAL_ECORRUPT, "corrupt", 6 },
        { BAL_EIO, "io", 7 },
        { BAL_EBUSY, "busy", 8 },
        { BAL_EUNSUPPORTED, "unsupported", 9 },
        { BAL_ENOMEM, "io", 7 },
        { BAL_ECANCELLED, "cancelled", 130 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const bal_code_row *row = bal_code_find(rows[i].code);
        check_row(rows[i].word);
        CHECK(row->code == rows[i].code && row->exit == rows[i].exit);
        CHECK(!strcmp(row->word, rows[i].word));
        CHECK(row->http >= 400 && row->python[0]);
    }
}

static void an_unknown_code_counts_as_io(void)
{
    CHECK(bal_code_find(-999)->code == BAL_EIO);
    CHECK(bal_code_find(7)->code == BAL_EIO);
}

static void failing_fills_code_and_text_and_clears_the_hint(void)
{
    bal_error err = { 0 };

    CHECK(bal_hint(&err, BAL_EIO, "try %s", "again") == BAL_EIO);
    CHECK(!strcmp(err.hint, "try again"));
    CHECK(bal_fail(&err, BAL_ENOTFOUND, "no ref '%s'", "x") == BAL_ENOTFOUND);
    CHECK(err.code == BAL_ENOTFOUND && !strcmp(err.text, "no ref 'x'"));
    CHECK(!err.hint[0]);
}

static void an_error_is_not_needed(void)
{
    errno = ENOENT;
    CHECK(bal_fail_errno(NULL, "opening '%s'", "x") == BAL_ENOTFOUND);
    CHECK(bal_fail(NULL, BAL_EIO, "x") == BAL_EIO);
    CHECK(bal_within(NULL, BAL_EIO, "x") == BAL_EIO);
    CHECK(bal_hint(NULL, BAL_EIO, "x") == BAL_EIO);
    CHECK(bal_fail_memory(NULL, "x") == BAL_ENOMEM);
}

static void errno_becomes_a_code_and_a_lower_case_text(void)
{
    static const struct {
        int error;
        int code;
        const char *text;
    } rows[] = {
        { ENOENT, BAL_ENOTFOUND, "writing '/x': no such file or directory" },
        { EEXIST, BAL_EEXISTS, "writing '/x': file exists" },
        { ENOTEMPTY, BAL_EEXISTS, "writing '/x': directory not empty" },
        { ENOMEM, BAL_ENOMEM, "writing '/x': cannot allocate memory" },
        { EINTR, BAL_ECANCELLED, "writing '/x': interrupted system call" },
        { ENOSPC, BAL_EIO, "writing '/x': no space left on device" },
        { EDQUOT, BAL_EIO, "writing '/x': disk quota exceeded" },
        { EROFS, BAL_EIO, "writing '/x': read-only file system" },
        { EACCES, BAL_EIO, "writing '/x': permission denied" },
        { 99999, BAL_EIO, "writing '/x': error 99999" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bal_error err = { 0 };
        check_row(rows[i].text);
        errno = rows[i].error;
        CHECK(bal_fail_errno(&err, "writing '%s'", "/x") == rows[i].code);
        CHECK(err.code == rows[i].code && !strcmp(err.text, rows[i].text));
    }
}

static void within_puts_the_place_in_front_and_keeps_the_hint(void)
{
    bal_error err = { 0 };
    int rc = bal_fail(&err, BAL_ECORRUPT, "no block");

    rc = bal_hint(&err, rc, "run fsck");
    CHECK(bal_within(&err, rc, "tensor '%s'", "w") == BAL_ECORRUPT);
    CHECK(!strcmp(err.text, "tensor 'w': no block"));
    CHECK(!strcmp(err.hint, "run fsck"));
}

static void the_old_text_can_be_part_of_the_new(void)
{
    bal_error err = { 0 };

    bal_fail(&err, BAL_EIO, "inner");
    bal_fail(&err, BAL_EINVAL, "outer: %s", err.text);
    CHECK(!strcmp(err.text, "outer: inner"));
}

static void a_text_is_one_line_without_controls(void)
{
    bal_error err = { 0 };

    bal_fail(&err, BAL_EINVAL, "no '%s'", "a\nb\x1b[2J\x7f\r");
    CHECK(!strcmp(err.text, "no 'a\\x0ab\\x1b[2J\\x7f\\x0d'"));
}

static void a_long_text_is_cut_between_characters(void)
{
    char name[700];
    bal_error err = { 0 };

    for (size_t i = 0; i < sizeof(name) - 1; i++)
        name[i] = "\xe2\x82\xac"[i % 3]; /* euro signs */
    name[sizeof(name) - 1] = '\0';
    for (size_t shift = 0; shift < 3; shift++) {
        bal_fail(&err, BAL_EINVAL, "%s%s", &"ab"[2 - shift], name);
        size_t len = strlen(err.text);
        CHECK(len > 500 && len < sizeof(err.text));
        CHECK((len - shift) % 3 == 0);
    }
}

static void note_line(void *ctx, bal_level level, const char *area,
                      const char *line)
{
    snprintf(ctx, 80, "%d %s %s", level, area, line);
}

static void the_log_goes_to_the_sink_or_nowhere(void)
{
    char last[80] = "";

    bal_warn("blocks", "nobody=listens");
    bal_log_to(note_line, last);
    bal_warn("blocks", "retry=%d", 3);
    CHECK(!strcmp(last, "1 blocks retry=3"));
    bal_trace("merge", "name=%s", "a\nb");
    CHECK(!strcmp(last, "0 merge name=a\\x0ab"));
    bal_log_to(NULL, NULL);
    bal_warn("blocks", "dropped");
    CHECK(!strcmp(last, "0 merge name=a\\x0ab"));
}

static const check_test tests[] = {
    { TEST(every_code_has_its_exit_status_and_word) },
    { TEST(an_unknown_code_counts_as_io) },
    { TEST(failing_fills_code_and_text_and_clears_the_hint) },
    { TEST(an_error_is_not_needed) },
    { TEST(errno_becomes_a_code_and_a_lower_case_text) },
    { TEST(within_puts_the_place_in_front_and_keeps_the_hint) },
    { TEST(the_old_text_can_be_part_of_the_new) },
    { TEST(a_text_is_one_line_without_controls) },
    { TEST(a_long_text_is_cut_between_characters) },
    { TEST(the_log_goes_to_the_sink_or_nowhere) },
};

CHECK_MAIN(tests)
