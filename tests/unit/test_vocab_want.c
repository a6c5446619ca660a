/* What a recipe says of a vocabulary: read, written back, refused. */
#include <string.h>

#include "core/json.h"
#include "merge/vocab.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);

    CHECK(json != NULL);
    return json;
}

static void what_is_read_is_written_back(void)
{
    static const char *const texts[] = {
        "{\"source\": \"union\"}",
        "{\"source\": \"base\"}",
        "{\"source\": 2}",
        "{\"source\": \"union\", \"pad_to_multiple_of\": 64}",
        "{\"source\": 0, \"tokens\": {\"<s>\": {}, \"a b\": {\"force\": true, "
        "\"source\": {\"input\": 1}}, \"n\": {\"source\": {\"input\": 2, "
        "\"token\": \"\\u00e9\"}}, \"o\": {\"source\": {\"input\": 0, "
        "\"token_id\": 4294967294}}, \"z\": {\"source\": \"zero\"}}}",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        BAL_OWN(json_t) json = parse(texts[i]);
        BAL_OWN(json_t) again = NULL;
        BAL_LOCAL(bal_vocab_want) want = { 0 };

        check_row(texts[i]);
        CHECK_OK(bal_vocab_want_parse(&want, json, 3, &check_err));
        CHECK_OK(bal_vocab_want_json(&again, &want, &check_err));
        CHECK(json_equal(json, again));
    }
}

static void every_part_is_where_it_belongs(void)
{
    BAL_OWN(json_t)
    json = parse("{\"source\": 1, \"pad_to_multiple_of\": 8, \"tokens\": "
                 "{\"t\": {\"source\": {\"input\": 2, \"token_id\": 7}, "
                 "\"force\": true}}}");
    BAL_LOCAL(bal_vocab_want) want = { 0 };

    CHECK_OK(bal_vocab_want_parse(&want, json, 3, &check_err));
    CHECK(want.source == BAL_VOCAB_INPUT && want.input == 1);
    CHECK(want.multiple == 8 && want.count == 1 && !want.mergekit);
    CHECK(!strcmp(want.tokens[0].token, "t") && want.tokens[0].force);
    CHECK(want.tokens[0].source == BAL_ROW_ID && want.tokens[0].input == 2 &&
          want.tokens[0].id == 7);
}

static void tokens_are_in_the_order_of_their_bytes(void)
{
    BAL_OWN(json_t)
    json = parse("{\"source\": \"union\", \"tokens\": {\"b\": {}, \"\\u00e9\": "
                 "{}, \"a\": {}, \"Z\": {}}}");
    static const char *const order[] = { "Z", "a", "b", "\xc3\xa9" };
    BAL_LOCAL(bal_vocab_want) want = { 0 };

    CHECK_OK(bal_vocab_want_parse(&want, json, 1, &check_err));
    CHECK(want.count == COUNT(order));
    for (size_t i = 0; i < COUNT(order); i++)
        CHECK(!strcmp(want.tokens[i].token, order[i]));
}

/* Of three inputs. */
static void what_is_anything_else_is_refused(void)
{
    static const char *const texts[] = {
        "7",
        "[]",
        "{}",
        "{\"source\": \"unions\"}",
        "{\"source\": 3}",
        "{\"source\": -1}",
        "{\"source\": 1.0}",
        "{\"source\": null}",
        "{\"source\": \"union\", \"x\": 1}",
        "{\"source\": \"union\", \"pad_to_multiple_of\": 0}",
        "{\"source\": \"union\", \"pad_to_multiple_of\": 1048577}",
        "{\"source\": \"union\", \"pad_to_multiple_of\": \"8\"}",
        "{\"source\": \"union\", \"tokens\": []}",
        "{\"source\": \"union\", \"tokens\": {\"t\": 1}}",
        "{\"source\": \"union\", \"tokens\": {\"\": {}}}",
        "{\"source\": \"union\", \"tokens\": {\"t\": {\"x\": 1}}}",
        "{\"source\": \"union\", \"tokens\": {\"t\": {\"force\": 1}}}",
        "{\"source\": \"union\", \"tokens\": {\"t\": {\"source\": \"one\"}}}",
        "{\"source\": \"union\", \"tokens\": {\"t\": {\"source\": {}}}}",
        "{\"source\": \"union\", \"tokens\": {\"t\": {\"source\": "
        "{\"input\": 3}}}}",
        "{\"source\": \"union\", \"tokens\": {\"t\": {\"source\": "
        "{\"input\": 0, \"x\": 1}}}}",
        "{\"source\": \"union\", \"tokens\": {\"t\": {\"source\": "
        "{\"input\": 0, \"token\": 1}}}}",
        "{\"source\": \"union\", \"tokens\": {\"t\": {\"source\": "
        "{\"input\": 0, \"token_id\": -1}}}}",
        "{\"source\": \"union\", \"tokens\": {\"t\": {\"source\": "
        "{\"input\": 0, \"token_id\": 4294967295}}}}",
        "{\"source\": \"union\", \"tokens\": {\"t\": {\"source\": "
        "{\"input\": 0, \"token_id\": 1, \"token\": \"a\"}}}}",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        BAL_OWN(json_t) json = parse(texts[i]);
        bal_vocab_want want = { .input = 77 };

        check_row(texts[i]);
        CHECK_RC(BAL_ECORRUPT,
                 bal_vocab_want_parse(&want, json, 3, &check_err));
        CHECK(want.input == 77 && !want.tokens);
    }
}

static void of_no_inputs_there_is_no_index(void)
{
    BAL_OWN(json_t) json = parse("{\"source\": 0}");
    BAL_LOCAL(bal_vocab_want) want = { 0 };

    CHECK_RC(BAL_ECORRUPT, bal_vocab_want_parse(&want, json, 0, &check_err));
}

static const check_test tests[] = {
    { TEST(what_is_read_is_written_back) },
    { TEST(every_part_is_where_it_belongs) },
    { TEST(tokens_are_in_the_order_of_their_bytes) },
    { TEST(what_is_anything_else_is_refused) },
    { TEST(of_no_inputs_there_is_no_index) },
};

CHECK_MAIN(tests)
