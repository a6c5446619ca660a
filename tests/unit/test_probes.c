/* Sets of probes: what files hold, and what they may not. The oracle of what is
 * accepted is probes_rows.h. */
#include <pthread.h>
#include <string.h>

#include "core/hash.h"
#include "core/str.h"
#include "probe/probes_inside.h"
#include "probe/runner.h"
#include "probes_rows.h"
#include "probes_wrong.h"
#include "support/check.h"
#include "support/files.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static bal_bytes bytes(const char *text)
{
    return (bal_bytes){ text, strlen(text) };
}

/* The same set of its own JSON. */
static void check_read_back(const bal_probes *set)
{
    BAL_OWN(bal_probes) back = NULL;
    const char *json = bal_probes_json(set);

    CHECK_OK(bal_probes_read(&back, json, strlen(json), &check_err));
    CHECK(!strcmp(bal_probes_json(back), json));
    CHECK(bal_id_equal(bal_probes_id(back), bal_probes_id(set)));
    CHECK(bal_probes_count(back) == bal_probes_count(set));
    CHECK(!bal_probes_unused(back)[0]);
}

static void check_canonical(const bal_probes *set)
{
    BAL_LOCAL(bal_buf) canonical = { 0 };
    BAL_OWN(json_t) value = NULL;
    const char *json = bal_probes_json(set);

    CHECK_OK(bal_json_parse(&value, json, strlen(json), "set", &check_err));
    CHECK_OK(bal_json_canonical(&canonical, value, &check_err));
    CHECK(!strcmp(canonical.data, json));
}

static void files_are_sets_by_what_is_in_them(void)
{
    for (size_t i = 0; i < COUNT(probes_rows); i++) {
        const bal_probes_options options = {
            .pattern = probes_rows[i].pattern,
            .flags = probes_rows[i].escapes ? BAL_PROBES_ESCAPES : 0,
        };
        BAL_OWN(bal_probes) set = NULL;
        char hex[BAL_ID_HEX + 1];

        check_row(probes_rows[i].name);
        CHECK_OK(bal_probes_parse(&set, probes_rows[i].path,
                                  bytes(probes_rows[i].text), &options,
                                  &check_err));
        CHECK(!strcmp(bal_probes_json(set), probes_rows[i].json));
        CHECK(!strcmp(bal_probes_unused(set), probes_rows[i].unused));
        bal_id_hex(hex, bal_probes_id(set));
        CHECK(!strcmp(hex, probes_rows[i].id));
        check_canonical(set);
        check_read_back(set);
    }
}

static void mistakes_are_told_with_their_line(void)
{
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const bal_probes_options options = { .pattern = wrong[i].pattern };
        BAL_OWN(bal_probes) set = NULL;

        check_row(wrong[i].why);
        CHECK_RC(BAL_EINVAL,
                 bal_probes_parse(&set, wrong[i].path, bytes(wrong[i].text),
                                  &options, &check_err));
        CHECK(bal_glob(wrong[i].why, check_err.text));
        CHECK(!set);
        CHECK_RC(BAL_EINVAL,
                 bal_probes_parse(&set, wrong[i].path, bytes(wrong[i].text),
                                  &options, NULL));
    }
}

static void escapes_are_three_and_of_plain_text(void)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "a\nb\\x",
          "p: line 2: no escape '\\x'; there are \\n, \\t and \\\\" },
        { "b\\", "p: line 1: nothing behind a backslash" },
        { "{\"prompt\": \"a\"}", "p: escapes are for plain text, and it is "
                                 "none" },
    };
    const bal_probes_options options = { .flags = BAL_PROBES_ESCAPES };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_OWN(bal_probes) set = NULL;
        check_row(rows[i].text);
        CHECK_RC(BAL_EINVAL, bal_probes_parse(&set, "p", bytes(rows[i].text),
                                              &options, &check_err));
        CHECK(!strcmp(check_err.text, rows[i].why));
    }
}

static void a_nul_byte_is_told_with_its_line(void)
{
    BAL_OWN(bal_probes) set = NULL;

    CHECK_RC(BAL_EINVAL,
             bal_probes_parse(&set, "p", (bal_bytes){ "a\nb\0c", 5 }, NULL,
                              &check_err));
    CHECK(!strcmp(check_err.text, "p: line 2: a nul byte"));
}

static void a_set_gives_what_was_in_it(void)
{
    BAL_OWN(bal_probes) set = NULL;
    const char *text =
        "{\"id\": \"x\", \"prompt\": \"a\", \"reference\": [\"p\", \"q\"], "
        "\"choices\": [\"p\", \"q\", \"r\"], \"stop\": \".\", "
        "\"max_tokens\": 9}\n"
        "{\"messages\": [{\"content\": \"b\", \"role\": \"user\"}]}\n";

    CHECK_OK(bal_probes_parse(&set, "p.jsonl", bytes(text), NULL, &check_err));
    CHECK(bal_probes_count(set) == 2);
    const bal_probe *one = bal_probes_at(set, 0);
    CHECK(!strcmp(one->id, "x") && !strcmp(one->prompt, "a"));
    CHECK(!one->messages && one->max_tokens == 9);
    CHECK(one->reference_count == 2 && !strcmp(one->references[1], "q"));
    CHECK(one->choice_count == 3 && !strcmp(one->choices[2], "r"));
    CHECK(one->stop_count == 1 && !strcmp(one->stop[0], "."));
    const bal_probe *two = bal_probes_at(set, 1);
    CHECK(!two->prompt && !two->max_tokens && !two->reference_count);
    CHECK(!strcmp(two->messages, "[{\"content\":\"b\",\"role\":\"user\"}]"));
    CHECK(bal_probes_find(set, "x") == 0);
    CHECK(bal_probes_find(set, two->id) == 1);
    CHECK(bal_probes_find(set, "y") == BAL_NONE);
}

static void a_file_is_what_its_text_is(void)
{
    BAL_OWN(bal_probes) a = NULL;
    BAL_OWN(bal_probes) b = NULL;
    BAL_OWN(bal_probes) c = NULL;
    static const char *const prompts[] = { "a", "b" };
    const char *path = file_path("p.txt");

    file_text(path, "a\nb\n");
    CHECK_OK(bal_probes_open(&a, path, NULL, &check_err));
    CHECK_OK(bal_probes_of(&b, prompts, 2, &check_err));
    CHECK(bal_id_equal(bal_probes_id(a), bal_probes_id(b)));
    check_read_back(b);
    CHECK_RC(BAL_ENOTFOUND,
             bal_probes_open(&c, file_path("none"), NULL, &check_err));
    CHECK_RC(BAL_EINVAL, bal_probes_open(&c, check_dir(), NULL, &check_err));
}

static void prompts_are_checked_like_files(void)
{
    static const struct {
        const char *prompts[3];
        size_t count;
        const char *why;
    } rows[] = {
        { { NULL }, 0, "no probes in it" },
        { { "a", "" }, 2, "prompt 2: an empty prompt" },
        { { "a", "b", "a" }, 3, "prompt 3: asks the same as prompt 1" },
        { { "\xff" }, 1, "prompt 1: not utf-8" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_OWN(bal_probes) set = NULL;
        check_row(rows[i].why);
        CHECK_RC(BAL_EINVAL, bal_probes_of(&set, rows[i].prompts, rows[i].count,
                                           &check_err));
        CHECK(!strcmp(check_err.text, rows[i].why));
    }
}

#define SCHEMA "\"schema\":\"ballast/probes/1\"}"

static void only_the_canonical_text_is_read(void)
{
    static const struct {
        const char *json, *why;
    } rows[] = {
        { "", "it does not begin with '{\"probes\":['" },
        { "{\"probes\":[", "probe 1: json: expected a value at byte 11" },
        { "{\"probes\":[]," SCHEMA, "no probes in it" },
        { "{ \"probes\":[{\"id\":\"a\",\"prompt\":\"b\"}]," SCHEMA,
          "it does not begin with '{\"probes\":['" },
        { "{\"probes\":[{\"id\":\"a\", \"prompt\":\"b\"}]," SCHEMA,
          "not in canonical form" },
        { "{\"probes\":[{\"prompt\":\"b\",\"id\":\"a\"}]," SCHEMA,
          "not in canonical form" },
        { "{\"probes\":[{\"prompt\":\"b\"}]," SCHEMA, "not in canonical form" },
        { "{\"probes\":[{\"id\":1,\"prompt\":\"b\"}]," SCHEMA,
          "not in canonical form" },
        { "{\"probes\":[{\"id\":\"a\",\"prompt\":\"b\",\"x\":1}]," SCHEMA,
          "not in canonical form" },
        { "{\"probes\":[{\"id\":\"a\",\"prompt\":\"\\u0062\"}]," SCHEMA,
          "not in canonical form" },
        { "{\"probes\":[{\"id\":\"a\",\"prompt\":\"b\",\"reference\":\"c\"}]," SCHEMA,
          "not in canonical form" },
        { "{\"probes\":[{\"id\":\"a\",\"prompt\":\"b\"}]," SCHEMA " ",
          "not in canonical form" },
        { "{\"probes\":[{\"id\":\"a\",\"prompt\":\"b\"}],\"schema\":"
          "\"ballast/probes/2\"}",
          "not in canonical form" },
        { "{\"probes\":[{\"id\":\"a\",\"prompt\":\"b\"}]}",
          "not in canonical form" },
        { "{\"probes\":[7]," SCHEMA, "probe 1: no json object" },
        { "{\"probes\":[{\"id\":\"a\",\"prompt\":\"b\"},{\"id\":\"a\","
          "\"prompt\":\"c\"}]," SCHEMA,
          "probe 2: the id 'a' is that of probe 1, too" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_OWN(bal_probes) set = NULL;
        char want[160];
        check_row(rows[i].json);
        CHECK_RC(BAL_ECORRUPT,
                 bal_probes_read(&set, rows[i].json, strlen(rows[i].json),
                                 &check_err));
        snprintf(want, sizeof(want), "set of probes: %s", rows[i].why);
        CHECK(!strcmp(check_err.text, want) && check_err.code == BAL_ECORRUPT);
        CHECK_RC(BAL_ECORRUPT, bal_probes_read(&set, rows[i].json,
                                               strlen(rows[i].json), NULL));
    }
}

/* Every text of a set that is cut short, or has a byte changed, is no set or
 * another one. */
static void a_damaged_text_is_not_the_same_set(void)
{
    const char *json = probes_rows[13].json;
    size_t len = strlen(json);
    BAL_LOCAL(bal_buf) text = { 0 };

    for (size_t i = 0; i < len; i++) {
        BAL_OWN(bal_probes) set = NULL;
        char hex[BAL_ID_HEX + 1] = "";

        CHECK_RC(BAL_ECORRUPT, bal_probes_read(&set, json, i, &check_err));
        bal_buf_clear(&text);
        CHECK_OK(bal_buf_text(&text, json, &check_err));
        text.data[i] ^= 1;
        if (bal_probes_read(&set, text.data, len, NULL))
            continue;
        bal_id_hex(hex, bal_probes_id(set));
        CHECK(!strcmp(bal_probes_json(set), text.data));
        CHECK(strcmp(hex, probes_rows[13].id) != 0);
    }
}

/* `count` times one character. */
static void fill(bal_buf *to, char c, size_t count)
{
    CHECK_OK(bal_buf_reserve(to, count, &check_err));
    memset(to->data + to->len, c, count);
    to->len += count;
    to->data[to->len] = '\0';
}

static int parse(bal_probes **out, const char *path, const bal_buf *text)
{
    return bal_probes_parse(out, path, (bal_bytes){ text->data, text->len },
                            NULL, &check_err);
}

static void a_prompt_has_a_mebibyte_at_most(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(bal_probes) set = NULL;
    BAL_OWN(bal_probes) more = NULL;

    fill(&text, 'a', BAL_PROBE_PROMPT);
    CHECK_OK(parse(&set, "p", &text));
    check_read_back(set);
    fill(&text, 'a', 1);
    CHECK_RC(BAL_EINVAL, parse(&more, "p", &text));
    CHECK(!strcmp(check_err.text,
                  "p: line 1: a prompt of 1048577 bytes; 1048576 are the "
                  "most"));
}

static void a_pattern_cannot_make_more_of_it(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(bal_probes) set = NULL;
    const bal_probes_options options = { .pattern = "{{q}}{{q}}{{q}}" };

    CHECK_OK(bal_buf_text(&text, "q\n", &check_err));
    fill(&text, 'a', BAL_PROBE_PROMPT / 2);
    CHECK_RC(BAL_EINVAL,
             bal_probes_parse(&set, "p.csv", (bal_bytes){ text.data, text.len },
                              &options, &check_err));
    CHECK(!strcmp(check_err.text,
                  "p.csv: line 2: its prompt: more than 1048576 bytes"));
}

static void an_id_has_256_bytes_at_most(void)
{
    for (size_t more = 0; more < 2; more++) {
        BAL_LOCAL(bal_buf) text = { 0 };
        BAL_OWN(bal_probes) set = NULL;

        CHECK_OK(
            bal_buf_text(&text, "{\"prompt\":\"a\",\"id\":\"", &check_err));
        fill(&text, 'x', BAL_PROBE_ID + more);
        CHECK_OK(bal_buf_text(&text, "\"}", &check_err));
        CHECK_RC(more ? BAL_EINVAL : 0, parse(&set, "p", &text));
    }
}

static void a_list_has_1024_texts_at_most(void)
{
    for (size_t more = 0; more < 2; more++) {
        BAL_LOCAL(bal_buf) text = { 0 };
        BAL_OWN(bal_probes) set = NULL;

        CHECK_OK(bal_buf_text(&text, "{\"prompt\":\"a\",\"stop\":[\"x\"",
                              &check_err));
        for (size_t i = 1; i < BAL_PROBE_LIST + more; i++)
            CHECK_OK(bal_buf_text(&text, ",\"x\"", &check_err));
        CHECK_OK(bal_buf_text(&text, "]}", &check_err));
        CHECK_RC(more ? BAL_EINVAL : 0, parse(&set, "p", &text));
    }
}

static void a_line_has_8_mebibytes_at_most(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(bal_probes) set = NULL;

    CHECK_OK(bal_buf_text(&text, "{\"prompt\":\"a\",\"tags\":\"", &check_err));
    fill(&text, 'x', BAL_PROBE_TEXT - text.len - 2);
    CHECK_OK(bal_buf_text(&text, "\"}", &check_err));
    CHECK_OK(parse(&set, "p", &text));
    CHECK_OK(bal_buf_text(&text, " ", &check_err));
    BAL_OWN(bal_probes) more = NULL;
    CHECK_RC(BAL_EINVAL, parse(&more, "p", &text));
    CHECK(!strcmp(check_err.text, "p: line 1: more than 8388608 bytes"));
}

/* What is short in a file may be long as JSON. */
static void a_probe_has_8_mebibytes_as_json_at_most(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_buf) json = { 0 };
    BAL_OWN(bal_probes) set = NULL;

    CHECK_OK(bal_buf_text(&text, "prompt,__expected\na,x", &check_err));
    fill(&text, '\1', BAL_PROBE_TEXT / 6);
    CHECK_RC(BAL_EINVAL, parse(&set, "p.csv", &text));
    CHECK(!strcmp(check_err.text,
                  "p.csv: line 2: a probe of more than 8388608 bytes"));
    CHECK_OK(bal_buf_text(&json, "{\"probes\":[{\"id\":\"", &check_err));
    fill(&json, 'x', BAL_PROBE_TEXT);
    CHECK_OK(bal_buf_text(&json, "\"}]," SCHEMA, &check_err));
    CHECK_RC(BAL_ECORRUPT,
             bal_probes_read(&set, json.data, json.len, &check_err));
    CHECK(!strcmp(check_err.text,
                  "set of probes: probe 1: more than 8388608 bytes"));
}

static void a_set_has_a_million_probes_at_most(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(bal_probes) set = NULL;
    BAL_OWN(bal_probes) more = NULL;

    for (size_t i = 0; i < BAL_PROBES_MAX; i++)
        CHECK_OK(bal_buf_format(&text, &check_err,
                                "{\"id\":\"%zu\",\"prompt\":\"a\"}\n", i));
    CHECK_OK(parse(&set, "p", &text));
    CHECK(bal_probes_count(set) == BAL_PROBES_MAX);
    CHECK(bal_probes_find(set, "999999") == BAL_PROBES_MAX - 1);
    check_read_back(set);
    CHECK_OK(
        bal_buf_text(&text, "{\"id\":\"x\",\"prompt\":\"a\"}", &check_err));
    CHECK_RC(BAL_EINVAL, parse(&more, "p", &text));
    CHECK(!strcmp(check_err.text, "p: line 1000001: more than 1000000 probes"));
}

static void what_is_listed_as_unused_ends_somewhere(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(bal_probes) set = NULL;

    CHECK_OK(bal_buf_text(&text, "{\"prompt\":\"a\"", &check_err));
    for (size_t i = 0; i < 20000; i++)
        CHECK_OK(bal_buf_format(&text, &check_err, ",\"key%zu\":1", i));
    CHECK_OK(bal_buf_text(&text, "}", &check_err));
    CHECK_OK(parse(&set, "p", &text));
    CHECK(strlen(bal_probes_unused(set)) < BAL_PROBES_UNUSED);
    CHECK(!strncmp(bal_probes_unused(set), "key0\nkey1\n", 10));
}

static void *take_and_give(void *set)
{
    for (size_t i = 0; i < 10000; i++) {
        bal_probes *mine = bal_probes_ref(set);
        bal_probes_free(mine);
    }
    return NULL;
}

static void a_set_lives_as_long_as_its_last_owner(void)
{
    static const char *const prompts[] = { "a" };
    BAL_OWN(bal_probes) set = NULL;
    pthread_t thread;

    CHECK_OK(bal_probes_of(&set, prompts, 1, &check_err));
    bal_probes *other = bal_probes_ref(set);
    CHECK(other == set && !bal_probes_ref(NULL));
    CHECK(!pthread_create(&thread, NULL, take_and_give, set));
    take_and_give(set);
    CHECK(!pthread_join(thread, NULL));
    bal_probes_free(other);
    CHECK(!strcmp(bal_probes_at(set, 0)->prompt, "a"));
}

static const check_test tests[] = {
    { TEST(files_are_sets_by_what_is_in_them) },
    { TEST(mistakes_are_told_with_their_line) },
    { TEST(escapes_are_three_and_of_plain_text) },
    { TEST(a_nul_byte_is_told_with_its_line) },
    { TEST(a_set_gives_what_was_in_it) },
    { TEST(a_file_is_what_its_text_is) },
    { TEST(prompts_are_checked_like_files) },
    { TEST(only_the_canonical_text_is_read) },
    { TEST(a_damaged_text_is_not_the_same_set) },
    { TEST(a_prompt_has_a_mebibyte_at_most) },
    { TEST(a_pattern_cannot_make_more_of_it) },
    { TEST(an_id_has_256_bytes_at_most) },
    { TEST(a_list_has_1024_texts_at_most) },
    { TEST(a_line_has_8_mebibytes_at_most) },
    { TEST(a_probe_has_8_mebibytes_as_json_at_most) },
    { TEST(a_set_has_a_million_probes_at_most) },
    { TEST(what_is_listed_as_unused_ends_somewhere) },
    { TEST(a_set_lives_as_long_as_its_last_owner) },
};

CHECK_MAIN(tests)
