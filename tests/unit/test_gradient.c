/* What a parameter is for each tensor: texts, bounds, and numbers at places,
 * which are numpy's: interp(depth * (n - 1), range(n), values). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/gradient.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const bal_param part = {
    .name = "part", .type = BAL_PARAM_FLOAT, .low = 0, .high = 1
};
static const bal_param any = {
    .name = "any", .type = BAL_PARAM_FLOAT, .low = -HUGE_VAL, .high = HUGE_VAL
};
static const bal_param steps = {
    .name = "steps", .type = BAL_PARAM_INT, .low = 0, .high = 1000
};
static const bal_param flag = {
    .name = "flag", .type = BAL_PARAM_BOOL, .low = 0, .high = 1
};
static const bal_param how = { .name = "how",
                               .type = BAL_PARAM_NAME,
                               .choices = "sum|count|mean" };

static void is_text(const bal_gradient *told, const bal_param *param,
                    const char *want)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    CHECK_OK(bal_gradient_text(&text, told, param, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), want));
}

/* ---- texts -------------------------------------------------------------- */

typedef struct spelling {
    const bal_param *param;
    const char *text, *canonical;
    bool scalar;
} spelling;

static const spelling spellings[] = {
    { &part, "0.50", "0.5", true },
    { &part, "1e-5", "1e-05", true },
    { &part, "0.5000000000000000000000000000000000000000000000000000000000000",
      "0.5", true },
    { &part, "*:0.5", "0.5", true },
    { &part, "0.5;0.75", "0.5", true },
    { &part, "0.5;mlp:0.75", "0.5", true },
    { &part, "0,0.50,1", "0,0.5,1", false },
    { &part, "0.5,0.5", "0.5,0.5", false },
    { &part, "mlp:0.1", "mlp:0.1", false },
    { &part, "mlp:0.10;*:0.5", "mlp:0.1;0.5", false },
    { &part, "mlp:0,1;attn:1,0;0.5;norm:0", "mlp:0,1;attn:1,0;0.5", false },
    /* The last ':' ends a filter, which may have what separates values. */
    { &part, "a:b:0.5", "a:b:0.5", false },
    { &part, "a,b:0.5,1", "a,b:0.5,1", false },
    { &part, "a*:0.5", "a*:0.5", false },
    { &part, "**:0.5", "**:0.5", false },
    { &any, "-3e300", "-3e+300", true },
    { &steps, "7", "7", true },
    { &steps, "mlp:2,4;1000", "mlp:2,4;1000", false },
    { &flag, "YES", "true", true },
    { &flag, "1,off,True", "true,false,true", false },
    { &flag, "norm:no;yes", "norm:false;true", false },
    { &how, "count", "count", true },
    { &how, "mean,sum", "mean,sum", false },
};

static void a_text_has_one_spelling_that_reads_back(void)
{
    for (size_t i = 0; i < COUNT(spellings); i++) {
        const spelling *row = &spellings[i];
        BAL_LOCAL(bal_gradient) told = { 0 };
        BAL_LOCAL(bal_gradient) again = { 0 };
        double number;

        check_row(row->text);
        CHECK_OK(bal_gradient_append(&told, row->param, row->text, &check_err));
        is_text(&told, row->param, row->canonical);
        CHECK(bal_gradient_scalar(&number, &told) == row->scalar);
        CHECK_OK(bal_gradient_append(&again, row->param, row->canonical,
                                     &check_err));
        is_text(&again, row->param, row->canonical);
    }
}

static const struct {
    const bal_param *param;
    const char *text, *says;
} refused[] = {
    { &part, "", "part" },
    { &part, "x", "part" },
    { &part, ",", "part" },
    { &part, "0.5,", "part" },
    { &part, ",0.5", "part" },
    { &part, ";", "part" },
    { &part, "0.5;", "part" },
    { &part, "mlp:", "part" },
    { &part, "mlp", "part" },
    { &part, " 0.5", "part" },
    { &part, "nan", "part" },
    { &part, "inf", "part" },
    { &part, ":0.5", "empty filter" },
    { &part, "2", "part: 2 is not within 0 … 1" },
    { &part, "-0.5", "part: -0.5 is not within 0 … 1" },
    { &part, "0,1.5,1", "part: 1.5 is not within 0 … 1" },
    { &part, "mlp:0,3", "part: 3 is not within 0 … 1" },
    /* What would not be looked at is looked at. */
    { &part, "0.5;mlp:2", "part: 2 is not within 0 … 1" },
    { &part, "0.50000000000000000000000000000000000000000000000000000000000000",
      "too long" },
    { &any, "1e999", "any" },
    { &steps, "0.5", "steps" },
    { &steps, "1,1001", "steps: 1001 is not within 0 … 1000" },
    { &steps, "-1", "steps: -1 is not within" },
    { &flag, "true,2", "flag: '2' is not true or false" },
    { &how, "sum,max", "how: 'max' is none of sum|count|mean" },
    { &how, "su", "how: 'su' is none of" },
};

static void what_is_no_value_is_refused_by_name_and_range(void)
{
    for (size_t i = 0; i < COUNT(refused); i++) {
        BAL_LOCAL(bal_gradient) told = { 0 };

        check_row(refused[i].text);
        CHECK_RC(BAL_EINVAL, bal_gradient_append(&told, refused[i].param,
                                                 refused[i].text, &check_err));
        CHECK(strstr(check_err.text, refused[i].says) != NULL);
    }
}

/* count values "1,1,…". */
static char *ones(size_t count)
{
    char *text = malloc(2 * count);

    CHECK(text != NULL);
    for (size_t i = 0; i < count; i++) {
        text[2 * i] = '1';
        text[2 * i + 1] = ',';
    }
    text[2 * count - 1] = '\0';
    return text;
}

static void there_is_a_limit_to_values(void)
{
    BAL_LOCAL(bal_gradient) told = { 0 };
    BAL_LOCAL(bal_gradient) more = { 0 };
    char *most = ones(BAL_GRADIENT_MOST);
    char *beyond = ones(BAL_GRADIENT_MOST + 1);

    CHECK_OK(bal_gradient_append(&told, &part, most, &check_err));
    CHECK(told.parts[0].count == BAL_GRADIENT_MOST);
    CHECK_RC(BAL_EINVAL, bal_gradient_append(&more, &part, beyond, &check_err));
    CHECK(strstr(check_err.text, "part: more than 4096 values") != NULL);
    free(most);
    free(beyond);
}

static void what_is_nearer_comes_first(void)
{
    static const char *const scopes[] = { "mlp:0.1", "q:0.2;mlp:0.3", "0.4",
                                          "k:0.5" };
    BAL_LOCAL(bal_gradient) told = { 0 };
    const bal_place place = { "layers.0.mlp.w", 0 };
    double got;
    bool found;

    for (size_t i = 0; i < COUNT(scopes); i++)
        CHECK_OK(bal_gradient_append(&told, &part, scopes[i], &check_err));
    is_text(&told, &part, "mlp:0.1;q:0.2;mlp:0.3;0.4");
    CHECK_OK(bal_gradient_at(&got, &found, &told, &part, &place, &check_err));
    CHECK(found && got == 0.1);
}

/* ---- numbers ------------------------------------------------------------ */

typedef struct reading {
    const bal_param *param;
    const char *text, *tensor;
    double depth, want;
} reading;

static const reading readings[] = {
    { &any, "0.1,0.5,0.9,0.2", "w", 0, 0.1 },
    { &any, "0.1,0.5,0.9,0.2", "w", 0.5, 0.7 },
    { &any, "0.1,0.5,0.9,0.2", "w", 1, 0.2 },
    { &any, "0.1,0.5,0.9,0.2", "w", 0.9, 0.41 },
    { &any, "0,10", "w", 0.3, 3 },
    { &any, "-1,1,7", "w", 0.75, 4 },
    { &any, "2", "w", 0.6, 2 },
    { &any, "1,2,3,4,5", "w", 0.2, 1.8 },
    { &any, "mlp:1,3;5", "layers.1.mlp.up", 0.5, 2 },
    { &any, "mlp:1,3;5", "layers.1.attn.q", 0.5, 5 },
    { &any, "mlp:1;up:2;3", "layers.1.mlp.up", 0, 1 },
    { &any, "up:2;mlp:1;3", "layers.1.mlp.up", 0, 2 },
    { &any, "a,b:2;3", "a,b", 0, 2 },
    { &any, "a:b:2;3", "xa:bx", 0, 2 },
    { &any, "a:b:2;3", "a", 0, 3 },
    { &any, "*.w:2;3", "layers.w", 0, 3 }, /* no pattern, a plain part */
    { &any, "layers.1:2;3", "layers.10.w", 0, 2 },
    { &any, "MLP:2;3", "mlp", 0, 3 },
    { &steps, "2,4", "w", 0.5, 3 },
    { &steps, "0,10", "w", 0.3, 3 },
    { &steps, "3,3,3", "w", 0.123, 3 },
    { &flag, "true,false", "w", 0, 1 },
    { &flag, "true,false", "w", 0.99, 1 },
    { &flag, "true,false", "w", 1, 0 },
    { &flag, "false,true,false", "w", 0.5, 1 },
    { &how, "sum,count,mean", "w", 0, 0 },
    { &how, "sum,count,mean", "w", 0.75, 1 },
    { &how, "sum,count,mean", "w", 1, 2 },
};

static void values_lie_between_those_that_are_told(void)
{
    for (size_t i = 0; i < COUNT(readings); i++) {
        const reading *row = &readings[i];
        BAL_LOCAL(bal_gradient) told = { 0 };
        const bal_place place = { row->tensor, row->depth };
        double got = -1;
        bool found = false;

        check_row(row->text);
        CHECK_OK(bal_gradient_append(&told, row->param, row->text, &check_err));
        CHECK_OK(bal_gradient_at(&got, &found, &told, row->param, &place,
                                 &check_err));
        CHECK(found && fabs(got - row->want) <= 1e-15 * fabs(row->want) + 0);
    }
}

static void a_fraction_of_a_whole_number_is_refused(void)
{
    BAL_LOCAL(bal_gradient) told = { 0 };
    const bal_place place = { "layers.1.w", 0.25 };
    double got;
    bool found;

    CHECK_OK(bal_gradient_append(&told, &steps, "2,4", &check_err));
    CHECK_RC(BAL_EINVAL,
             bal_gradient_at(&got, &found, &told, &steps, &place, &check_err));
    CHECK(strstr(check_err.text, "steps: 2.5 is not a whole number") != NULL);
    CHECK(strstr(check_err.text, "'layers.1.w'") != NULL);
}

static void where_no_part_fits_there_is_no_value(void)
{
    BAL_LOCAL(bal_gradient) told = { 0 };
    const bal_place place = { "norm.weight", 0 };
    double got = 0;
    bool found = true;

    CHECK_OK(bal_gradient_append(&told, &any, "mlp:1;attn:2", &check_err));
    CHECK_OK(bal_gradient_at(&got, &found, &told, &any, &place, &check_err));
    CHECK(!found);
}

static const check_test tests[] = {
    { TEST(a_text_has_one_spelling_that_reads_back) },
    { TEST(what_is_no_value_is_refused_by_name_and_range) },
    { TEST(there_is_a_limit_to_values) },
    { TEST(what_is_nearer_comes_first) },
    { TEST(values_lie_between_those_that_are_told) },
    { TEST(a_fraction_of_a_whole_number_is_refused) },
    { TEST(where_no_part_fits_there_is_no_value) },
};

CHECK_MAIN(tests)
