/* A part of a case has parameters of its own, and tells which tensors have
 * them: it is a view of all, of which these are read. */
#include "golden/golden_models.h"

#include <stdlib.h>

#include "support/memory_model.h"

/* ---- inputs ------------------------------------------------------------- */

static bool add_tensors(bal_model *to, const json_t *tensors)
{
    const char *name;
    json_t *json;
    bool good = json_object_size(tensors) > 0;

    json_object_foreach((json_t *)tensors, name, json)
    {
        golden_tensor tensor;

        good = good && golden_tensor_read(&tensor, json);
        if (!good)
            return false;
        memory_tensor(to, name, tensor.dtype, tensor.rank, tensor.shape,
                      tensor.bytes.data);
        golden_tensor_done(&tensor);
    }
    return good;
}

bool golden_models_inputs(golden_inputs *out, const json_t *tensors,
                          const json_t *one)
{
    const json_t *order = json_object_get(one, "order");
    bool good = json_array_size(order) <= GOLDEN_INPUTS;

    for (size_t i = 0; good && i < json_array_size(order); i++) {
        const char *name = json_string_value(json_array_get(order, i));
        bal_model *model = memory_new(BAL_KIND_WEIGHTS, name);

        good = add_tensors(model, json_object_get(tensors, name));
        memory_finish(model);
        out->models[out->count++] = model;
    }
    return good;
}

/* ---- results ------------------------------------------------------------ */

static bool is_as_told(golden_finding *out, bal_model *view, const char *name,
                       const json_t *json)
{
    golden_tensor want;
    golden_tensor got;
    bal_error err;
    bool good = golden_tensor_read(&want, json);

    if (golden_read(&got, view, name, &err)) {
        good = false;
        snprintf(out->text, sizeof(out->text), "refused: %.180s", err.text);
    } else if (!good || !golden_same(&got, &want)) {
        good = false;
        snprintf(out->text, sizeof(out->text), "tensor '%s' differs", name);
    }
    golden_tensor_done(&want);
    golden_tensor_done(&got);
    return good;
}

static bool are_as_told(golden_finding *out, bal_model *view,
                        const json_t *names, const json_t *output)
{
    bool good = json_array_size(names) > 0;

    for (size_t i = json_array_size(names); good && i > 0; i--) {
        const char *name = json_string_value(json_array_get(names, i - 1));
        good = is_as_told(out, view, name, json_object_get(output, name));
    }
    return good;
}

static bool judge_part(golden_finding *out, const golden_inputs *inputs,
                       const json_t *one, const json_t *part)
{
    json_t *whole = json_copy((json_t *)one);
    BAL_OWN(bal_model) view = NULL;
    bal_error err;

    json_object_set(whole, "model_params",
                    json_object_get(part, "model_params"));
    int rc = golden_open(&view, whole, inputs, true, &err);
    json_decref(whole);
    if (rc)
        snprintf(out->text, sizeof(out->text), "refused: %.180s", err.text);
    return !rc && are_as_told(out, view, json_object_get(part, "tensors"),
                              json_object_get(one, "output"));
}

void golden_models_judge(golden_finding *out, const golden_inputs *inputs,
                         const json_t *one)
{
    const json_t *parts = json_object_get(one, "parts");
    size_t tensors = 0;
    bool good = true;

    *out = (golden_finding){ .verdict = GOLDEN_SAME };
    for (size_t i = 0; good && i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        tensors += json_array_size(json_object_get(part, "tensors"));
        good = judge_part(out, inputs, one, part);
    }
    if (good && tensors == json_object_size(json_object_get(one, "output")))
        return;
    out->verdict = GOLDEN_WRONG;
}
