/* A recipe as a configuration: mergekit's names for methods are ours, those of
 * parameters are in their rows. */
#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"
#include "kernel/dtype.h"
#include "merge/mergekit.h"
#include "merge/settings.h"
#include "merge/values.h"

/* One that is being written. */
typedef struct writer {
    bal_buf *to;
    const bal_recipe *recipe;
    bal_mergekit_name_fn *name;
    void *ctx;
} writer;

/* ---- what mergekit has nothing for -------------------------------------- */

static int check_inputs(const bal_recipe *recipe, bal_error *err)
{
    for (size_t i = 0; i < bal_recipe_merged(recipe); i++) {
        const bal_input *input = &recipe->inputs[i];
        for (size_t k = 0; k < i; k++) {
            const bal_input *other = &recipe->inputs[k];
            if (other->slice == input->slice &&
                other->adapter == input->adapter &&
                (!input->adapter || other->onto == input->onto) &&
                !strcmp(other->tenant, input->tenant) &&
                bal_id_equal(&other->commit, &input->commit))
                return bal_fail(err, BAL_EUNSUPPORTED,
                                "inputs %zu and %zu are the same commit: "
                                "mergekit takes no model twice",
                                k + 1, i + 1);
        }
    }
    return 0;
}

static int check(const bal_recipe *recipe, bal_error *err)
{
    if (recipe->space != BAL_SPACE_WEIGHTS)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "a view in space '%s': mergekit merges whole models "
                        "only",
                        bal_space_name(recipe->space));
    if (recipe->method->info.flags & BAL_METHOD_PEFT)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "method '%s' is PEFT's, which mergekit has not",
                        recipe->method->info.name);
    return check_inputs(recipe, err);
}

/* ---- values ------------------------------------------------------------- */

/* To YAML 1e-05 is a text; a float has a point. */
static int put_number(bal_buf *to, const char *text, size_t len, bal_error *err)
{
    const char *e = memchr(text, 'e', len);
    bool plain =
        !e || memchr(text, '.', len) || strspn(text, "+-0123456789e") < len;
    size_t head = plain ? len : (size_t)(e - text);
    int rc = bal_buf_append(to, text, head, err);

    if (rc || plain)
        return rc;
    rc = bal_buf_text(to, ".0", err);
    return rc ? rc : bal_buf_append(to, e, len - head, err);
}

/* "0.5", or "0,0.5,1" as a list. */
static int put_plain(bal_buf *to, const char *text, size_t len, bal_error *err)
{
    bool list = memchr(text, ',', len) != NULL;
    int rc = list ? bal_buf_text(to, "[", err) : 0;

    for (size_t at = 0; !rc && at <= len;) {
        const char *comma = memchr(text + at, ',', len - at);
        size_t size = comma ? (size_t)(comma - text) - at : len - at;
        rc = at ? bal_buf_text(to, ", ", err) : 0;
        if (!rc)
            rc = put_number(to, text + at, size, err);
        at += size + 1;
    }
    if (rc || !list)
        return rc;
    return bal_buf_text(to, "]", err);
}

/* One of several: "FILTER:value" or "value". */
static int put_condition(bal_buf *to, const char *indent, const char *text,
                         size_t len, bal_error *err)
{
    const char *colon = memrchr(text, ':', len);
    size_t head = colon ? (size_t)(colon - text) + 1 : 0;
    int rc = bal_buf_format(to, err, "\n%s  - ", indent);

    if (!rc && colon)
        rc = bal_buf_text(to, "filter: ", err);
    if (!rc && colon)
        rc = bal_json_quote(to, text, head - 1, err);
    if (!rc && colon)
        rc = bal_buf_format(to, err, "\n%s    ", indent);
    if (!rc)
        rc = bal_buf_text(to, "value: ", err);
    return rc ? rc : put_plain(to, text + head, len - head, err);
}

static int put_value(bal_buf *to, const char *indent, const char *name,
                     const char *text, bal_error *err)
{
    int rc = bal_buf_format(to, err, "%s%s:", indent, name);

    if (!rc && !strpbrk(text, ":;")) {
        rc = bal_buf_text(to, " ", err);
        if (!rc)
            rc = put_plain(to, text, strlen(text), err);
        return rc ? rc : bal_buf_text(to, "\n", err);
    }
    while (!rc && *text) {
        size_t len = strcspn(text, ";");
        rc = put_condition(to, indent, text, len, err);
        text += len + (text[len] == ';');
    }
    return rc ? rc : bal_buf_text(to, "\n", err);
}

/* Parameters by mergekit's names; one that it has not is refused unless it is
 * what it would be anyway. */
static int put_parameters(const writer *self, const char *indent,
                          const json_t *parameters, bal_error *err)
{
    const bal_param *param = self->recipe->method->info.params;

    for (; param && param->name; param++) {
        const char *text =
            json_string_value(json_object_get(parameters, param->name));
        if (!text)
            continue;
        if (!param->mergekit && param->fallback &&
            !strcmp(param->fallback, text))
            continue;
        if (!param->mergekit)
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "mergekit has no parameter '%s'", param->name);
        int rc = put_value(self->to, indent, param->mergekit, text, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- models ------------------------------------------------------------- */

static int find_name(const char **out, const writer *self, size_t i,
                     bal_error *err)
{
    const bal_input *input = &self->recipe->inputs[i];
    char hex[BAL_ID_HEX + 1];

    *out = self->name(self->ctx, input);
    if (*out)
        return 0;
    bal_id_hex(hex, &input->commit);
    return bal_fail(err, BAL_EUNSUPPORTED, "input '%s:%.12s' has no name",
                    input->tenant, hex);
}

/* "model", or "model+adapter". */
static int put_name(const writer *self, size_t i, bal_error *err)
{
    const bal_input *input = &self->recipe->inputs[i];
    BAL_LOCAL(bal_buf) text = { 0 };
    const char *name;
    int rc = find_name(&name, self, input->adapter ? input->onto : i, err);

    if (!rc)
        rc = bal_buf_text(&text, name, err);
    if (!rc && input->adapter)
        rc = find_name(&name, self, i, err);
    if (!rc && input->adapter)
        rc = bal_buf_format(&text, err, "+%s", name);
    return rc ? rc
              : bal_json_quote(self->to, bal_buf_string(&text), text.len, err);
}

/* How far things are indented. */
typedef struct margin {
    const char *item, *member, *value;
} margin;

static const margin of_model = { "  - ", "    ", "      " };
static const margin of_source = { "      - ", "        ", "          " };

static int put_layers(const writer *self, const margin *in,
                      const bal_input *input, bal_error *err)
{
    if (!self->recipe->sliced)
        return 0;
    return bal_buf_format(self->to, err, "%slayer_range: [%llu, %llu]\n",
                          in->member, (unsigned long long)input->first,
                          (unsigned long long)input->end);
}

static int put_model(const writer *self, const margin *in, size_t i,
                     bal_error *err)
{
    const bal_input *input = &self->recipe->inputs[i];
    bool apart = bal_recipe_apart(self->recipe, i);
    int rc = bal_buf_format(self->to, err, "%smodel: ", in->item);

    if (!rc)
        rc = put_name(self, i, err);
    if (!rc)
        rc = bal_buf_text(self->to, "\n", err);
    if (!rc)
        rc = put_layers(self, in, input, err);
    if (rc || apart || !json_object_size(input->parameters))
        return rc;
    rc = bal_buf_format(self->to, err, "%sparameters:\n", in->member);
    return rc ? rc : put_parameters(self, in->value, input->parameters, err);
}

static int put_base(const writer *self, const char *indent, size_t slice,
                    bal_error *err)
{
    size_t base = self->recipe->slices[slice].base;
    int rc;

    if (base == BAL_NONE)
        return 0;
    rc = bal_buf_format(self->to, err, "%sbase_model: ", indent);
    if (!rc)
        rc = put_name(self, base, err);
    return rc ? rc : bal_buf_text(self->to, "\n", err);
}

static int put_models(const writer *self, bool base_alone, bal_error *err)
{
    const bal_recipe *recipe = self->recipe;
    int rc = put_base(self, "", 0, err);

    if (!rc)
        rc = bal_buf_text(self->to, "models:\n", err);
    for (size_t i = 0; !rc && i < bal_recipe_merged(recipe); i++) {
        if (base_alone || !bal_recipe_apart(recipe, i))
            rc = put_model(self, &of_model, i, err);
    }
    return rc;
}

static int put_slice(const writer *self, size_t slice, bal_error *err)
{
    const bal_recipe *recipe = self->recipe;
    const json_t *told = recipe->slices[slice].parameters;
    int rc = bal_buf_text(self->to, "  - sources:\n", err);

    for (size_t i = 0; !rc && i < bal_recipe_merged(recipe); i++) {
        if (recipe->inputs[i].slice == slice)
            rc = put_model(self, &of_source, i, err);
    }
    if (!rc)
        rc = put_base(self, "    ", slice, err);
    if (rc || !json_object_size(told))
        return rc;
    rc = bal_buf_text(self->to, "    parameters:\n", err);
    return rc ? rc : put_parameters(self, "      ", told, err);
}

static int put_slices(const writer *self, bal_error *err)
{
    int rc = bal_buf_text(self->to, "slices:\n", err);

    for (size_t i = 0; !rc && i < self->recipe->slice_count; i++)
        rc = put_slice(self, i, err);
    return rc;
}

/* ---- the vocabulary ----------------------------------------------------- */

static int put_key(const writer *self, const char *indent, const char *key,
                   bal_error *err)
{
    int rc = bal_buf_text(self->to, indent, err);

    if (!rc)
        rc = bal_json_quote(self->to, key, strlen(key), err);
    return rc ? rc : bal_buf_text(self->to, ":\n", err);
}

/* A text as it is, or the name of the input of that index. */
static int put_member(const writer *self, const char *indent, const char *key,
                      const json_t *value, bool model, bal_error *err)
{
    const char *text = json_string_value(value);
    int rc = bal_buf_format(self->to, err, "%s%s: ", indent, key);

    if (!rc && text)
        rc = bal_json_quote(self->to, text, strlen(text), err);
    else if (!rc && model)
        rc = put_name(self, (size_t)json_integer_value(value), err);
    else if (!rc)
        rc = bal_buf_format(self->to, err, "%lld",
                            (long long)json_integer_value(value));
    return rc ? rc : bal_buf_text(self->to, "\n", err);
}

static int put_row(const writer *self, const json_t *source, bal_error *err)
{
    static const char *const others[] = { "token", "token_id" };
    const json_t *input = json_object_get(source, "input");
    int rc;

    if (!json_is_object(source))
        return bal_buf_text(self->to, "      source: {kind: zero}\n", err);
    if (json_object_size(source) == 1)
        return put_member(self, "      ", "source", input, true, err);
    rc = bal_buf_text(self->to, "      source:\n        kind: model_token\n",
                      err);
    if (!rc)
        rc = put_member(self, "        ", "model", input, true, err);
    for (size_t i = 0; !rc && i < 2; i++) {
        const json_t *other = json_object_get(source, others[i]);
        if (other)
            rc = put_member(self, "        ", others[i], other, false, err);
    }
    return rc;
}

static int put_token(const writer *self, const char *name, const json_t *token,
                     bal_error *err)
{
    const json_t *source = json_object_get(token, "source");
    bool force = json_is_true(json_object_get(token, "force"));
    int rc = put_key(self, "    ", name, err);

    if (!rc && source)
        rc = put_row(self, source, err);
    if (!rc && (force || !source))
        rc = bal_buf_format(self->to, err, "      force: %s\n",
                            force ? "true" : "false");
    return rc;
}

static int put_vocabulary(const writer *self, bal_error *err)
{
    json_t *want = self->recipe->vocabulary;
    json_t *tokens = json_object_get(want, "tokens");
    const json_t *multiple = json_object_get(want, "pad_to_multiple_of");
    const char *name;
    json_t *token;
    int rc;

    if (!want)
        return 0;
    rc = bal_buf_text(self->to, "tokenizer:\n", err);
    if (!rc)
        rc = put_member(self, "  ", "source", json_object_get(want, "source"),
                        true, err);
    if (!rc && multiple)
        rc = put_member(self, "  ", "pad_to_multiple_of", multiple, false, err);
    if (!rc && json_object_size(tokens))
        rc = bal_buf_text(self->to, "  tokens:\n", err);
    json_object_foreach(tokens, name, token)
    {
        if (!rc)
            rc = put_token(self, name, token, err);
    }
    return rc;
}

/* ---- the document ------------------------------------------------------- */

static int put_remarks(const writer *self, bal_error *err)
{
    const bal_recipe *recipe = self->recipe;
    int rc = 0;

    if (!recipe->mergekit)
        rc = bal_buf_text(self->to,
                          "# Recorded in arithmetic 'precise', which rounds "
                          "once; mergekit rounds at each step.\n",
                          err);
    if (!rc && recipe->method->info.flags & BAL_METHOD_SEEDED)
        rc = bal_buf_text(self->to, "# mergekit draws other random numbers.\n",
                          err);
    return rc;
}

static int put_dtype(const writer *self, const char *key, int dtype,
                     bal_error *err)
{
    if (dtype < 0)
        return 0;
    const char *ours = bal_dtype_name((bal_dtype)dtype);
    const char *name = bal_mergekit_dtype_name(ours);
    if (!name)
        return bal_fail(err, BAL_EUNSUPPORTED, "mergekit has no dtype '%s'",
                        ours);
    return bal_buf_format(self->to, err, "%s: %s\n", key, name);
}

static int put_dtypes(const writer *self, bal_error *err)
{
    const bal_recipe *recipe = self->recipe;
    int rc = put_dtype(self, recipe->mergekit ? "dtype" : "out_dtype",
                       recipe->dtype, err);

    return rc ? rc : put_dtype(self, "out_dtype", recipe->out_dtype, err);
}

int bal_mergekit_write(bal_buf *to, const bal_recipe *recipe,
                       bal_mergekit_name_fn *name, void *ctx, bal_error *err)
{
    const writer self = { to, recipe, name, ctx };
    bool alone = bal_recipe_merged(recipe) == 1;
    int rc = check(recipe, err);

    if (!rc)
        rc = put_remarks(&self, err);
    if (!rc)
        rc = bal_buf_format(to, err, "merge_method: %s\n",
                            recipe->method->info.name);
    if (!rc)
        rc = recipe->sliced ? put_slices(&self, err)
                            : put_models(&self, alone, err);
    if (!rc && json_object_size(recipe->parameters))
        rc = bal_buf_text(to, "parameters:\n", err);
    if (!rc)
        rc = put_parameters(&self, "  ", recipe->parameters, err);
    if (!rc)
        rc = put_vocabulary(&self, err);
    return rc ? rc : put_dtypes(&self, err);
}
