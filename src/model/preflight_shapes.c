/* Rules about the shapes of factors, each beside the other and the config. */
#include "core/error.h"
#include "model/preflight.h"

typedef unsigned long long ull;

/* A factor, or what was meant as one. */
static bool is_factor(const bal_loose_tensor *tensor)
{
    return tensor->kind == BAL_LOOSE_FACTOR || tensor->kind == BAL_LOOSE_TWICE;
}

int bal_rule_dtype(bal_flight *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->parts.count && !rc; i++) {
        const bal_loose_tensor *of = &self->parts.tensors[i];
        const bal_tensor *tensor = bal_model_at(self->adapter, of->entry);

        if (is_factor(of) && !bal_tensor_float(tensor))
            rc = bal_flight_tell(self, tensor->name, err, "it is of dtype %s",
                                 bal_dtype_name(tensor->dtype));
    }
    return rc;
}

int bal_rule_empty(bal_flight *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->parts.count && !rc; i++) {
        const bal_tensor *tensor =
            bal_model_at(self->adapter, self->parts.tensors[i].entry);

        if (!tensor->size)
            rc = bal_flight_tell(self, tensor->name, err,
                                 "it is empty, saved without being gathered");
    }
    return rc;
}

int bal_rule_not_matrix(bal_flight *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->parts.count && !rc; i++) {
        const bal_loose_tensor *of = &self->parts.tensors[i];
        const bal_tensor *tensor = bal_model_at(self->adapter, of->entry);

        if (is_factor(of) && tensor->rank != 2)
            rc = bal_flight_tell(self, tensor->name, err,
                                 "it has %u dimensions, not 2", tensor->rank);
    }
    return rc;
}

/* ---- pairs -------------------------------------------------------------- */

int bal_rule_lone_a(bal_flight *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->parts.module_count && !rc; i++) {
        const bal_loose_module *module = &self->parts.modules[i];

        if (module->b == BAL_NONE)
            rc = bal_flight_tell(self, module->name, err,
                                 "lora_A is there, lora_B is not");
    }
    return rc;
}

int bal_rule_lone_b(bal_flight *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->parts.module_count && !rc; i++) {
        const bal_loose_module *module = &self->parts.modules[i];

        if (module->a == BAL_NONE)
            rc = bal_flight_tell(self, module->name, err,
                                 "lora_B is there, lora_A is not");
    }
    return rc;
}

int bal_rule_ranks_differ(bal_flight *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->parts.module_count && !rc; i++) {
        const bal_loose_module *module = &self->parts.modules[i];
        bal_factor_dims dims = bal_flight_dims(self, module);

        if (dims.rank_a && dims.rank_b && dims.rank_a != dims.rank_b)
            rc = bal_flight_tell(self, module->name, err,
                                 "lora_A is of rank %llu, lora_B of %llu",
                                 (ull)dims.rank_a, (ull)dims.rank_b);
    }
    return rc;
}

/* ---- the config's rank -------------------------------------------------- */

/* What the engine takes the module's rank for; 0: not known. */
static int rank_said(bal_flight *self, double *out, const char *module,
                     bal_error *err)
{
    bal_error why = { 0 };

    *out = 0;
    if (!self->engine->patterns) {
        *out = json_number_value(bal_flight_key(self, "r"));
        return 0;
    }
    if (!self->scaled)
        return 0;
    int rc = bal_peft_rank(out, &self->scales, module, &why);
    if (rc == BAL_ENOMEM)
        return bal_fail(err, rc, "%s", why.text);
    return rc ? bal_flight_tell(self, module, err, "%s", why.text) : 0;
}

int bal_rule_rank_not_r(bal_flight *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->parts.module_count && !rc; i++) {
        const bal_loose_module *module = &self->parts.modules[i];
        bal_factor_dims dims = bal_flight_dims(self, module);
        uint64_t rank = dims.rank_a ? dims.rank_a : dims.rank_b;
        double says = 0;

        rc = rank_said(self, &says, module->name, err);
        if (!rc && rank && says > 0 && says != (double)rank)
            rc = bal_flight_tell(self, module->name, err,
                                 "its rank is %llu, the config's %g", (ull)rank,
                                 says);
    }
    return rc;
}
