/* A recipe is completed and judged before it is recorded: a view that was
 * committed resolves, and means the same when defaults have changed. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/error.h"
#include "merge/settings.h"
#include "merge/values.h"

/* For each kind: the space it is merged in where none is asked for, and what
 * may be asked for. */
static const struct {
    bal_kind kind;
    bal_space preferred;
    bal_space other;
} kinds[] = {
    { BAL_KIND_DELTA, BAL_SPACE_DELTA, BAL_SPACE_DELTA },
    { BAL_KIND_WEIGHTS, BAL_SPACE_WEIGHTS, BAL_SPACE_WEIGHTS },
    { BAL_KIND_ADAPTER, BAL_SPACE_PRODUCT, BAL_SPACE_FACTORS },
};

/* A whole model that is told as the base of what is no whole model, or of what
 * is to be merged as differences, is what these are differences to. */
static bool is_origin(const bal_recipe *self, bal_model *const *inputs,
                      size_t base)
{
    if (self->sliced || base == BAL_NONE ||
        bal_model_facts(inputs[base])->kind != BAL_KIND_WEIGHTS ||
        (self->space != BAL_SPACE_AUTO && self->space != BAL_SPACE_DELTA))
        return false;
    bool whole = self->space == BAL_SPACE_AUTO;
    for (size_t i = 0; i < self->count; i++) {
        if (self->inputs[i].adapter || self->inputs[i].carrier)
            return false;
        whole = whole && bal_model_facts(inputs[i])->kind == BAL_KIND_WEIGHTS;
    }
    return !whole;
}

/* It comes last then, and its model with it. */
static int carry_base(bal_recipe *self, bal_model **inputs, bal_error *err)
{
    size_t base = self->slices[0].base;

    if (!is_origin(self, inputs, base))
        return 0;
    bal_input input = self->inputs[base];
    bal_model *model = inputs[base];
    /* Merged, it would be a difference of nothing. */
    if (!self->slices[0].added && self->method->role == BAL_ROLE_NONE)
        return bal_hint(err,
                        bal_fail(err, BAL_EINVAL,
                                 "the base that others are differences to is "
                                 "an input, too"),
                        "leave it out, and let the others weigh less");
    if (json_object_size(input.parameters))
        return bal_fail(err, BAL_EINVAL,
                        "the base that others are differences to takes no "
                        "weight or parameters");
    input.weight = 1;
    for (size_t i = base; i + 1 < self->count; i++) {
        self->inputs[i] = self->inputs[i + 1];
        inputs[i] = inputs[i + 1];
    }
    input.carrier = true;
    self->inputs[self->count - 1] = input;
    inputs[self->count - 1] = model;
    self->slices[0].base = BAL_NONE;
    self->space = BAL_SPACE_DELTA;
    return 0;
}

/* "slerp a b" goes from a to b. */
static void imply_base(bal_recipe *self)
{
    const bal_method *method = self->method;

    if (!self->sliced && self->slices[0].base == BAL_NONE &&
        method->role == BAL_ROLE_OPERAND && method->info.max_inputs == 1 &&
        bal_recipe_merged(self) == 2)
        self->slices[0].base = 0;
}

/* What "takes 2 inputs" is followed by. */
static const char *beside(const bal_recipe *self)
{
    return self->method->role == BAL_ROLE_NONE ? "" : " beside the base";
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* Of `count` inputs, the base among them. */
static int check_number(const bal_recipe *self, size_t count, size_t base,
                        bal_error *err)
{
    const bal_method_info *info = &self->method->info;
    bool apart = base != BAL_NONE && bal_recipe_apart(self, base);

    count -= apart;
    /* What nothing is added to stays what it is. */
    if (apart && !count && !info->max_inputs &&
        self->method->role == BAL_ROLE_ORIGIN)
        return 0;
    if (count < info->min_inputs)
        return bal_fail(err, BAL_EINVAL, "method '%s' takes %zu input%s%s%s",
                        info->name, info->min_inputs, plural(info->min_inputs),
                        info->max_inputs == info->min_inputs ? "" : " or more",
                        beside(self));
    if (info->max_inputs && count > info->max_inputs)
        return bal_fail(err, BAL_EINVAL,
                        "method '%s' takes %zu input%s at most%s", info->name,
                        info->max_inputs, plural(info->max_inputs),
                        beside(self));
    if (!count && !apart)
        return bal_fail(err, BAL_EINVAL, "a merge of no inputs");
    return 0;
}

static int check_count(const bal_recipe *self, bal_error *err)
{
    size_t merged = bal_recipe_merged(self);
    int rc = 0;

    for (size_t i = 0; !rc && i < self->slice_count; i++) {
        size_t count = 0;
        for (size_t k = 0; k < merged; k++)
            count += self->inputs[k].slice == i;
        rc = check_number(self, count, self->slices[i].base, err);
        if (rc && self->sliced)
            rc = bal_within(err, rc, "slice %zu", i + 1);
    }
    return rc;
}

/* Sources of a slice have as many layers each. */
static int check_lengths(const bal_recipe *self, bal_error *err)
{
    for (size_t i = 1; self->sliced && i < bal_recipe_merged(self); i++) {
        const bal_input *input = &self->inputs[i];
        const bal_input *before = input - 1;
        uint64_t length = before->end - before->first;
        if (before->slice == input->slice &&
            input->end - input->first != length)
            return bal_fail(err, BAL_EINVAL,
                            "slice %zu: %llu layers of input %zu, %llu of "
                            "input %zu",
                            input->slice + 1, (unsigned long long)length, i,
                            (unsigned long long)(input->end - input->first),
                            i + 1);
    }
    return 0;
}

/* What is put onto a model is an adapter, and it is a model then. */
static int check_adapter(const bal_input *input, bal_model *const *inputs,
                         size_t i, bal_error *err)
{
    bal_kind kind = bal_model_facts(inputs[i])->kind;
    bal_kind under = bal_model_facts(inputs[input->onto])->kind;

    if (kind == BAL_KIND_ADAPTER && under == BAL_KIND_WEIGHTS)
        return 0;
    return bal_fail(err, BAL_EINVAL,
                    "input %zu is of kind '%s', input %zu of kind '%s': it is "
                    "adapters that are put onto models",
                    i + 1, bal_kind_name(kind), input->onto + 1,
                    bal_kind_name(under));
}

static bal_kind kind_of(const bal_recipe *self, bal_model *const *inputs,
                        size_t i)
{
    return self->inputs[i].adapter ? BAL_KIND_WEIGHTS
                                   : bal_model_facts(inputs[i])->kind;
}

static int check_kinds(const bal_recipe *self, bal_model *const *inputs,
                       bal_error *err)
{
    bal_kind first = kind_of(self, inputs, 0);

    if (bal_recipe_origin(self) != BAL_NONE)
        return 0;
    for (size_t i = 0; i < self->count; i++) {
        const bal_input *input = &self->inputs[i];
        bal_kind kind = kind_of(self, inputs, i);
        int rc = input->adapter ? check_adapter(input, inputs, i, err) : 0;

        if (rc)
            return rc;
        if (kind == first)
            continue;
        return bal_hint(
            err,
            bal_fail(err, BAL_EINVAL,
                     "input 1 is of kind '%s', input %zu of kind '%s': they do "
                     "not mix",
                     bal_kind_name(first), i + 1, bal_kind_name(kind)),
            "deltas go with deltas, adapters with adapters; all of them "
            "with the base that they are of: --base SPEC");
    }
    return 0;
}

static int choose_space(bal_recipe *self, bal_kind kind, bal_error *err)
{
    if (bal_recipe_origin(self) != BAL_NONE)
        return 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].kind != kind)
            continue;
        if (self->space == BAL_SPACE_AUTO)
            self->space = kinds[i].preferred;
        if (self->space == kinds[i].preferred || self->space == kinds[i].other)
            return 0;
    }
    return bal_fail(err, BAL_EINVAL,
                    "inputs of kind '%s' are not merged in space '%s'",
                    bal_kind_name(kind), bal_space_name(self->space));
}

/* Differences are to a base already; of whole models it has to be told. */
static int check_base(const bal_recipe *self, bal_error *err)
{
    bool based = true;

    for (size_t i = 0; i < self->slice_count; i++)
        based = based && self->slices[i].base != BAL_NONE;
    if (self->space != BAL_SPACE_WEIGHTS || !self->method->needs_base || based)
        return 0;
    return bal_hint(err,
                    bal_fail(err, BAL_EINVAL,
                             "method '%s' needs a base, and inputs are whole "
                             "models",
                             self->method->info.name),
                    "--base SPEC");
}

/* Sums of maps are maps of low rank again; what other methods make of them is
 * not, and has to be cut. */
static int check_product(const bal_recipe *self, bal_error *err)
{
    static const char factors[] =
        "--space factors merges the factors themselves";
    static const char cut[] =
        "--rank R or --energy F makes an adapter of it, --base SPEC a delta; "
        "--space factors merges the factors themselves";

    if (self->space != BAL_SPACE_PRODUCT)
        return 0;
    if (self->mergekit)
        return bal_hint(err,
                        bal_fail(err, BAL_EUNSUPPORTED,
                                 "arithmetic 'mergekit' does not merge "
                                 "adapters as the maps they are"),
                        factors);
    if (!self->method->share && !self->rank && self->energy == 0)
        return bal_hint(err,
                        bal_fail(err, BAL_EUNSUPPORTED,
                                 "method '%s' of adapters as the maps they are "
                                 "has no low rank",
                                 self->method->info.name),
                        cut);
    if (self->method->share && self->slices[0].base != BAL_NONE &&
        bal_recipe_apart(self, self->slices[0].base))
        return bal_hint(err,
                        bal_fail(err, BAL_EINVAL,
                                 "adapters as the maps they are take no base"),
                        factors);
    return 0;
}

/* What is cut is a sum of maps. */
static int check_rank(const bal_recipe *self, bal_error *err)
{
    bool ranked = self->rank != 0;
    bool energetic = self->energy != 0;

    if (ranked && energetic)
        return bal_fail(err, BAL_EINVAL, "a rank or an energy, not both");
    if ((ranked || energetic) && self->space != BAL_SPACE_PRODUCT)
        return bal_fail(err, BAL_EINVAL,
                        "%s: of adapters merged as the maps they are only",
                        ranked ? "a rank" : "an energy");
    return 0;
}

/* What is the same for every tensor is judged now; the rest tensor by tensor,
 * when the view is opened. */
static int check_weights(const bal_recipe *self, bal_error *err)
{
    BAL_LOCAL(bal_rules) rules = { 0 };
    BAL_LOCAL(bal_values) values = { 0 };
    int rc = bal_rules_init(&rules, self, err);
    if (rc || !rules.plain || !self->method->check)
        return rc;

    rc = bal_values_init(&values, self, err);
    if (rc)
        return rc;
    double *weights = calloc(self->count + 1, sizeof(*weights));
    if (!weights)
        return bal_fail_memory(err, "a recipe");
    size_t count = 0;
    for (size_t i = 0; i < bal_recipe_merged(self); i++) {
        if (!bal_recipe_apart(self, i))
            weights[count++] = bal_values_weight(&values, i);
    }
    rc = self->method->check(weights, count, &values, err);
    free(weights);
    return rc;
}

/* Slices, vocabularies and dtypes of two kinds are of whole models. */
static int check_whole(const bal_recipe *self, bal_error *err)
{
    const char *what = self->sliced           ? "slices"
                       : self->vocabulary     ? "another vocabulary"
                       : self->out_dtype >= 0 ? "out_dtype"
                                              : NULL;

    if (what && self->space != BAL_SPACE_WEIGHTS)
        return bal_fail(err, BAL_EINVAL, "%s: of whole models only", what);
    if (self->out_dtype >= 0 && !self->mergekit)
        return bal_fail(err, BAL_EINVAL,
                        "out_dtype is for arithmetic 'mergekit': 'precise' "
                        "rounds once, to dtype");
    return 0;
}

/* Numbers of mergekit's are for what gives mergekit's result. */
static int check_stream(const bal_recipe *self, bal_error *err)
{
    if (!self->streamed)
        return 0;
    if (!self->mergekit)
        return bal_fail(err, BAL_EINVAL,
                        "mergekit's random numbers are for arithmetic "
                        "'mergekit'");
    if (self->seeded)
        return bal_fail(err, BAL_EINVAL,
                        "a seed, and mergekit's random numbers, which have "
                        "their own");
    return 0;
}

/* Drawn once and recorded, so that the view stays what it is. */
static int draw_seed(bal_recipe *self, bal_error *err)
{
    if (self->seeded || self->streamed ||
        !(self->method->info.flags & BAL_METHOD_SEEDED))
        return 0;
    if (getrandom(&self->seed, sizeof(self->seed), 0) !=
        (ssize_t)sizeof(self->seed))
        return bal_fail_errno(err, "drawing a seed");
    self->seeded = true;
    return 0;
}

/* What is not told is told now. */
static int fill_defaults(bal_recipe *self, bal_error *err)
{
    const bal_param *param = self->method->info.params;

    for (; param->name; param++) {
        if (!strcmp(param->name, BAL_WEIGHT) || !param->fallback)
            continue;
        BAL_LOCAL(bal_buf) text = { 0 };
        const char *told =
            json_string_value(json_object_get(self->parameters, param->name));
        int rc = bal_buf_format(&text, err, "%s%s%s", told ? told : "",
                                told ? ";" : "", param->fallback);
        if (!rc)
            rc = bal_recipe_set(self, param->name, bal_buf_string(&text), err);
        if (rc)
            return rc;
    }
    return 0;
}

int bal_recipe_settle(bal_recipe *self, bal_model **inputs, bal_error *err)
{
    int rc = carry_base(self, inputs, err);

    imply_base(self);
    if (!rc)
        rc = check_count(self, err);
    if (!rc)
        rc = check_lengths(self, err);
    if (!rc)
        rc = check_kinds(self, inputs, err);
    if (!rc)
        rc = choose_space(self, kind_of(self, inputs, 0), err);
    if (!rc)
        rc = check_whole(self, err);
    if (!rc)
        rc = check_base(self, err);
    if (!rc)
        rc = check_product(self, err);
    if (!rc)
        rc = check_rank(self, err);
    if (!rc)
        rc = check_stream(self, err);
    if (!rc)
        rc = check_weights(self, err);
    if (!rc)
        rc = draw_seed(self, err);
    if (rc)
        return rc;
    return fill_defaults(self, err);
}
