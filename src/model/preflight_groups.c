/* Rules about modules that an engine computes together, layer by layer. */
#include <string.h>

#include "core/error.h"
#include "model/preflight.h"

/* The module's neighbour of another last name, NULL: not there. */
static int neighbour(const bal_flight *self, const bal_loose_module **out,
                     const char *module, const char *leaf, bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    size_t stem = (size_t)(bal_loose_leaf(module) - module);
    int rc = bal_buf_append(&name, module, stem, err);
    if (!rc)
        rc = bal_buf_text(&name, leaf, err);
    if (!rc)
        *out = bal_loose_find(&self->parts, bal_buf_string(&name));
    return rc;
}

/* Each module of that last name without a neighbour of the other. */
static int lacks(bal_flight *self, const char *leaf, const char *other,
                 bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->parts.module_count && !rc; i++) {
        const char *module = self->parts.modules[i].name;
        const bal_loose_module *beside = NULL;

        if (strcmp(bal_loose_leaf(module), leaf) != 0)
            continue;
        rc = neighbour(self, &beside, module, other, err);
        if (!rc && !beside)
            rc = bal_flight_tell(self, module, err, "%s is there without %s",
                                 leaf, other);
    }
    return rc;
}

/* Whether any k_proj is in the layer decides if one is asked for; q without k
 * where v is there is filled up with zeros. */
int bal_rule_q_alone(bal_flight *self, bal_error *err)
{
    return lacks(self, "q_proj", "v_proj", err);
}

int bal_rule_kv_alone(bal_flight *self, bal_error *err)
{
    int rc = lacks(self, "k_proj", "q_proj", err);

    return rc ? rc : lacks(self, "v_proj", "q_proj", err);
}

int bal_rule_up_alone(bal_flight *self, bal_error *err)
{
    return lacks(self, "up_proj", "gate_proj", err);
}
