/* Vocabularies of tokenizer.json: what is read is what the tokenizers library
 * 0.23.3 gave as get_vocab() for the same texts, and what is written was loaded
 * by it. */
#include <stdlib.h>
#include <string.h>

#include "merge/vocab_words.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define WORD_LEVEL  "{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":"

static bal_bytes bytes(const char *text)
{
    return (bal_bytes){ text, strlen(text) };
}

typedef struct pair {
    const char *text;
    uint32_t id;
} pair;

typedef struct read_row {
    const char *text;
    pair words[8];
} read_row;

static void a_vocabulary_is_read_as_the_library_loads_it(void)
{
    static const read_row rows[] = {
        { "{\"model\":" WORD_LEVEL "{\"a\":0,\"b\":1}}}",
          { { "a", 0 }, { "b", 1 } } },
        /* What an added token says of its id does not count. */
        { "{\"model\":" WORD_LEVEL
          "{\"a\":0,\"b\":1,\"c\":2}},\"added_tokens\":[{\"id\":10,\"content\":"
          "\"x\"},{\"id\":11,\"content\":\"y\",\"special\":true}]}",
          { { "a", 0 }, { "b", 1 }, { "c", 2 }, { "x", 3 }, { "y", 4 } } },
        { "{\"added_tokens\":[{\"id\":6,\"content\":\"x\"},{\"id\":7,"
          "\"content\":\"y\"}],\"model\":" WORD_LEVEL
          "{\"a\":0,\"b\":1,\"c\":5}}}",
          { { "a", 0 }, { "b", 1 }, { "x", 3 }, { "y", 4 }, { "c", 5 } } },
        /* One that the vocabulary has, has its id; an empty one is none. */
        { "{\"added_tokens\":[{\"content\":\"b\"},{\"content\":\"y\"},"
          "{\"content\":\"c\"},{\"content\":\"\"},{\"content\":\"y\"},"
          "{\"content\":\"z\"}],\"model\":" WORD_LEVEL
          "{\"a\":0,\"b\":1,\"c\":5}}}",
          { { "a", 0 }, { "b", 1 }, { "y", 3 }, { "z", 4 }, { "c", 5 } } },
        { "{\"added_tokens\":[{\"content\":\"y\"},{\"content\":\"x\"}],"
          "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",0.0],"
          "[\"b\",-1.0],[\"b\",-2e1]]}}",
          { { "a", 0 }, { "b", 2 }, { "y", 3 }, { "x", 4 } } },
        { "{\"added_tokens\":[],\"model\":" WORD_LEVEL "{\"a\":0,\"a\":1}}}",
          { { "a", 1 } } },
        { "{\"added_tokens\":[],\"model\":" WORD_LEVEL
          "{\"a\":0,\"b\":1,\"c\":1}}}",
          { { "a", 0 }, { "b", 1 }, { "c", 1 } } },
        { "{\"model\":" WORD_LEVEL "{\"\\u0120\\\"\":0}}}",
          { { "\xc4\xa0\"", 0 } } },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_words) words = { 0 };
        size_t count = 0;

        check_row(rows[i].text);
        CHECK_OK(bal_words_read(&words, bytes(rows[i].text), "t", &check_err));
        for (const pair *want = rows[i].words; want->text; want++, count++) {
            const bal_word *word =
                bal_words_find(&words, want->text, strlen(want->text));
            CHECK(word && word->id == want->id);
        }
        CHECK(words.count == count);
    }
}

static void added_and_special_are_told_apart(void)
{
    static const char text[] =
        "{\"model\":" WORD_LEVEL "{\"a\":0,\"s\":1}},\"added_tokens\":[{"
        "\"content\":\"s\",\"special\":true},{\"special\":false,\"content\":"
        "\"x\"}]}";
    BAL_LOCAL(bal_words) words = { 0 };

    CHECK_OK(bal_words_read(&words, bytes(text), "t", &check_err));
    const bal_word *a = bal_words_find(&words, "a", 1);
    const bal_word *s = bal_words_find(&words, "s", 1);
    const bal_word *x = bal_words_find(&words, "x", 1);
    CHECK(a && s && x && words.plain == 2);
    CHECK(!a->added && !a->special);
    CHECK(s->added && s->special);
    CHECK(x->added && !x->special);
}

static void words_are_ordered_by_their_ids(void)
{
    static const char text[] =
        "{\"model\":" WORD_LEVEL "{\"c\":2,\"a\":0,\"z\":2,\"b\":1}}}";
    static const char *const order[] = { "a", "b", "c", "z" };
    BAL_LOCAL(bal_words) words = { 0 };
    size_t *got = NULL;

    CHECK_OK(bal_words_read(&words, bytes(text), "t", &check_err));
    CHECK_OK(bal_words_order(&got, &words, &check_err));
    for (size_t i = 0; i < COUNT(order); i++)
        CHECK(!strcmp(words.words[got[i]].text, order[i]));
    free(got);
}

static void what_is_no_vocabulary_is_refused(void)
{
    static const struct {
        const char *text;
        int rc;
    } rows[] = {
        { "", BAL_EUNSUPPORTED },
        { "{", BAL_ECORRUPT },
        { "{}", BAL_EUNSUPPORTED },
        { "{\"model\":{}}", BAL_EUNSUPPORTED },
        { "{\"model\":{\"vocab\":7}}", BAL_EUNSUPPORTED },
        { "{\"model\":{\"vocab\":{\"a\":-1}}}", BAL_ECORRUPT },
        { "{\"model\":{\"vocab\":{\"a\":1.5}}}", BAL_ECORRUPT },
        { "{\"model\":{\"vocab\":{\"a\":4294967295}}}", BAL_ECORRUPT },
        { "{\"model\":{\"vocab\":{\"a\":\"1\"}}}", BAL_ECORRUPT },
        { "{\"model\":{\"vocab\":[1]}}", BAL_ECORRUPT },
        { "{\"model\":{\"vocab\":[[]]}}", BAL_ECORRUPT },
        { "{\"model\":{\"vocab\":[[\"a\",0]", BAL_ECORRUPT },
        { "{\"model\":{\"vocab\":{}},\"added_tokens\":null}", BAL_ECORRUPT },
        { "{\"model\":{\"vocab\":{}},\"added_tokens\":[1]}", BAL_ECORRUPT },
        { "{\"model\":{\"vocab\":{}},\"added_tokens\":[{\"id\":1}]}",
          BAL_ECORRUPT },
        { "{\"model\":{\"vocab\":{}},\"added_tokens\":[{\"content\":1}]}",
          BAL_ECORRUPT },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_words) words = { 0 };

        check_row(rows[i].text);
        CHECK_RC(rows[i].rc, bal_words_read(&words, bytes(rows[i].text),
                                            "the file", &check_err));
        CHECK(strstr(check_err.text, "the file") && !words.count);
    }
}

/* ---- writing --------------------------------------------------------------
 */

typedef struct write_row {
    const char *text;
    uint64_t bound;
    pair fresh[3]; /* added, the last of them special */
    const char *want;
} write_row;

/* The donor's below bound, and what is new. */
static void wanted(bal_words *out, size_t *kept, const bal_words *donor,
                   const write_row *row)
{
    for (size_t i = 0; i < donor->count; i++) {
        if (donor->words[i].id < row->bound)
            CHECK_OK(bal_words_add(out, &donor->words[i], &check_err));
    }
    *kept = out->count;
    for (const pair *new = row->fresh; new->text; new ++) {
        bal_word word = { new->text, strlen(new->text), new->id, true,
                          !(new + 1)->text };
        CHECK_OK(bal_words_add(out, &word, &check_err));
    }
}

static int write_one(bal_buf *out, const write_row *row)
{
    BAL_LOCAL(bal_words) donor = { 0 };
    BAL_LOCAL(bal_words) want = { 0 };
    size_t kept = 0;

    check_row(row->text);
    CHECK_OK(bal_words_read(&donor, bytes(row->text), "t", &check_err));
    wanted(&want, &kept, &donor, row);
    bal_rewording all = {
        .text = bytes(row->text),
        .donor = &donor,
        .bound = row->bound,
        .want = &want,
        .kept = kept,
        .what = "t",
    };
    return bal_words_write(out, &all, &check_err);
}

static void check_written(const write_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        BAL_LOCAL(bal_buf) out = { 0 };

        CHECK_OK(write_one(&out, &rows[i]));
        if (strcmp(bal_buf_string(&out), rows[i].want))
            print_error("got %s\n", bal_buf_string(&out));
        CHECK(!strcmp(bal_buf_string(&out), rows[i].want));
    }
}

static void new_tokens_are_added_ones_and_all_else_stays(void)
{
    static const write_row rows[] = {
        { "{\"model\":" WORD_LEVEL " {\"a\" : 0}}, \"x\": 1.50}\n",
          9,
          { { 0 } },
          "{\"model\":" WORD_LEVEL " {\"a\" : 0}}, \"x\": 1.50}\n" },
        { "{\"added_tokens\":[],\"model\":" WORD_LEVEL "{\"a\":0}}}",
          9,
          { { "n\"", 1 }, { "m", 2 } },
          "{\"added_tokens\":[{\"id\":1,\"content\":\"n\\\"\",\"single_word\":"
          "false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
          "\"special\":false},{\"id\":2,\"content\":\"m\",\"single_word\":"
          "false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
          "\"special\":true}],\"model\":" WORD_LEVEL "{\"a\":0}}}" },
        { "{\n  \"added_tokens\": [\n    {\n      \"content\": \"b\"\n    }\n  "
          "],\n  \"model\":" WORD_LEVEL "{\"a\":0}}}",
          9,
          { { "n", 2 } },
          "{\n  \"added_tokens\": [\n    {\n      \"content\": \"b\"\n    },\n "
          "   {\n      \"id\": 2,\n      \"content\": \"n\",\n      "
          "\"single_word\": false,\n      \"lstrip\": false,\n      "
          "\"rstrip\": false,\n      \"normalized\": false,\n      "
          "\"special\": true\n    }\n  ],\n  \"model\":" WORD_LEVEL
          "{\"a\":0}}}" },
        { "{\"model\": {\"vocab\": [[\"a\", 0.0]]}}",
          9,
          { { "n", 1 } },
          "{\"model\": {\"vocab\": [[\"a\", 0.0]]}, \"added_tokens\": [{"
          "\"id\":1,\"content\":\"n\",\"single_word\":false,\"lstrip\":false,"
          "\"rstrip\":false,\"normalized\":false,\"special\":true}]}" },
    };

    check_written(rows, COUNT(rows));
}

static void tokens_beyond_the_rows_go_with_their_merges(void)
{
    static const write_row rows[] = {
        { "{\"added_tokens\": [{\"content\":\"<s>\"}, {\"content\":\"d\"}], "
          "\"model\": {\"type\":\"BPE\", \"vocab\": {\"a\": 0, \"d\": 5, "
          "\"b\": 1,  \"ab\": 2, \"ba\": 3, \"abb\": 4}, \"merges\": [\"a b\", "
          "\"b a\", [\"ab\", \"b\"]]}}",
          3,
          { { 0 } },
          "{\"added_tokens\": [], \"model\": {\"type\":\"BPE\", \"vocab\": "
          "{\"a\": 0, \"b\": 1,  \"ab\": 2}, \"merges\": [\"a b\"]}}" },
        { "{\"added_tokens\":[{\"content\":\"x\"},{\"content\":\"y\"}],"
          "\"model\":{\"vocab\":[[\"a\",0],[\"b\",-1]]}}",
          3,
          { { 0 } },
          "{\"added_tokens\":[{\"content\":\"x\"}],\"model\":{\"vocab\":[["
          "\"a\",0],[\"b\",-1]]}}" },
        { "{\"added_tokens\":[],\"model\":{\"vocab\":[[\"a\",0],[\"b\",-1]]}}",
          1,
          { { 0 } },
          "{\"added_tokens\":[],\"model\":{\"vocab\":[[\"a\",0]]}}" },
    };

    check_written(rows, COUNT(rows));
}

/* The library numbers added tokens from the vocabulary's length on, which would
 * be 2 here. */
static void ids_that_leave_some_out_are_told_by_the_vocabulary(void)
{
    static const write_row rows[] = {
        { "{\"added_tokens\":[{\"content\":\"x\"}],\"model\":" WORD_LEVEL
          "{\"a\":0,\"b\":7}}}",
          9,
          { { "n", 8 } },
          "{\"added_tokens\":[{\"content\":\"x\"},{\"id\":8,\"content\":\"n\","
          "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
          "\"normalized\":false,\"special\":true}],\"model\":" WORD_LEVEL
          "{\"a\":0,\"b\":7,\"x\":2,\"n\":8}}}" },
    };

    check_written(rows, COUNT(rows));
}

static void ids_that_a_list_cannot_have_are_refused(void)
{
    static const write_row row = {
        "{\"added_tokens\":[],\"model\":{\"vocab\":[[\"a\",0],[\"b\",-1]]}}",
        9,
        { { "n", 3 } },
        NULL,
    };
    BAL_LOCAL(bal_buf) out = { 0 };

    CHECK_RC(BAL_EUNSUPPORTED, write_one(&out, &row));
    CHECK(!out.len);
}

static void ids_that_were_cut_leave_the_settings(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "{\"a\": 1}", "{\"a\": 1}" },
        { "{\"added_tokens_decoder\": {\n\"0\": {\"x\": []},\n\"31\": 1,\n"
          "\"32\": {},\n\"7\": 2, \"q\": 3\n}, \"b\": 1.0}",
          "{\"added_tokens_decoder\": {\n\"0\": {\"x\": []},\n\"31\": 1,\n"
          "\"7\": 2, \"q\": 3\n}, \"b\": 1.0}" },
        { "{\"added_tokens_decoder\": {\n  \"32\": {}\n}}",
          "{\"added_tokens_decoder\": {}}" },
        { "{\"added_tokens_decoder\": null}",
          "{\"added_tokens_decoder\": null}" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_buf) out = { 0 };

        check_row(rows[i].text);
        CHECK_OK(
            bal_words_config(&out, bytes(rows[i].text), 32, "t", &check_err));
        CHECK(!strcmp(bal_buf_string(&out), rows[i].want));
    }
}

static const check_test tests[] = {
    { TEST(a_vocabulary_is_read_as_the_library_loads_it) },
    { TEST(added_and_special_are_told_apart) },
    { TEST(words_are_ordered_by_their_ids) },
    { TEST(what_is_no_vocabulary_is_refused) },
    { TEST(new_tokens_are_added_ones_and_all_else_stays) },
    { TEST(tokens_beyond_the_rows_go_with_their_merges) },
    { TEST(ids_that_leave_some_out_are_told_by_the_vocabulary) },
    { TEST(ids_that_a_list_cannot_have_are_refused) },
    { TEST(ids_that_were_cut_leave_the_settings) },
};

CHECK_MAIN(tests)
