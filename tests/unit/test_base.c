/* base + change: which bases are refused, what else a change can be, whose
 * headers the result has. */
#include <stdlib.h>
#include <string.h>

#include "model/arithmetic.h"
#include "support/check.h"
#include "support/memory_model.h"

static bal_work *work;

/* Finishes both; tuned - base. */
static bal_model *minus(bal_model *tuned, bal_model *base)
{
    bal_model *delta = NULL;

    memory_finish(tuned);
    memory_finish(base);
    CHECK_OK(bal_model_minus(&delta, tuned, base, work, &check_err));
    return delta;
}

static const bal_tensor *find(const bal_model *model, const char *name)
{
    size_t i = bal_model_find(model, BAL_PART_TENSOR, name);

    CHECK(i != BAL_NONE);
    return bal_model_at(model, i);
}

/* ---- the base ----------------------------------------------------------- */

static void set_base(bal_model *base, uint64_t b, uint64_t c)
{
    memory_strange1(base, "a", BAL_F32, 20, 1);
    memory_strange1(base, "b", BAL_F32, 20, b);
    memory_strange1(base, "c", BAL_I32, 20, c);
    memory_finish(base);
}

static const struct {
    const char *what;
    uint64_t b, c;
    const char *extra;
    const char *named; /* NULL: it fits */
} bases[] = {
    { "the one", 2, 3, NULL, NULL },
    { "one tensor differs", 9, 3, NULL, "tensor 'b'" },
    { "two differ: the first is named", 9, 9, NULL, "tensor 'b'" },
    { "one that did not change differs", 2, 9, NULL, "tensor 'c'" },
    { "one more", 2, 3, "bb", "tensor 'bb'" },
    { "another, and one more before it", 2, 9, "aa", "tensor 'aa'" },
};

static void a_wrong_base_is_refused_by_name(void)
{
    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
        BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
        BAL_OWN(bal_model) other = memory_new(BAL_KIND_WEIGHTS, "other");
        BAL_OWN(bal_model) delta = NULL;
        BAL_OWN(bal_model) again = NULL;
        check_row(bases[i].what);
        memory_strange1(tuned, "a", BAL_F32, 20, 11);
        memory_strange1(tuned, "b", BAL_F32, 20, 12);
        memory_strange1(tuned, "c", BAL_I32, 20, 3);
        memory_finish(tuned);
        set_base(base, 2, 3);
        if (bases[i].extra)
            memory_strange1(other, bases[i].extra, BAL_F32, 3, 5);
        set_base(other, bases[i].b, bases[i].c);
        CHECK_OK(bal_model_minus(&delta, tuned, base, work, &check_err));
        CHECK_RC(bases[i].named ? BAL_ECORRUPT : 0,
                 bal_model_plus(&again, other, delta, 0, work, &check_err));
        CHECK(!bases[i].named || strstr(check_err.text, bases[i].named));
        if (again)
            continue;
        CHECK_OK(bal_model_plus(&again, other, delta, BAL_PLUS_ANY_BASE, work,
                                &check_err));
    }
}

static void a_base_without_the_tensor_is_refused_whatever_the_flags(void)
{
    BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
    BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
    BAL_OWN(bal_model) other = memory_new(BAL_KIND_WEIGHTS, "other");
    BAL_OWN(bal_model) delta = NULL;
    BAL_OWN(bal_model) again = NULL;

    memory_strange1(tuned, "w", BAL_F32, 20, 11);
    memory_strange1(base, "w", BAL_F32, 20, 12);
    memory_strange1(other, "w", BAL_F32, 21, 12);
    memory_finish(other);
    delta = minus(tuned, base);
    CHECK_RC(BAL_ECORRUPT, bal_model_plus(&again, other, delta,
                                          BAL_PLUS_ANY_BASE, work, &check_err));
    CHECK(strstr(check_err.text, "tensor 'w'"));
}

static void a_delta_is_not_a_base(void)
{
    BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
    BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
    BAL_OWN(bal_model) delta = NULL;
    BAL_OWN(bal_model) again = NULL;

    memory_strange1(tuned, "w", BAL_F32, 20, 11);
    memory_strange1(base, "w", BAL_F32, 20, 12);
    delta = minus(tuned, base);
    CHECK_RC(BAL_EINVAL,
             bal_model_minus(&again, delta, base, work, &check_err));
    CHECK_RC(BAL_EINVAL,
             bal_model_minus(&again, tuned, delta, work, &check_err));
    CHECK_RC(BAL_EINVAL,
             bal_model_plus(&again, delta, delta, 0, work, &check_err));
}

static void identity_files_that_differ_are_named(void)
{
    BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
    BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
    BAL_OWN(bal_model) other = memory_new(BAL_KIND_WEIGHTS, "other");
    BAL_OWN(bal_model) delta = NULL;
    BAL_LOCAL(bal_buf) differ = { 0 };

    memory_file(tuned, BAL_PART_FILE, "tokenizer.json", "{}", 2);
    memory_file(base, BAL_PART_FILE, "tokenizer.json", "{}", 2);
    memory_file(base, BAL_PART_FILE, "chat_template.jinja", "x", 1);
    memory_file(base, BAL_PART_FILE, "README.md", "x", 1);
    memory_file(other, BAL_PART_FILE, "tokenizer.json", "[]", 2);
    memory_file(other, BAL_PART_FILE, "vocab.txt", "", 0);
    memory_file(other, BAL_PART_FILE, "README.md", "y", 1);
    memory_finish(other);
    delta = minus(tuned, base);
    CHECK_OK(bal_base_files_differ(&differ, base, delta, work, &check_err));
    CHECK(differ.len == 0);
    CHECK_OK(bal_base_files_differ(&differ, other, delta, work, &check_err));
    CHECK(!strcmp(bal_buf_string(&differ),
                  "chat_template.jinja\ntokenizer.json\nvocab.txt\n"));
}

/* ---- other changes ------------------------------------------------------ */

static void a_difference_without_digests_is_added_as_it_is(void)
{
    static const float before[] = { 1, 2, 3 };
    static const float difference[] = { 1, -1, 0.5f };
    static const uint16_t halves[] = { 0x4000, 0x3f80, 0x4060 };
    static const uint64_t shape[] = { 3 };
    BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
    BAL_OWN(bal_model) view = memory_new(BAL_KIND_DELTA, "view");
    BAL_OWN(bal_model) again = NULL;
    bal_tensor entry = {
        .name = "w",
        .form = BAL_FORM_DIFFERENCE,
        .dtype = BAL_F32,
        .of = BAL_BF16,
        .rank = 1,
        .shape = shape,
    };
    uint16_t got[3];

    memory_tensor(base, "w", BAL_F32, 1, shape, before);
    memory_tensor(base, "x", BAL_F32, 1, shape, before);
    memory_entry(view, &entry, difference);
    memory_finish(base);
    memory_finish(view);
    CHECK_OK(bal_model_plus(&again, base, view, 0, work, &check_err));
    CHECK(bal_model_count(again) == 2);
    CHECK(bal_model_at(again, 0)->dtype == BAL_BF16);
    CHECK_OK(bal_model_read(again, 0, 0, got, sizeof(got), &check_err));
    CHECK(!memcmp(got, halves, sizeof(got)));
}

static void a_whole_model_comes_with_the_bases_files(void)
{
    BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
    BAL_OWN(bal_model) view = memory_new(BAL_KIND_WEIGHTS, "view");
    BAL_OWN(bal_model) again = NULL;

    memory_strange1(base, "w", BAL_F32, 3, 1);
    memory_strange1(base, "x", BAL_F32, 3, 1);
    memory_file(base, BAL_PART_FILE, "config.json", "{}", 2);
    memory_file(base, BAL_PART_HEADER, "model.safetensors", "{} ", 3);
    memory_finish(base);
    memory_strange1(view, "w", BAL_BF16, 7, 2);
    memory_finish(view);
    CHECK_OK(bal_model_plus(&again, base, view, 0, work, &check_err));
    CHECK(bal_model_count(again) == 3);
    CHECK(bal_model_find(again, BAL_PART_TENSOR, "x") == BAL_NONE);
    CHECK(bal_model_find(again, BAL_PART_FILE, "config.json") == 1);
    CHECK(bal_model_find(again, BAL_PART_HEADER, "model.safetensors") == 2);
    memory_check_entry(view, again, 0);
}

static void casting_rounds_once(void)
{
    static const double value[] = { 1.00390625000001, 1e-46, -3.5e38, 0.1 };
    static const uint16_t want[] = { 0x3f81, 0, 0xff80, 0x3dcd };
    static const uint64_t shape[] = { 4 };
    BAL_OWN(bal_model) from = memory_new(BAL_KIND_WEIGHTS, "from");
    BAL_OWN(bal_model) cast = NULL;
    BAL_OWN(bal_model) none = NULL;
    uint16_t got[4];

    memory_tensor(from, "w", BAL_F64, 1, shape, value);
    memory_strange1(from, "i", BAL_I64, 4, 1);
    memory_finish(from);
    CHECK_OK(bal_model_cast(&cast, from, BAL_BF16, &check_err));
    CHECK(find(cast, "w")->dtype == BAL_BF16 && find(cast, "w")->size == 8);
    CHECK_OK(bal_model_read(cast, 1, 0, got, sizeof(got), &check_err));
    CHECK(!memcmp(got, want, sizeof(got)));
    memory_check_entry(from, cast, 0);
    CHECK_RC(BAL_EINVAL, bal_model_cast(&none, from, BAL_I8, &check_err));
}

/* ---- headers ------------------------------------------------------------ */

#define ONE(name)                                                              \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}"

static void put_header(bal_model *model, const char *name, const char *json)
{
    memory_file(model, BAL_PART_HEADER, name, json, strlen(json));
}

static const struct {
    const char *what;
    const char *base, *tuned; /* the header of model.safetensors */
    bool takes_tuned;
} layouts[] = {
    { "the same", "{" ONE("a") "," ONE("b") "}", "{" ONE("b") "," ONE("a") "}",
      true },
    { "a new tensor rides along", "{" ONE("a") "," ONE("b") "}",
      "{" ONE("a") "," ONE("b") "," ONE("new") "}", true },
    { "a tensor has gone elsewhere", "{" ONE("a") "," ONE("b") "}",
      "{" ONE("a") "}", false },
    { "not a header", "{" ONE("a") "," ONE("b") "}", "[]", false },
};

static void the_bases_layout_stays(void)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
        BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
        BAL_OWN(bal_model) delta = NULL;
        BAL_OWN(bal_model) again = NULL;
        check_row(layouts[i].what);
        memory_strange1(tuned, "a", BAL_U8, 0, 1);
        memory_strange1(base, "a", BAL_U8, 0, 1);
        memory_strange1(tuned, "b", BAL_U8, 0, 1);
        memory_strange1(base, "b", BAL_U8, 0, 1);
        memory_strange1(tuned, "new", BAL_U8, 0, 1);
        put_header(tuned, "model.safetensors", layouts[i].tuned);
        put_header(base, "model.safetensors", layouts[i].base);
        memory_finish(tuned);
        memory_finish(base);
        CHECK_OK(bal_model_minus(&delta, tuned, base, work, &check_err));
        CHECK_OK(bal_model_plus(&again, base, delta, 0, work, &check_err));
        size_t at = bal_model_find(again, BAL_PART_HEADER, "model.safetensors");
        const char *want =
            layouts[i].takes_tuned ? layouts[i].tuned : layouts[i].base;
        char got[400] = "";
        CHECK(bal_model_at(again, at)->size == strlen(want));
        CHECK_OK(bal_model_read(again, at, 0, got, strlen(want), &check_err));
        CHECK(!memcmp(got, want, strlen(want)));
    }
}

static const check_test tests[] = {
    { TEST(a_wrong_base_is_refused_by_name) },
    { TEST(a_base_without_the_tensor_is_refused_whatever_the_flags) },
    { TEST(a_delta_is_not_a_base) },
    { TEST(identity_files_that_differ_are_named) },
    { TEST(a_difference_without_digests_is_added_as_it_is) },
    { TEST(a_whole_model_comes_with_the_bases_files) },
    { TEST(casting_rounds_once) },
    { TEST(the_bases_layout_stays) },
};

int main(void)
{
    if (bal_work_new(&work, 2, &check_err))
        return 1;
    int status = check_main(tests, sizeof(tests) / sizeof(tests[0]));
    bal_work_free(work);
    return status;
}
