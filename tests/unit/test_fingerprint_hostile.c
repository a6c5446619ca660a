/* What is no fingerprint: every rule of the byte form broken once. */
#include <stdlib.h>
#include <string.h>

#include "probe/fingerprint_inside.h"
#include "support/check.h"
#include "support/probes.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define TEXT        "some text or other"
#define TERMS       "{\"runner\":\"fake\"}"

static bal_probes *three(void)
{
    return probes_of("[{\"id\":\"p0\",\"prompt\":\"0\"},"
                     "{\"id\":\"p1\",\"prompt\":\"1\"},"
                     "{\"id\":\"p2\",\"prompt\":\"2\"}]");
}

static const char front[] =
    "{\"schema\":\"ballast/fingerprint/1\",\"probes\":\"";

typedef struct hostile {
    const char *name;
    const char *rest; /* behind the id */
    const char *planes;
    size_t planes_len;
} hostile;

#define ABOUT   "\",\"about\":{},"
#define QUIET   "\"noise\":{\"sum\":\"0\",\"tokens\":0},"
#define SIZES   "\"width\":4,\"numbers\":1,"
#define WORDS   "\"words\":[\"a\",\"b\"],"
#define ANSWER  "{\"texts\":[[\"x\",1]],\"more\":0,\"tokens\":[[0,0]]}"
#define ANSWERS "\"answers\":[" ANSWER ",null,null]}\n"
#define FRONT   ABOUT QUIET SIZES WORDS
#define OF(answer)                                                             \
    ABOUT QUIET SIZES WORDS "\"answers\":[" answer ",null,null]}\n"
#define TWO(answer)                                                            \
    ABOUT QUIET "\"width\":4,\"numbers\":2," WORDS "\"answers\":[" answer      \
                ",null,null]}\n"
#define MINUS_ONE "\0\0\x80\xbf"

static const hostile rows[] = {
    { "no line", "", "", 0 },
    { "another schema", "x" FRONT ANSWERS, MINUS_ONE, 4 },
    { "no planes", FRONT ANSWERS, "", 0 },
    { "too few bytes", FRONT ANSWERS, MINUS_ONE, 3 },
    { "too many bytes", FRONT ANSWERS, MINUS_ONE "\0", 5 },
    { "nan", FRONT ANSWERS, "\0\0\xc0\x7f", 4 },
    { "above 0", FRONT ANSWERS, "\0\0\x80\x3f", 4 },
    { "minus 0", FRONT ANSWERS, "\0\0\0\x80", 4 },
    { "width", ABOUT QUIET "\"width\":2,\"numbers\":2," WORDS ANSWERS,
      MINUS_ONE, 4 },
    { "count that overflows",
      ABOUT QUIET "\"width\":8,\"numbers\":2305843009213693952," WORDS ANSWERS,
      "", 0 },
    { "sum below 0",
      ABOUT "\"noise\":{\"sum\":\"-1\",\"tokens\":1}," SIZES WORDS ANSWERS,
      MINUS_ONE, 4 },
    { "sum of nothing",
      ABOUT "\"noise\":{\"sum\":\"1\",\"tokens\":0}," SIZES WORDS ANSWERS,
      MINUS_ONE, 4 },
    { "sum of no number",
      ABOUT "\"noise\":{\"sum\":\"inf\",\"tokens\":1}," SIZES WORDS ANSWERS,
      MINUS_ONE, 4 },
    { "about a list", "\",\"about\":[]," QUIET SIZES WORDS ANSWERS, MINUS_ONE,
      4 },
    { "a word twice", ABOUT QUIET SIZES "\"words\":[\"a\",\"a\"]," ANSWERS,
      MINUS_ONE, 4 },
    { "a word with nul", ABOUT QUIET SIZES "\"words\":[\"a\\u0000\"]," ANSWERS,
      MINUS_ONE, 4 },
    { "another order", ABOUT QUIET WORDS SIZES ANSWERS, MINUS_ONE, 4 },
    { "a member more", "\",\"x\":1,\"about\":{}," QUIET SIZES WORDS ANSWERS,
      MINUS_ONE, 4 },
    { "too few answers", FRONT "\"answers\":[" ANSWER ",null]}\n", MINUS_ONE,
      4 },
    { "too many answers", FRONT "\"answers\":[" ANSWER ",null,null,null]}\n",
      MINUS_ONE, 4 },
    { "something behind", FRONT "\"answers\":[" ANSWER ",null,null]}x\n",
      MINUS_ONE, 4 },
    { "no word there",
      OF("{\"texts\":[[\"x\",1]],\"more\":0,\"tokens\":[[0,2]]}"), MINUS_ONE,
      4 },
    { "no token in its list",
      OF("{\"texts\":[[\"x\",1]],\"more\":0,\"tokens\":[[1,0]]}"), MINUS_ONE,
      4 },
    { "an empty list",
      OF("{\"texts\":[[\"x\",1]],\"more\":0,\"tokens\":[[0]]}"), MINUS_ONE, 4 },
    { "numbers left over",
      OF("{\"texts\":[[\"x\",1]],\"more\":0,\"tokens\":[]}"), MINUS_ONE, 4 },
    { "numbers missing",
      OF("{\"texts\":[[\"x\",1]],\"more\":0,\"tokens\":[[0,0,1]]}"), MINUS_ONE,
      4 },
    { "no text", OF("{\"texts\":[],\"more\":0,\"tokens\":[[0,0]]}"), MINUS_ONE,
      4 },
    { "a text without a count",
      OF("{\"texts\":[[\"x\"]],\"more\":0,\"tokens\":[[0,0]]}"), MINUS_ONE, 4 },
    { "a text that never came",
      OF("{\"texts\":[[\"x\",0]],\"more\":0,\"tokens\":[[0,0]]}"), MINUS_ONE,
      4 },
    { "a text twice",
      OF("{\"texts\":[[\"x\",1],[\"x\",1]],\"more\":0,\"tokens\":[[0,0]]}"),
      MINUS_ONE, 4 },
    { "more without need",
      OF("{\"texts\":[[\"x\",1]],\"more\":1,\"tokens\":[[0,0]]}"), MINUS_ONE,
      4 },
    { "a word twice in a list",
      TWO("{\"texts\":[[\"x\",1]],\"more\":0,\"tokens\":[[0,0,0]]}"),
      "\0\0\0\0\x80\x90\xbf\xbf", 8 },
    { "the less likely in front",
      TWO("{\"texts\":[[\"x\",1]],\"more\":0,\"tokens\":[[0,0,1]]}"),
      "\0\0\0\0\x90\x80\xbf\xbf", 8 },
    { "ties in another order",
      TWO("{\"texts\":[[\"x\",1]],\"more\":0,\"tokens\":[[0,1,0]]}"),
      "\0\0\0\0\x80\x80\xbf\xbf", 8 },
};

static int parse(bal_probes *probes, const char *rest, const char *planes,
                 size_t len)
{
    BAL_LOCAL(bal_buf) content = { 0 };
    BAL_LOCAL(bal_buf) body = { 0 };
    BAL_OWN(bal_fingerprint) self = NULL;
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, bal_probes_id(probes));
    CHECK_OK(bal_buf_format(&content, &check_err, "%s%s%s", front, hex, rest));
    CHECK_OK(bal_buf_append(&content, planes, len, &check_err));
    CHECK_OK(
        bal_pack(&body, (bal_bytes){ content.data, content.len }, &check_err));
    return bal_fingerprint_parse(
        &self, probes, (bal_bytes){ body.data, body.len }, TERMS, &check_err);
}

static void what_is_no_fingerprint_is_corrupt(void)
{
    BAL_OWN(bal_probes) probes = three();

    CHECK_OK(parse(probes, FRONT ANSWERS, MINUS_ONE, 4));
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(rows[i].name);
        CHECK_RC(BAL_ECORRUPT, parse(probes, rows[i].rest, rows[i].planes,
                                     rows[i].planes_len));
        CHECK(check_err.text[0] != '\0');
    }
}

/* A bit of a frame may mean nothing; then all that is read is as before. */
static void check_flipped(bal_probes *probes, bal_bytes body)
{
    BAL_OWN(bal_fingerprint) self = NULL;
    int rc = bal_fingerprint_parse(&self, probes, body, TERMS, &check_err);

    CHECK(rc == BAL_ECORRUPT ||
          (!rc && !strcmp(bal_fingerprint_at(self, 0)->output, TEXT)));
}

static void damage_and_bombs_are_corrupt(void)
{
    /* A frame that says it holds 2 GiB. */
    static const uint8_t bomb[] = { 0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0,
                                    0,    0,    0x80, 0x01, 0,    0 };
    BAL_OWN(bal_probes) probes = three();
    BAL_OWN(bal_probes) others = probes_of("[{\"id\":\"x\",\"prompt\":\"x\"}]");
    BAL_OWN(bal_fingerprint) self = NULL;
    BAL_OWN(bal_fingerprint) back = NULL;
    BAL_LOCAL(bal_buf) body = { 0 };
    bal_answer answer = { .output = TEXT };

    CHECK_OK(bal_fingerprint_new(&self, probes, TERMS, &check_err));
    CHECK_OK(bal_fingerprint_add(self, 0, &answer, &check_err));
    CHECK_OK(bal_fingerprint_write(&body, self, &check_err));
    bal_bytes whole = { body.data, body.len };
    CHECK_RC(BAL_ECORRUPT,
             bal_fingerprint_parse(&back, others, whole, TERMS, &check_err));
    CHECK_RC(BAL_ECORRUPT,
             bal_fingerprint_parse(&back, probes, whole, "[", &check_err));
    CHECK_RC(BAL_ECORRUPT, bal_fingerprint_parse(
                               &back, probes, (bal_bytes){ bomb, sizeof(bomb) },
                               TERMS, &check_err));
    for (size_t i = 0; i < body.len; i++) {
        bal_bytes cut = { body.data, i };
        CHECK_RC(BAL_ECORRUPT,
                 bal_fingerprint_parse(&back, probes, cut, TERMS, &check_err));
        body.data[i] ^= 0x20;
        check_flipped(probes, whole);
        body.data[i] ^= 0x20;
    }
    CHECK_OK(bal_fingerprint_parse(&back, probes, whole, TERMS, &check_err));
}

static const check_test tests[] = {
    { TEST(what_is_no_fingerprint_is_corrupt) },
    { TEST(damage_and_bombs_are_corrupt) },
};

CHECK_MAIN(tests)
