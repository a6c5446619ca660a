/* Files of probes of any bytes: what is accepted is a set within its limits
 * that survives json -> read -> json, and what is not is told. The first byte
 * says what the file is called and how it is read. */
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/str.h"
#include "probe/probes_inside.h"
#include "probe/runner.h"
#include "support/fuzz.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_probe(const bal_probes *set, size_t i)
{
    const bal_probe *probe = bal_probes_at(set, i);
    const char *asked = probe->prompt ? probe->prompt : probe->messages;

    must(!probe->prompt != !probe->messages);
    must(asked[0] && strlen(asked) <= BAL_PROBE_PROMPT);
    must(probe->id[0] && strlen(probe->id) <= BAL_PROBE_ID);
    must(bal_probes_find(set, probe->id) == i);
    must(probe->max_tokens <= BAL_PROBE_TOKENS);
    for (size_t k = 0; k < probe->reference_count; k++)
        must(probe->references[k][0]);
    for (size_t k = 0; k < probe->choice_count; k++)
        must(probe->choices[k][0]);
    for (size_t k = 0; k < probe->stop_count; k++)
        must(probe->stop[k][0]);
}

static void check_set(const bal_probes *set)
{
    BAL_LOCAL(bal_buf) canonical = { 0 };
    BAL_OWN(json_t) value = NULL;
    BAL_OWN(bal_probes) back = NULL;
    const char *json = bal_probes_json(set);
    size_t len = strlen(json);

    must(bal_probes_count(set) > 0);
    for (size_t i = 0; i < bal_probes_count(set); i++)
        check_probe(set, i);
    must(!bal_json_parse(&value, json, len, "set", NULL));
    must(!bal_json_canonical(&canonical, value, NULL));
    must(!strcmp(canonical.data, json));
    must(!bal_probes_read(&back, json, len, NULL));
    must(!strcmp(bal_probes_json(back), json));
    must(bal_id_equal(bal_probes_id(back), bal_probes_id(set)));
    must(
        bal_utf8_valid(bal_probes_unused(set), strlen(bal_probes_unused(set))));
}

/* What is read as a set's own text was one. */
static void check_read(const char *text, size_t len)
{
    BAL_OWN(bal_probes) set = NULL;
    bal_error err = { 0 };
    int rc = bal_probes_read(&set, text, len, &err);

    must(!rc || (rc == BAL_ECORRUPT && err.code == rc && err.text[0]));
    if (rc)
        return;
    must(set->json.len == len && !memcmp(set->json.data, text, len));
    check_set(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = { "p.txt", "p.jsonl", "p.csv", "p" };
    static const char *const patterns[] = { NULL, "{{q}}", "{{ q }}{{n}}?",
                                            "{{q|f}}" };
    BAL_OWN(bal_probes) set = NULL;
    bal_error err = { 0 };

    if (!size)
        return 0;
    const char *text = (const char *)data + 1;
    const bal_probes_options options = {
        .pattern = patterns[data[0] >> 2 & 3],
        .flags = data[0] & 16 ? BAL_PROBES_ESCAPES : 0,
    };
    if (data[0] & 32) {
        check_read(text, size - 1);
        return 0;
    }
    int rc = bal_probes_parse(&set, paths[data[0] & 3],
                              (bal_bytes){ text, size - 1 }, &options, &err);
    must(!rc || (rc == BAL_EINVAL && err.code == rc && err.text[0]));
    if (!rc)
        check_set(set);
    return 0;
}
