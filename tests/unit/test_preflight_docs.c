/* docs/preflight.md is kept by hand: its table says what the rules do. */
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/str.h"
#include "model/preflight.h"
#include "support/check.h"

enum { CELLS = 8, PAGE_MAX = 1 << 20 };

static const char *const words[] = {
    [BAL_OUTCOME_REFUSED] = "refused",
    [BAL_OUTCOME_WRONG] = "wrong",
    [BAL_OUTCOME_FATAL] = "fatal",
    [BAL_OUTCOME_NOTED] = "noted",
};

static void read_page(bal_buf *to)
{
    const char *tree = getenv("BALLAST_TREE");
    char *path = bal_path_join(tree ? tree : "../..", "docs/preflight.md");

    CHECK(path);
    CHECK_OK(bal_file_slurp(to, path, PAGE_MAX, &check_err));
    bal_str_free(path);
}

static bool is_row(const char *line)
{
    return !strncmp(line, "| `", 3);
}

/* The next row of the table, behind `at`; NULL: there is none. */
static char *next_row(char *at)
{
    while (at && !is_row(at)) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    return at;
}

/* Cut a row at its bars; gives where the next line begins. */
static char *cut(char *row, char *cells[CELLS])
{
    char *end = strchr(row, '\n');
    char *at = row + 2;

    CHECK(end);
    *end = '\0';
    for (size_t i = 0; i < CELLS; i++) {
        char *bar = strstr(at, " |");
        CHECK(bar);
        *bar = '\0';
        cells[i] = at + (*at == ' ');
        at = bar + 2;
    }
    return end + 1;
}

static void check_rule(const bal_rule *rule, char *cells[CELLS])
{
    char name[64];

    check_row(rule->name);
    snprintf(name, sizeof(name), "`%s`", rule->name);
    CHECK(!strcmp(cells[0], name));
    for (size_t i = 0; i < BAL_ENGINES; i++) {
        int outcome = rule->outcomes[i];
        const char *want = outcome == BAL_OUTCOME_NONE ? "" : words[outcome];
        CHECK(!strcmp(cells[2 + i], want));
    }
    CHECK(!strcmp(cells[6], rule->then ? rule->then : ""));
    CHECK(!strcmp(cells[7], rule->adapt ? rule->adapt : ""));
}

static void the_page_has_each_rule_as_it_is(void)
{
    BAL_LOCAL(bal_buf) page = { 0 };
    char *cells[CELLS];

    read_page(&page);
    char *at = next_row((char *)page.data);
    for (size_t i = 0; i < bal_flight_rules_count; i++) {
        check_row(bal_flight_rules[i].name);
        CHECK(at);
        char *behind = cut(at, cells);
        check_rule(&bal_flight_rules[i], cells);
        at = next_row(behind);
    }
    CHECK(!at);
}

static const check_test tests[] = {
    { TEST(the_page_has_each_rule_as_it_is) },
};

CHECK_MAIN(tests)
