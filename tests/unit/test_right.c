/* Which answers are right. */
#include "probe/compare.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

typedef struct right_row {
    const char *output;
    const char *references[3];
    const char *choices[5];
    bool right;
} right_row;

static const right_row rows[] = {
    /* no choices: the answer begins with a reference */
    { "Paris", { "Paris" }, { 0 }, true },
    { " \n\tParis.", { "Paris" }, { 0 }, true },
    { "Paris", { "Rome", "Paris" }, { 0 }, true },
    { "Paris", { " Paris\n" }, { 0 }, true },
    { "Paris", { "paris" }, { 0 }, false },
    { "It is Paris", { "Paris" }, { 0 }, false },
    { "Parisian", { "Paris" }, { 0 }, false },
    { "42", { "4" }, { 0 }, false },
    { "4, I think", { "4" }, { 0 }, true },
    { "4\xc2\xb0", { "4" }, { 0 }, true },
    { "caf\xc3\xa9", { "caf" }, { 0 }, false },
    { "\xe5\x8c\x97\xe4\xba\xac", { "\xe5\x8c\x97" }, { 0 }, false },
    { "\xe5\x8c\x97\xe3\x80\x82", { "\xe5\x8c\x97" }, { 0 }, true },
    { "yes \xe2\x80\x94 no", { "yes" }, { 0 }, true },
    { "yes\xe2\x80\x94no", { "yes" }, { 0 }, true },
    { "", { "x" }, { 0 }, false },
    { "x", { 0 }, { 0 }, false },
    /* choices: the first that stands alone */
    { "B", { "B" }, { "A", "B", "C" }, true },
    { "(B) because A", { "B" }, { "A", "B", "C" }, true },
    { "The answer is C.", { "C" }, { "A", "B", "C" }, true },
    { "Because B", { "B" }, { "A", "B", "C" }, true },
    { "A or B", { "B" }, { "A", "B" }, false },
    { "ABBA", { "B" }, { "A", "B" }, false },
    { "B1 B", { "B" }, { "A", "B" }, true },
    { "\xc3\x84"
      "B B2",
      { "B" },
      { "A", "B" },
      false },
    { "I say no", { "no" }, { "no", "no way" }, true },
    { "no way", { "no" }, { "no", "no way" }, false },
    { "no way", { "no way" }, { "no", "no way" }, true },
    { "nothing of these", { "A" }, { "A", "B" }, false },
    { "", { "A" }, { "A" }, false },
    { "D", { "D" }, { "A", "B" }, false },
    { "x", { "" }, { "" }, false },
    { "answer: A", { "A" }, { " A", " B" }, true },
};

static size_t count(const char *const *texts)
{
    size_t n = 0;

    while (texts[n])
        n++;
    return n;
}

static void an_answer_is_right_as_its_row_says(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        const right_row *row = &rows[i];
        bal_probe probe = {
            .id = "1",
            .references = row->references,
            .reference_count = count(row->references),
            .choices = row->choices,
            .choice_count = count(row->choices),
        };
        char name[128];

        snprintf(name, sizeof(name), "%zu '%s'", i, row->output);
        check_row(name);
        CHECK(bal_probe_right(&probe, row->output) == row->right);
    }
}

static const check_test tests[] = {
    { TEST(an_answer_is_right_as_its_row_says) },
};

CHECK_MAIN(tests)
