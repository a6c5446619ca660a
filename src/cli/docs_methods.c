/* docs/methods.md, from the table of merge methods. What they compute is in the
 * headers of src/merge, and in docs/merging.md. */
#include <math.h>

#include "cli/commands.h"
#include "cli/help.h"
#include "core/str.h"

static const char *const types[] = {
    [BAL_PARAM_FLOAT] = "float",
    [BAL_PARAM_INT] = "int",
    [BAL_PARAM_BOOL] = "bool",
    [BAL_PARAM_NAME] = "name",
};

static const char *const bases[] = {
    [BAL_BASE_NONE] = "no base",
    [BAL_BASE_POSSIBLE] = "a base, if one is named",
    [BAL_BASE_NEEDED] = "a base, of whole models",
};

static int bounds(bal_buf *to, const bal_param *param, bal_error *err)
{
    char low[32], high[32];

    if (param->type == BAL_PARAM_NAME)
        return bal_buf_text(to, param->choices ? param->choices : "", err);
    if (param->type == BAL_PARAM_BOOL ||
        (isinf(param->low) && isinf(param->high)))
        return 0;
    bal_f64_text(low, param->low);
    bal_f64_text(high, param->high);
    if (isinf(param->high))
        return bal_buf_format(to, err, "%s or more", low);
    return bal_buf_format(to, err, "%s to %s", low, high);
}

static int param_row(bal_buf *to, const bal_param *param, bal_error *err)
{
    BAL_LOCAL(bal_buf) range = { 0 };
    int rc = bounds(&range, param, err);
    if (rc)
        return rc;

    return bal_buf_format(
        to, err, "| `%s` | %s | %s | %s | %s | %s |\n", param->name,
        types[param->type], param->fallback ? param->fallback : "required",
        bal_buf_string(&range), param->per_input ? "an input" : "all",
        param->help ? param->help : "");
}

static int inputs(bal_buf *to, const bal_method_info *method, bal_error *err)
{
    if (!method->max_inputs)
        return bal_buf_format(to, err, "%zu or more inputs",
                              method->min_inputs);
    if (method->max_inputs == method->min_inputs)
        return bal_buf_format(to, err, "%zu input%s", method->min_inputs,
                              method->min_inputs == 1 ? "" : "s");
    return bal_buf_format(to, err, "%zu to %zu inputs", method->min_inputs,
                          method->max_inputs);
}

static int section(bal_buf *to, const bal_method_info *method, bal_error *err)
{
    bool seeded = method->flags & BAL_METHOD_SEEDED;
    int rc = bal_buf_format(to, err, "\n## %s\n\n%s.\n\nTakes ", method->name,
                            method->summary);
    if (!rc)
        rc = inputs(to, method, err);
    if (!rc)
        rc = bal_buf_format(to, err, "; %s%s.", bases[bal_method_base(method)],
                            seeded ? "; draws random numbers" : "");
    if (!rc && method->paper)
        rc = bal_buf_format(to, err, " %s.", method->paper);
    if (!rc)
        rc = bal_buf_format(to, err, "\n\n    %s\n", method->formula);
    if (!rc && method->guard)
        rc = bal_buf_format(to, err, "\nGuards: %s.\n", method->guard);
    if (!rc && method->params && method->params->name)
        rc = bal_buf_text(to,
                          "\n| parameter | | default | range | of | |\n"
                          "|---|---|---|---|---|---|\n",
                          err);
    for (const bal_param *p = method->params; p && p->name && !rc; p++)
        rc = param_row(to, p, err);
    return rc;
}

int bal_docs_methods(bal_buf *to, bal_error *err)
{
    int rc = bal_buf_text(
        to,
        "# Merge methods\n\n<!-- Made by `make docs` from the tables in "
        "src/merge. -->\n\nNames, parameters and defaults are mergekit's. "
        "What the two arithmetics are, and where `precise` keeps a result "
        "finite that mergekit's formula does not, is in "
        "[merging.md](merging.md).\n",
        err);

    for (size_t i = 0; i < bal_method_count() && !rc; i++)
        rc = section(to, bal_method_at(i), err);
    return rc;
}
