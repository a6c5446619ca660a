/* ballast methods: the merge methods and their parameters. */
#include <math.h>

#include "cli/commands.h"
#include "core/str.h"

static const char *const type_names[] = {
    [BAL_PARAM_FLOAT] = "float",
    [BAL_PARAM_INT] = "int",
    [BAL_PARAM_BOOL] = "bool",
    [BAL_PARAM_NAME] = "name",
};

/* The default as what it is: a number, true or false, a text, null. */
static void json_default(bal_json *json, const bal_param *param)
{
    const char *text = param->fallback;
    double number;

    if (param->type == BAL_PARAM_BOOL && text)
        bal_json_bool(json, !strcmp(text, "true"));
    else if (param->type == BAL_PARAM_NAME || !text)
        bal_json_string(json, text);
    else if (!bal_parse_f64(&number, text, NULL))
        bal_json_f64(json, number);
    else
        bal_json_null(json);
}

static void json_param(bal_json *json, const bal_param *param)
{
    bool bounded =
        param->type == BAL_PARAM_FLOAT || param->type == BAL_PARAM_INT;

    bal_json_object(json);
    bal_json_key(json, "name");
    bal_json_string(json, param->name);
    bal_json_key(json, "type");
    bal_json_string(json, type_names[param->type]);
    bal_json_key(json, "default");
    json_default(json, param);
    bal_json_key(json, "low");
    if (bounded)
        bal_json_f64(json, param->low);
    else
        bal_json_null(json);
    bal_json_key(json, "high");
    if (bounded)
        bal_json_f64(json, param->high);
    else
        bal_json_null(json);
    bal_json_key(json, "per_input");
    bal_json_bool(json, param->per_input);
    bal_json_key(json, "mergekit");
    bal_json_string(json, param->mergekit);
    bal_json_close(json);
}

static void json_method(bal_json *json, const bal_method_info *method)
{
    bal_json_object(json);
    bal_json_key(json, "name");
    bal_json_string(json, method->name);
    bal_json_key(json, "summary");
    bal_json_string(json, method->summary);
    bal_json_key(json, "paper");
    bal_json_string(json, method->paper);
    bal_json_key(json, "min_inputs");
    bal_json_u64(json, method->min_inputs);
    bal_json_key(json, "max_inputs");
    if (method->max_inputs)
        bal_json_u64(json, method->max_inputs);
    else
        bal_json_null(json);
    bal_json_key(json, "seeded");
    bal_json_bool(json, method->flags & BAL_METHOD_SEEDED);
    bal_json_key(json, "parameters");
    bal_json_array(json);
    for (const bal_param *p = method->params; p && p->name; p++)
        json_param(json, p);
    bal_json_close(json);
    bal_json_close(json);
}

/* Of all methods, or of the one. */
static void show_json(bal_cli *cli, const bal_method_info *only)
{
    bal_json json;

    bal_doc_open(&json, &cli->out, cli->command->name);
    bal_json_key(&json, "methods");
    bal_json_array(&json);
    for (size_t i = 0; i < bal_method_count(); i++) {
        const bal_method_info *method = bal_method_at(i);
        if (!only || method == only)
            json_method(&json, method);
    }
    bal_json_close(&json);
    bal_doc_close(&json, &cli->out);
}

/* Told where there are any. */
static void text_bounds(bal_out *out, const bal_param *param)
{
    char low[32];
    char high[32];

    bal_f64_text(low, param->low);
    bal_f64_text(high, param->high);
    if (isfinite(param->low) && isfinite(param->high))
        bal_out_text(out, "  %s to %s", low, high);
    else if (isfinite(param->low))
        bal_out_text(out, "  at least %s", low);
    else if (isfinite(param->high))
        bal_out_text(out, "  at most %s", high);
}

static void text_param(bal_out *out, const bal_param *param)
{
    char name[64];

    bal_opt_spell(name, param->name);
    bal_out_text(out, "  --%s  %s", name, type_names[param->type]);
    if (param->fallback)
        bal_out_text(out, "  default %s", param->fallback);
    else
        bal_out_text(out, "  required");
    if (param->choices)
        bal_out_text(out, "  %s", param->choices);
    if (param->type == BAL_PARAM_FLOAT || param->type == BAL_PARAM_INT)
        text_bounds(out, param);
    if (param->per_input)
        bal_out_text(out, "  per input");
    bal_out_text(out, "\n      %s\n", param->help ? param->help : "");
}

static const char *const beside[] = {
    [BAL_BASE_NONE] = "",
    [BAL_BASE_POSSIBLE] = ", a base beside them if there is one (--base)",
    [BAL_BASE_NEEDED] = ", and of whole models a base beside them (--base)",
};

static void text_method(bal_out *out, const bal_method_info *method)
{
    bal_out_text(out, "%s: %s\n", method->name, method->summary);
    if (method->paper)
        bal_out_text(out, "  %s\n", method->paper);
    bal_out_text(out, "  at least %zu input%s", method->min_inputs,
                 method->min_inputs == 1 ? "" : "s");
    if (method->max_inputs)
        bal_out_text(out, ", at most %zu", method->max_inputs);
    bal_out_text(out, "%s", beside[bal_method_base(method)]);
    if (method->flags & BAL_METHOD_SEEDED)
        bal_out_text(out, ", draws random numbers (--seed)");
    bal_out_text(out, "\n  %s\n", method->formula);
    if (method->guard)
        bal_out_text(out, "  guards: %s\n", method->guard);
    for (const bal_param *p = method->params; p && p->name; p++)
        text_param(out, p);
}

static int widest_name(void)
{
    int width = 0;

    for (size_t i = 0; i < bal_method_count(); i++) {
        int len = (int)strlen(bal_method_at(i)->name);
        width = len > width ? len : width;
    }
    return width;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const bal_method_info *only = NULL;
    int width = widest_name();

    (void)values;
    if (cli->arg_count) {
        int rc = bal_cli_method(&only, cli->args[0], err);
        if (rc)
            return rc;
    }
    if (cli->out.json) {
        show_json(cli, only);
        return 0;
    }
    if (only)
        text_method(&cli->out, only);
    for (size_t i = 0; !only && i < bal_method_count(); i++) {
        const bal_method_info *method = bal_method_at(i);
        bal_out_text(&cli->out, "%-*s  %s\n", width, method->name,
                     method->summary);
    }
    return 0;
}

const bal_command bal_cmd_methods = {
    .name = "methods",
    .synopsis = "[NAME]",
    .summary = "list the merge methods, or one with its parameters",
    .about = "Without a name one line a method. With one, its parameters: "
             "type, default, bounds, and whether inputs may have their own.",
    .examples = "ballast methods\nballast methods linear\n",
    .arg = "METHOD",
    .max_args = 1,
    .run = run,
};
