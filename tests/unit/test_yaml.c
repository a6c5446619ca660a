/* YAML: the oracle is PyYAML, see yaml_rows.h. */
#include <stdlib.h>
#include <string.h>

#include "core/yaml.h"
#include "support/check.h"
#include "yaml_rows.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static int parse(bal_yaml *out, const char *text)
{
    return bal_yaml_parse(out, text, strlen(text), "x.yml", &check_err);
}

static void texts_are_what_pyyaml_makes_of_them(void)
{
    for (size_t i = 0; i < COUNT(yaml_rows); i++) {
        BAL_LOCAL(bal_yaml) yaml = { 0 };
        BAL_OWN(json_t) got = NULL;
        BAL_OWN(json_t) want = NULL;

        check_row(yaml_rows[i].text);
        CHECK_OK(parse(&yaml, yaml_rows[i].text));
        const bal_yaml_node none = { .type = BAL_YAML_NULL };
        CHECK_OK(bal_yaml_json(&got, yaml.count ? yaml.documents[0] : &none,
                               &check_err));
        want = json_loads(yaml_rows[i].json, JSON_DECODE_ANY, NULL);
        CHECK(want && json_equal(got, want));
    }
}

static void mistakes_are_refused_with_their_place(void)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "{a: 1,\n a: 2}", "x.yml: line 2, column 2: 'a' is there twice, and "
                            "in line 1" },
        { "[*a]", "x.yml: line 1, column 2: no anchor 'a'" },
        { "&a [*a]", "x.yml: line 1, column 5: 'a' is an alias of what it "
                     "stands in" },
        { "- &a 1\n- &a 2", "x.yml: line 2, column 3: the anchor 'a' is there "
                            "twice" },
        { "a: !!python/name:x y", "x.yml: line 1, column 4: the tag "
                                  "'tag:yaml.org,2002:python/name:x' is not "
                                  "known" },
        { "!!set {a}", "x.yml: line 1, column 1: the tag "
                       "'tag:yaml.org,2002:set' is not known" },
        { "!!int x", "x.yml: line 1, column 1: 'x' is not an int" },
        { "!!int 1.5", "x.yml: line 1, column 1: '1.5' is not an int" },
        { "0x_", "x.yml: line 1, column 1: '0x_' is not an int" },
        { "? [a]\n: b", "x.yml: line 1, column 3: a key that is no scalar" },
        { "a: {<<: 1}", "x.yml: line 1, column 9: '<<' takes a map or a list "
                        "of maps" },
        { "\"a\\0b\"", "x.yml: line 1, column 1: a text with a nul byte" },
        { "a: b\n\t- c",
          "x.yml: line 2, column 1: found a tab character that violates indentation" },
        { "a: @x", "x.yml: line 1, column 4: found character that cannot start "
                   "any token" },
        { "a: \"E:\\m\"", "x.yml: line 1, column 7: found unknown escape "
                          "character" },
        { "\xff", "x.yml: byte 0: invalid leading UTF-8 octet" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_yaml) yaml = { 0 };

        check_row(rows[i].text);
        CHECK_RC(BAL_EINVAL, parse(&yaml, rows[i].text));
        CHECK(!strcmp(check_err.text, rows[i].why));
        CHECK(!yaml.documents && !yaml.count);
    }
}

static void documents_are_told_apart_and_anchors_are_of_one(void)
{
    BAL_LOCAL(bal_yaml) yaml = { 0 };

    CHECK_OK(parse(&yaml, "a: &x 1\n---\nb: &x 2\nc: *x\n--- 3\n"));
    CHECK(yaml.count == 3);
    CHECK(bal_yaml_get(yaml.documents[1], "c")->integer == 2);
    CHECK(yaml.documents[2]->integer == 3 && yaml.documents[2]->line == 5);
    CHECK(!bal_yaml_get(yaml.documents[2], "c"));
    CHECK_RC(BAL_EINVAL, parse(&yaml, "a: &x 1\n---\nb: *x\n"));
}

static void scalars_keep_how_they_are_written(void)
{
    static const char *const texts[] = { "007", "1.50", "on", "~", "1e5" };
    BAL_LOCAL(bal_yaml) yaml = { 0 };

    CHECK_OK(parse(&yaml, "[007, 1.50, on, ~, 1e5]"));
    for (size_t i = 0; i < COUNT(texts); i++)
        CHECK(!strcmp(yaml.documents[0]->items[i]->text, texts[i]));
    CHECK(yaml.documents[0]->items[0]->number == 7);
    CHECK(yaml.documents[0]->items[1]->column == 7);
}

static void what_is_not_finite_stays_text(void)
{
    static const char *const texts[] = { ".inf", "-.Inf", ".NaN", "1.0e+999" };

    for (size_t i = 0; i < COUNT(texts); i++) {
        BAL_LOCAL(bal_yaml) yaml = { 0 };
        check_row(texts[i]);
        CHECK_OK(parse(&yaml, texts[i]));
        CHECK(yaml.documents[0]->type == BAL_YAML_TEXT);
    }
}

static void an_integer_of_many_bits_is_a_float(void)
{
    BAL_LOCAL(bal_yaml) yaml = { 0 };

    CHECK_OK(parse(&yaml, "[9223372036854775808, -0xffffffffffffffffff]"));
    CHECK(yaml.documents[0]->items[0]->type == BAL_YAML_FLOAT);
    CHECK(yaml.documents[0]->items[0]->number == 0x1p63);
    CHECK(yaml.documents[0]->items[1]->number == -0x1p72);
}

/* "[[[…]]]", levels of it. */
static void nest(char *to, size_t levels)
{
    memset(to, '[', levels);
    memset(to + levels, ']', levels);
    to[2 * levels] = '\0';
}

static void depth_is_bounded_with_aliases_counted(void)
{
    char text[4 * BAL_YAML_DEPTH + 64];
    char more[8 * BAL_YAML_DEPTH];
    BAL_LOCAL(bal_yaml) yaml = { 0 };

    nest(text, BAL_YAML_DEPTH);
    CHECK_OK(parse(&yaml, text));
    bal_yaml_done(&yaml);
    nest(text, BAL_YAML_DEPTH + 1);
    CHECK_RC(BAL_EINVAL, parse(&yaml, text));
    nest(text, BAL_YAML_DEPTH - 1);
    snprintf(more, sizeof(more), "- &a %s\n- 1", text);
    CHECK_OK(parse(&yaml, more));
    bal_yaml_done(&yaml);
    snprintf(more, sizeof(more), "- &a %s\n- [*a]", text);
    CHECK_RC(BAL_EINVAL, parse(&yaml, more));
}

static void laughs_are_counted_before_they_are_many(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_yaml) yaml = { 0 };

    CHECK_OK(bal_buf_text(&text, "- &a0 [x, x, x, x, x, x, x, x, x, x]\n",
                          &check_err));
    for (int i = 1; i < 10; i++) {
        CHECK_OK(bal_buf_format(&text, &check_err, "- &a%d [", i));
        for (int k = 0; k < 10; k++)
            CHECK_OK(bal_buf_format(&text, &check_err, "*a%d,", i - 1));
        CHECK_OK(bal_buf_text(&text, "]\n", &check_err));
    }
    CHECK_RC(BAL_EINVAL, parse(&yaml, bal_buf_string(&text)));
    CHECK(strstr(check_err.text, "more than 100000 values"));
}

static void a_long_text_is_refused_unread(void)
{
    char *text = calloc(1, BAL_YAML_BYTES + 2);
    BAL_LOCAL(bal_yaml) yaml = { 0 };

    CHECK(text != NULL);
    memset(text, '#', BAL_YAML_BYTES + 1);
    CHECK_RC(BAL_EINVAL, parse(&yaml, text));
    text[BAL_YAML_BYTES] = '\0';
    CHECK_OK(parse(&yaml, text));
    CHECK(!yaml.count);
    free(text);
}

static const check_test tests[] = {
    { TEST(texts_are_what_pyyaml_makes_of_them) },
    { TEST(mistakes_are_refused_with_their_place) },
    { TEST(documents_are_told_apart_and_anchors_are_of_one) },
    { TEST(scalars_keep_how_they_are_written) },
    { TEST(what_is_not_finite_stays_text) },
    { TEST(an_integer_of_many_bits_is_a_float) },
    { TEST(depth_is_bounded_with_aliases_counted) },
    { TEST(laughs_are_counted_before_they_are_many) },
    { TEST(a_long_text_is_refused_unread) },
};

CHECK_MAIN(tests)
