/* Sets of probes with allocations that fail: ENOMEM or the set, and nothing is
 * lost of memory. */
#include <string.h>

#include "probe/probes_inside.h"
#include "torture/alloc_walk.h"

static const struct {
    const char *path, *text;
} files[] = {
    { "p.txt", "a\nb\n" },
    { "p.jsonl", "{\"prompt\": \"a\", \"reference\": [\"x\"], \"stop\": \".\", "
                 "\"other\": 1}\n"
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"b\"}]}" },
    { "p.jsonl", "{\"vars\": {\"prompt\": \"a\", \"n\": 1.5}, \"assert\": "
                 "[{\"type\": \"equals\", \"value\": \"{{n}}\"}]}" },
    { "p.csv", "prompt,__expected,x\n\"a\",is-json,y\nb,{{x}},z\n" },
    { "p.jsonl", "{\"doc_id\": 0, \"target\": 1, \"arguments\": "
                 "[[\"a\", \" x\"], [\"a\", \" y\"]]}" },
    { "p.jsonl", "{\"doc_id\": 0, \"target\": \"z\", \"arguments\": "
                 "[[\"a\", {\"until\": \"x\", \"max_gen_toks\": 9}]]}" },
};
static size_t which;

static int open_file(session *self)
{
    bal_probes *set = NULL;
    bal_probes *back = NULL;
    int rc = bal_probes_parse(
        &set, files[which].path,
        (bal_bytes){ files[which].text, strlen(files[which].text) }, NULL,
        &self->err);

    if (!rc)
        rc = bal_probes_read(&back, bal_probes_json(set),
                             strlen(bal_probes_json(set)), &self->err);
    bal_probes_free(back);
    bal_probes_free(set);
    return rc;
}

static void walk_file(bool all)
{
    bool failed = true;

    for (long n = 1; failed; n++) {
        int rc = run_once(open_file, n, all, &failed);
        CHECK(rc == 0 || rc == BAL_ENOMEM);
        CHECK(rc == 0 || failed);
    }
}

static void reading(void)
{
    for (which = 0; which < sizeof(files) / sizeof(files[0]); which++) {
        check_row(files[which].text);
        run_well(open_file);
        walk_file(false);
        walk_file(true);
    }
}

static const check_test tests[] = {
    { TEST(reading) },
};

int main(void)
{
    return walk_main(tests, sizeof(tests) / sizeof(tests[0]));
}
