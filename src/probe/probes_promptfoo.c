/* promptfoo's tests as JSON Lines: {"vars": {…}, "assert": [{"type",
 * "value"}]}. Variables and templates come together here for its CSV, too. */
#include <string.h>

#include "core/error.h"
#include "probe/probes_inside.h"

/* ---- a test ------------------------------------------------------------- */

/* text with the variables in it, as promptfoo renders what it expects. */
static int render(bal_buf *out, const char *text, bal_vars *vars,
                  bal_error *err)
{
    BAL_LOCAL(bal_template) template = { 0 };

    if (!strstr(text, "{{"))
        return bal_buf_text(out, text, err);
    int rc = bal_template_read(&template, text, err);

    return rc ? rc : bal_template_fill(out, &template, vars, err);
}

int bal_foo_expect(bal_maker *self, bal_foo *foo, const char *text,
                   bal_error *err)
{
    BAL_LOCAL(bal_buf) filled = { .ceiling = BAL_PROBE_TEXT };
    const char *answer = NULL;
    int rc = render(&filled, text, &foo->vars, err);

    if (!rc)
        rc = bal_maker_trim(self, &answer, bal_buf_string(&filled), err);
    if (rc)
        return rc;
    if (!answer[0])
        return bal_fail(err, BAL_EINVAL, "an empty answer is expected");
    if (foo->expected_count == BAL_PROBE_LIST)
        return bal_fail(err, BAL_EINVAL, "more than %zu answers are expected",
                        BAL_PROBE_LIST);
    foo->expected[foo->expected_count++] = answer;
    return 0;
}

int bal_foo_add(bal_maker *self, bal_foo *foo, bal_error *err)
{
    BAL_LOCAL(bal_buf) prompt = { .ceiling = BAL_PROBE_PROMPT };
    const char **references = NULL;
    bal_probe probe = { .reference_count = foo->expected_count };
    int rc = bal_buf_text(&prompt, foo->prefix ? foo->prefix : "", err);

    if (!rc)
        rc = bal_template_fill(&prompt, self->template, &foo->vars, err);
    if (!rc && foo->suffix)
        rc = bal_buf_text(&prompt, foo->suffix, err);
    if (rc)
        return bal_within(err, rc, "its prompt");
    rc = bal_maker_list(self, &references, probe.reference_count, "expected",
                        err);
    if (rc)
        return rc;
    for (size_t i = 0; i < probe.reference_count; i++)
        references[i] = foo->expected[i];
    probe.references = references;
    rc = bal_maker_copy(self, &probe.prompt, bal_buf_string(&prompt),
                        prompt.len, err);

    return rc ? rc : bal_maker_add(self, &probe, err);
}

/* ---- a line ------------------------------------------------------------- */

static int take_vars(bal_maker *self, bal_foo *foo, bal_arena *arena,
                     const json_t *vars, bal_error *err)
{
    const char *name;
    json_t *value;

    if (!json_is_object(vars))
        return bal_fail(err, BAL_EINVAL, "no object 'vars'");
    int rc = bal_vars_init(&foo->vars, arena, json_object_size(vars), err);
    if (rc)
        return rc;
    json_object_foreach((json_t *)vars, name, value)
    {
        const char *text = NULL;
        rc = bal_maker_scalar(self, &text, value, err);
        if (!rc)
            rc = bal_vars_add(&foo->vars, name, text, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int take_assert(bal_maker *self, bal_foo *foo, const json_t *assertion,
                       bal_error *err)
{
    const json_t *type = json_object_get(assertion, "type");
    const json_t *value = json_object_get(assertion, "value");
    const char *text = NULL;

    if (!json_is_string(type))
        return bal_fail(err, BAL_EINVAL, "something in 'assert' has no 'type'");
    if (value && !strcmp(json_string_value(type), "equals")) {
        int rc = bal_maker_scalar(self, &text, value, err);
        if (rc)
            return rc;
    }
    if (text)
        return bal_foo_expect(self, foo, text, err);
    return bal_maker_unused(self, "assert", json_string_value(type), err);
}

static int take_asserts(bal_maker *self, bal_foo *foo, const json_t *asserts,
                        bal_error *err)
{
    if (!asserts || json_is_null(asserts))
        return 0;
    if (!json_is_array(asserts))
        return bal_fail(err, BAL_EINVAL, "'assert' is no list");
    for (size_t i = 0; i < json_array_size(asserts); i++) {
        int rc = take_assert(self, foo, json_array_get(asserts, i), err);
        if (rc)
            return rc;
    }
    return 0;
}

static int note_unused(bal_maker *self, const bal_foo *foo, json_t *object,
                       bal_error *err)
{
    const char *key;
    json_t *value;
    int rc = 0;

    json_object_foreach(object, key, value)
    {
        if (!strcmp(key, "vars") || !strcmp(key, "assert"))
            continue;
        rc = bal_maker_unused(self, NULL, key, err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < foo->vars.count && !rc; i++) {
        if (!foo->vars.items[i].used)
            rc = bal_maker_unused(self, "vars", foo->vars.items[i].name, err);
    }
    return rc;
}

static int read_test(bal_maker *self, bal_foo *foo, json_t *object,
                     bal_error *err)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    int rc = take_vars(self, foo, &arena, json_object_get(object, "vars"), err);

    if (!rc)
        rc = take_asserts(self, foo, json_object_get(object, "assert"), err);
    if (!rc)
        rc = bal_foo_add(self, foo, err);
    return rc ? rc : note_unused(self, foo, object, err);
}

static int promptfoo_line(bal_maker *self, json_t *object, bal_error *err)
{
    bal_foo foo = { 0 };
    int rc = read_test(self, &foo, object, err);

    bal_vars_done(&foo.vars);
    return rc;
}

static bool is_promptfoo(const json_t *first)
{
    return json_object_get(first, "vars");
}

const bal_probes_shape bal_probes_promptfoo = {
    .templated = true,
    .is = is_promptfoo,
    .line = promptfoo_line,
};
