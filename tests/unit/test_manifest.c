/* Manifests: canonical, read back as written, refused when damaged. */
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "store/manifest.h"
#include "support/check.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* One of everything. */
static const char leaf_text[] =
    "{\"base_model\":\"llama \\\"8b\\\"\",\"block_size\":4096,\"entries\":["
    "{\"base\":\"" A "\",\"blocks\":[\"" A "\",\"" B "\"],\"dtype\":\"F32\","
    "\"form\":\"difference\",\"name\":\"w\",\"of\":\"BF16\",\"part\":"
    "\"tensor\",\"shape\":[5,300],\"tuned\":\"" B "\"},"
    "{\"at\":[\"" B "\",16,2000],\"dtype\":\"U16\",\"form\":\"residual\","
    "\"name\":\"w\",\"part\":\"tensor\",\"shape\":[5,10]},"
    "{\"dtype\":\"F64\",\"form\":\"whole\",\"name\":\"x\\n\",\"part\":"
    "\"tensor\",\"shape\":[0,4]},"
    "{\"base\":\"" A "\",\"dtype\":\"I8\",\"form\":\"removed\",\"name\":\"y\","
    "\"part\":\"tensor\",\"shape\":[]},"
    "{\"at\":[\"" B "\",0,12],\"dtype\":\"U8\",\"form\":\"whole\",\"name\":"
    "\"config.json\",\"part\":\"file\",\"shape\":[12]}"
    "],\"kind\":\"delta\",\"revision\":null,\"version\":1}";

static bal_bytes bytes_of(const char *text)
{
    return (bal_bytes){ text, strlen(text) };
}

static void a_leaf_is_written_as_it_was_read(void)
{
    BAL_LOCAL(bal_leaf) leaf = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };

    CHECK_OK(bal_leaf_read(&leaf, bytes_of(leaf_text), &check_err));
    CHECK(leaf.count == 5);
    CHECK(leaf.id_count == 4);
    CHECK(leaf.entries[0].of == BAL_BF16);
    CHECK(leaf.entries[0].size == 6000);
    CHECK(leaf.entries[3].size == 0);
    CHECK(leaf.places[1].shared && leaf.places[1].offset == 16);
    CHECK_OK(bal_leaf_write(&text, &leaf, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), leaf_text));
}

static void a_leaf_is_canonical_json(void)
{
    BAL_OWN(json_t) json = NULL;
    BAL_LOCAL(bal_buf) text = { 0 };

    CHECK_OK(bal_json_parse(&json, leaf_text, strlen(leaf_text), "leaf",
                            &check_err));
    CHECK_OK(bal_json_canonical(&text, json, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), leaf_text));
}

static void every_cut_of_a_leaf_is_corrupt(void)
{
    for (size_t len = 0; len < strlen(leaf_text); len++) {
        BAL_LOCAL(bal_leaf) leaf = { 0 };
        bal_bytes cut = { leaf_text, len };
        CHECK_RC(BAL_ECORRUPT, bal_leaf_read(&leaf, cut, &check_err));
    }
}

typedef struct damage_row {
    const char *from, *to;
    int code;
} damage_row;

static void a_damaged_leaf_is_refused(void)
{
    static const damage_row rows[] = {
        { "\"version\":1", "\"version\":2", BAL_EUNSUPPORTED },
        { "\"kind\":\"delta\",\"revision\":null,\"version\":1",
          "\"kind\":\"delta\",\"novel\":[1],\"version\":12", BAL_EUNSUPPORTED },
        { "\"kind\":\"delta\"", "\"kind\":\"dolta\"", BAL_ECORRUPT },
        { "[5,300]", "[5,900]", BAL_ECORRUPT },
        { "[5,300]", "[5,3]", BAL_ECORRUPT },
        { "[5,10]", "[5,99999999999999]", BAL_ECORRUPT },
        { ",16,2000]", ",1996,2000]", BAL_ECORRUPT },
        { ",16,2000]", ",16,20000]", BAL_ECORRUPT },
        { ",16,2000]", ",16]", BAL_ECORRUPT },
        { "\"of\":\"BF16\"", "\"of\":\"BF17\"", BAL_ECORRUPT },
        { "\"form\":\"removed\"", "\"form\":\"remoted\"", BAL_ECORRUPT },
        { "\"block_size\":4096", "\"block_size\":0", BAL_ECORRUPT },
        { "\"name\":\"y\"", "\"nome\":\"y\"", BAL_ECORRUPT },
        { "\"name\":\"y\"", "\"name\":null", BAL_ECORRUPT },
        { "\"version\":1}", "\"version\":1}x", BAL_ECORRUPT },
        /* What was checked with one value may not get another. */
        { "\"version\":1}", "\"version\":1,\"block_size\":1}", BAL_ECORRUPT },
        { "\"kind\":\"delta\"", "\"block_size\":0", BAL_ECORRUPT },
        { "\"block_size\":4096", "\"block_size\":4096,\"block_size\":1",
          BAL_ECORRUPT },
        { "\"shape\":[5,300]", "\"shape\":[5,300],\"at\":[\"" A "\",0,1]",
          BAL_ECORRUPT },
        { "\"block_size\":4096", "\"block_size\":1073741825", BAL_ECORRUPT },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BAL_LOCAL(bal_buf) text = { 0 };
        BAL_LOCAL(bal_leaf) leaf = { 0 };
        const char *at = strstr(leaf_text, rows[i].from);
        check_row(rows[i].to);
        CHECK(at != NULL);
        CHECK_OK(bal_buf_append(&text, leaf_text, (size_t)(at - leaf_text),
                                &check_err));
        CHECK_OK(bal_buf_text(&text, rows[i].to, &check_err));
        CHECK_OK(bal_buf_text(&text, at + strlen(rows[i].from), &check_err));
        CHECK_RC(rows[i].code,
                 bal_leaf_read(&leaf, (bal_bytes){ text.data, text.len },
                               &check_err));
    }
}

static void a_view_comes_back(void)
{
    BAL_OWN(json_t)
    recipe = json_pack("{s:s, s:[]}", "method", "linear", "inputs");
    BAL_OWN(json_t) back = NULL;
    BAL_LOCAL(bal_buf) text = { 0 };

    CHECK_OK(bal_view_write(&text, recipe, NULL, &check_err));
    CHECK(!strcmp(text.data, "{\"base_model\":null,\"kind\":\"view\","
                             "\"recipe\":{\"inputs\":[],\"method\":"
                             "\"linear\"},\"version\":1}"));
    CHECK_OK(
        bal_view_read(&back, (bal_bytes){ text.data, text.len }, &check_err));
    CHECK(json_equal(recipe, back));
}

static const check_test tests[] = {
    { TEST(a_leaf_is_written_as_it_was_read) },
    { TEST(a_leaf_is_canonical_json) },
    { TEST(every_cut_of_a_leaf_is_corrupt) },
    { TEST(a_damaged_leaf_is_refused) },
    { TEST(a_view_comes_back) },
};

CHECK_MAIN(tests)
