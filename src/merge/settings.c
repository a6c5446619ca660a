/* Settings as rows of name and setter. */
#include "merge/settings.h"

#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/str.h"
#include "merge/shrink.h"
#include "merge/values.h"

static const char *const spaces[] = {
    [BAL_SPACE_AUTO] = "auto",       [BAL_SPACE_DELTA] = "delta",
    [BAL_SPACE_WEIGHTS] = "weights", [BAL_SPACE_PRODUCT] = "product",
    [BAL_SPACE_FACTORS] = "factors",
};

enum { SPACES = sizeof(spaces) / sizeof(spaces[0]) };

static const char *const arithmetics[] = { "precise", "mergekit" };

/* As safetensors says it, and as PyTorch and mergekit do. */
static const struct {
    const char *name;
    bal_dtype dtype;
} dtypes[] = {
    { "BF16", BAL_BF16 },   { "F16", BAL_F16 },       { "F32", BAL_F32 },
    { "F64", BAL_F64 },     { "bfloat16", BAL_BF16 }, { "float16", BAL_F16 },
    { "float32", BAL_F32 }, { "float64", BAL_F64 },   { "half", BAL_F16 },
    { "float", BAL_F32 },   { "double", BAL_F64 },
};

static const bal_param flag = {
    .name = "a flag", .type = BAL_PARAM_BOOL, .low = 0, .high = 1
};

const char *bal_space_name(bal_space space)
{
    return spaces[space];
}

bool bal_space_find(bal_space *out, const char *name)
{
    for (size_t i = 0; i < SPACES; i++) {
        if (strcmp(spaces[i], name))
            continue;
        *out = (bal_space)i;
        return true;
    }
    return false;
}

static int set_space(bal_recipe *self, const char *text, bal_error *err)
{
    if (bal_space_find(&self->space, text))
        return 0;
    return bal_fail(err, BAL_EINVAL,
                    "space: '%s' is none of auto delta weights product factors",
                    text);
}

static int set_strict(bal_recipe *self, const char *text, bal_error *err)
{
    bal_param_value value;
    int rc = bal_value_parse(&value, &flag, text, err);
    if (rc)
        return rc;
    self->strict = value.number != 0;
    return 0;
}

static int set_union(bal_recipe *self, const char *text, bal_error *err)
{
    bal_param_value value;
    int rc = bal_value_parse(&value, &flag, text, err);
    if (rc)
        return rc;
    self->strict = value.number == 0;
    return 0;
}

int bal_setting_dtype(int *out, const char *text, const char *what,
                      bal_error *err)
{
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        if (strcasecmp(dtypes[i].name, text))
            continue;
        *out = (int)dtypes[i].dtype;
        return 0;
    }
    return bal_fail(err, BAL_EINVAL, "%s: '%s' is none of BF16 F16 F32 F64",
                    what, text);
}

static int set_dtype(bal_recipe *self, const char *text, bal_error *err)
{
    return bal_setting_dtype(&self->dtype, text, "dtype", err);
}

static int set_out_dtype(bal_recipe *self, const char *text, bal_error *err)
{
    return bal_setting_dtype(&self->out_dtype, text, "out_dtype", err);
}

static int set_seed(bal_recipe *self, const char *text, bal_error *err)
{
    uint64_t seed;
    int rc = bal_parse_u64(&seed, text, err);
    if (rc)
        return bal_within(err, rc, "seed");
    /* Recorded for a method that draws none it would say something that is not
     * so. */
    if (!(self->method->info.flags & BAL_METHOD_SEEDED))
        return bal_fail(err, BAL_EINVAL, "method '%s' draws no random numbers",
                        self->method->info.name);
    self->seed = seed;
    self->seeded = true;
    return 0;
}

static int set_stream(bal_recipe *self, const char *text, bal_error *err)
{
    uint64_t seed;
    int rc = bal_parse_u64(&seed, text, err);
    if (rc)
        return bal_within(err, rc, "mergekit_stream");
    if (!self->method->draws)
        return bal_fail(err, BAL_EINVAL,
                        "method '%s' draws no random numbers of mergekit's",
                        self->method->info.name);
    self->stream = seed;
    self->streamed = true;
    return 0;
}

const char *bal_arithmetic_name(bool mergekit)
{
    return arithmetics[mergekit];
}

bool bal_arithmetic_find(bool *mergekit, const char *name)
{
    for (size_t i = 0; i < 2; i++) {
        if (strcmp(arithmetics[i], name))
            continue;
        *mergekit = i == 1;
        return true;
    }
    return false;
}

static int set_rank(bal_recipe *self, const char *text, bal_error *err)
{
    uint64_t rank;
    int rc = bal_parse_u64(&rank, text, err);
    if (!rc && !rank)
        rc = bal_fail(err, BAL_EINVAL, "1 is the least");
    if (!rc)
        rc = bal_rank_check(rank, 0, err);
    if (rc)
        return bal_within(err, rc, "rank");
    self->rank = rank;
    return 0;
}

static int set_energy(bal_recipe *self, const char *text, bal_error *err)
{
    double energy;
    int rc = bal_parse_f64(&energy, text, err);
    if (!rc)
        rc = bal_rank_check(0, energy, err);
    if (!rc && energy == 0)
        rc = bal_fail(err, BAL_EINVAL, "an energy is above 0");
    if (rc)
        return bal_within(err, rc, "energy");
    self->energy = energy;
    return 0;
}

static int set_arithmetic(bal_recipe *self, const char *text, bal_error *err)
{
    if (bal_arithmetic_find(&self->mergekit, text))
        return 0;
    return bal_fail(err, BAL_EINVAL,
                    "arithmetic: '%s' is neither precise nor mergekit", text);
}

static const struct {
    const char *name;
    bal_setting_set_fn *set;
} settings[] = {
    { "space", set_space },
    { "strict", set_strict },
    { "union", set_union },
    { "dtype", set_dtype },
    { "out_dtype", set_out_dtype },
    { "seed", set_seed },
    { "arithmetic", set_arithmetic },
    { "mergekit_stream", set_stream },
    { "rank", set_rank },
    { "energy", set_energy },
};

bal_setting_set_fn *bal_recipe_setting(const char *name)
{
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (!strcmp(settings[i].name, name))
            return settings[i].set;
    }
    return NULL;
}
