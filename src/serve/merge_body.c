/* From JSON to a recipe: members by a table, values as the text that recipes
 * take, so that they are checked where all others are. */
#include "serve/merge_body.h"

#include <string.h>

#include "core/error.h"
#include "core/str.h"

void bal_merge_body_done(bal_merge_body *self)
{
    json_decref(self->root);
    self->root = NULL;
}

/* ---- members ----------------------------------------------------------------
 */

typedef struct member {
    const char *name;
    bool (*is)(const json_t *value);
    const char *type;
    bool required;
} member;

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool is_array(const json_t *value)
{
    return json_is_array(value);
}

static bool is_object(const json_t *value)
{
    return json_is_object(value);
}

static bool is_integer(const json_t *value)
{
    return json_is_integer(value);
}

static bool is_boolean(const json_t *value)
{
    return json_is_boolean(value);
}

static const member members[] = {
    { "inputs", is_array, "a list of objects", true },
    { "message", is_text, "text", true },
    { "method", is_text, "text", false },
    { "ref", is_text, "text", false },
    { "base", is_text, "text", false },
    { "parameters", is_object, "an object", false },
    { "seed", is_integer, "an integer", false },
    { "strict", is_boolean, "true or false", false },
};

enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

static const member *find_member(const char *name)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        if (!strcmp(members[i].name, name))
            return &members[i];
    }
    return NULL;
}

static int check_members(json_t *root, bal_error *err)
{
    const char *name;
    json_t *value;

    json_object_foreach(root, name, value)
    {
        const member *known = find_member(name);
        if (!known) {
            int rc = bal_fail(err, BAL_EINVAL, "unknown member '%s'", name);
            return bal_hint(err, rc,
                            "inputs message method ref base parameters seed "
                            "strict");
        }
        if (!known->is(value))
            return bal_fail(err, BAL_EINVAL, "'%s' is not %s", name,
                            known->type);
    }
    for (size_t i = 0; i < MEMBERS; i++) {
        if (members[i].required && !json_object_get(root, members[i].name))
            return bal_fail(err, BAL_EINVAL, "'%s' is missing",
                            members[i].name);
    }
    return 0;
}

static int check_inputs(const json_t *inputs, bal_error *err)
{
    if (!json_array_size(inputs))
        return bal_fail(err, BAL_EINVAL, "%s", "'inputs' is empty");
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        const json_t *input = json_array_get(inputs, i);
        if (!json_is_object(input))
            return bal_fail(err, BAL_EINVAL, "inputs[%zu] is not an object", i);
        if (!json_is_string(json_object_get(input, "spec")))
            return bal_fail(err, BAL_EINVAL, "inputs[%zu] has no text 'spec'",
                            i);
    }
    return 0;
}

static const char *text_of(const json_t *root, const char *name,
                           const char *fallback)
{
    const char *text = json_string_value(json_object_get(root, name));

    return text ? text : fallback;
}

int bal_merge_body_read(bal_merge_body *out, bal_bytes text, bal_error *err)
{
    BAL_LOCAL(bal_merge_body) self = { 0 };
    bal_error why = { 0 };
    int rc = bal_json_parse(&self.root, text.data, text.len, "the body", &why);

    if (rc)
        return bal_fail(err, rc == BAL_ECORRUPT ? BAL_EINVAL : rc, "%s",
                        why.text);
    if (!json_is_object(self.root))
        return bal_fail(err, BAL_EINVAL, "%s", "the body is not an object");
    rc = check_members(self.root, err);
    if (rc)
        return rc;
    self.inputs = json_object_get(self.root, "inputs");
    self.parameters = json_object_get(self.root, "parameters");
    self.seed = json_object_get(self.root, "seed");
    self.strict = json_is_true(json_object_get(self.root, "strict"));
    self.base = text_of(self.root, "base", NULL);
    self.method = text_of(self.root, "method", "linear");
    self.ref = text_of(self.root, "ref", "main");
    self.message = text_of(self.root, "message", "");
    rc = check_inputs(self.inputs, err);
    if (rc)
        return rc;
    *out = self;
    self.root = NULL;
    return 0;
}

/* ---- values -----------------------------------------------------------------
 */

static int put_value(bal_buf *to, const char *name, const json_t *value,
                     bal_error *err)
{
    char number[32];

    if (json_is_string(value))
        return bal_buf_text(to, json_string_value(value), err);
    if (json_is_boolean(value))
        return bal_buf_text(to, json_is_true(value) ? "true" : "false", err);
    if (json_is_integer(value))
        return bal_buf_format(to, err, "%lld",
                              (long long)json_integer_value(value));
    if (!json_is_real(value))
        return bal_fail(err, BAL_EINVAL,
                        "'%s' is not a number, text, true or false", name);
    bal_f64_text(number, json_real_value(value));
    return bal_buf_text(to, number, err);
}

static int set(bal_recipe *to, const char *name, const json_t *value,
               bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc = put_value(&text, name, value, err);

    return rc ? rc : bal_recipe_set(to, name, bal_buf_string(&text), err);
}

/* A spec alone: what an input may have behind it are members here. */
static int check_spec(const char *spec, bal_error *err)
{
    const char *at = strchr(spec, '@');

    while (at && at[1] == '{')
        at = strchr(at + 1, '@');
    if (at || strpbrk(spec, ",="))
        return bal_fail(err, BAL_EINVAL, "'%s' is not a spec", spec);
    return 0;
}

/* ",name=value", where neither can be taken for more than that. */
static int put_own(bal_buf *to, const char *name, const json_t *value,
                   bal_error *err)
{
    const char *text = json_string_value(value);

    if (!bal_name_valid(name))
        return bal_fail(err, BAL_EINVAL, "'%s' is not a parameter", name);
    if (text && strpbrk(text, "=@"))
        return bal_fail(err, BAL_EINVAL, "'%s' is not a value of '%s'", text,
                        name);
    int rc = bal_buf_format(to, err, ",%s=", name);
    return rc ? rc : put_value(to, name, value, err);
}

static int put_input(bal_recipe *to, json_t *input, bal_tenant *tenant,
                     bal_error *err)
{
    const char *spec = json_string_value(json_object_get(input, "spec"));
    BAL_LOCAL(bal_buf) text = { 0 };
    const char *name;
    json_t *value;
    int rc = check_spec(spec, err);
    if (!rc)
        rc = bal_buf_text(&text, spec, err);

    json_object_foreach(input, name, value)
    {
        if (!rc && strcmp(name, "spec") != 0)
            rc = put_own(&text, name, value, err);
    }
    return rc ? rc : bal_recipe_input(to, tenant, bal_buf_string(&text), err);
}

static int put_settings(bal_recipe *to, const bal_merge_body *self,
                        bal_error *err)
{
    const char *name;
    json_t *value;

    json_object_foreach(self->parameters, name, value)
    {
        int rc = set(to, name, value, err);
        if (rc)
            return rc;
    }
    int rc = self->seed ? set(to, "seed", self->seed, err) : 0;
    if (!rc && self->strict)
        rc = bal_recipe_set(to, "strict", "true", err);
    return rc;
}

int bal_merge_body_fill(bal_recipe *to, const bal_merge_body *self,
                        bal_tenant *tenant, bal_error *err)
{
    int rc = put_settings(to, self, err);

    for (size_t i = 0; !rc && i < json_array_size(self->inputs); i++)
        rc = put_input(to, json_array_get(self->inputs, i), tenant, err);
    if (rc || !self->base)
        return rc;
    rc = check_spec(self->base, err);
    return rc ? rc : bal_recipe_base(to, tenant, self->base, err);
}
