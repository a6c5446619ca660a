/* target_parameters: factors of a parameter that may be a stack of one matrix
 * an expert. A holds the experts' factors one after the other, [E r, in]; B has
 * them interleaved, [out, r E]. Two parameters of one module have the names
 * lora_A and base_layer.lora_A; which is which only their shapes say. */
#include <string.h>

#include "core/error.h"
#include "model/fold_edits.h"
#include "model/peft_config.h"

static const char layer[] = ".base_layer";

typedef struct found {
    size_t entry;
    const char *parameter; /* "experts.gate_up_proj" of target_parameters */
    bool straight, turned;
} found;

/* The length of a module's path without what PEFT nested it in. */
static size_t outer_length(const char *module)
{
    const size_t tail = sizeof(layer) - 1;
    size_t len = strlen(module);

    while (len > tail && !memcmp(module + len - tail, layer, tail))
        len -= tail;
    return len;
}

/* Is a parameter's tensor one that the module's factors fit? */
static void try_tensor(const bal_edits *self, const bal_adapted *row,
                       size_t entry, found *out)
{
    const bal_tensor *tensor = bal_model_at(self->base, entry);
    uint64_t experts = tensor->rank == 3 ? tensor->shape[0] : 1;

    if ((tensor->rank != 2 && tensor->rank != 3) || !experts ||
        row->rank % experts)
        return;
    const uint64_t *shape = tensor->shape + (tensor->rank - 2);
    out->straight = shape[0] == row->out && shape[1] == row->in;
    out->turned =
        tensor->rank == 3 && shape[0] == row->in && shape[1] == row->out;
    out->entry = entry;
}

/* The one of target_parameters that fits. */
static int find(const bal_edits *self, const bal_adapted *row, found *out,
                bal_error *err)
{
    const json_t *names =
        json_object_get(self->parts.config, "target_parameters");
    size_t fitting = 0;

    for (size_t i = 0; i < json_array_size(names); i++) {
        BAL_LOCAL(bal_buf) path = { 0 };
        const char *name = json_string_value(json_array_get(names, i));
        const char *dot = name ? strrchr(name, '.') : NULL;
        found one = { .entry = BAL_NONE, .parameter = name };
        size_t entry;

        if (!dot)
            continue;
        int rc =
            bal_buf_format(&path, err, "%.*s%s", (int)outer_length(row->module),
                           row->module, dot);
        if (!rc)
            rc = bal_fit_find(&self->fit, &entry, bal_buf_string(&path), "",
                              err);
        if (rc)
            return rc;
        if (entry == BAL_NONE || !bal_peft_named(bal_buf_string(&path), name))
            continue;
        try_tensor(self, row, entry, &one);
        if (!one.straight && !one.turned)
            continue;
        *out = one;
        fitting++;
    }
    if (fitting == 1)
        return 0;
    return bal_fail(err, fitting ? BAL_EUNSUPPORTED : BAL_ECORRUPT,
                    fitting ? "module '%s' of the adapter fits several of "
                              "target_parameters: which it is of cannot be told"
                            : "module '%s' of the adapter fits none of "
                              "target_parameters in the base",
                    row->module);
}

/* PEFT's patterns see the parameter's own path. */
static int scale_of(const bal_edits *self, const bal_adapted *row,
                    const found *stack, uint64_t rank, double *scale,
                    bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    bal_peft_scales scales = { 0 };
    int rc =
        bal_buf_format(&path, err, "%.*s%s", (int)outer_length(row->module),
                       row->module, strrchr(stack->parameter, '.'));
    if (!rc)
        rc = bal_peft_scales_init(&scales, self->parts.config, err);
    if (!rc)
        rc = bal_peft_scale(scale, &scales, bal_buf_string(&path), rank, err);
    bal_peft_scales_done(&scales);
    return rc;
}

static void fill(bal_update *change, const bal_adapted *row, uint64_t experts,
                 bool is_turned)
{
    uint64_t rank = row->rank / experts;
    bal_strided a = { .entry = row->slots[BAL_SLOT_A],
                      .step = rank * row->in,
                      .down = row->in,
                      .right = 1 };
    bal_strided b = { .entry = row->slots[BAL_SLOT_B],
                      .step = 1,
                      .down = row->rank,
                      .right = experts };
    bal_strided a_turned = { a.entry, 0, a.step, a.right, a.down };
    bal_strided b_turned = { b.entry, 0, b.step, b.right, b.down };

    *change = (bal_update){
        .operands[0] = { .left = is_turned ? a_turned : b,
                         .right = is_turned ? b_turned : a,
                         .rank = rank,
                         .diagonal = BAL_NONE },
        .rows = is_turned ? row->in : row->out,
        .cols = is_turned ? row->out : row->in,
        .magnitude = BAL_NONE,
        .turned = is_turned,
    };
}

int bal_edits_stack(bal_edits *self, const bal_adapted *row, bal_error *err)
{
    found stack = { .entry = BAL_NONE };
    bal_edit *edit = NULL;
    bal_update *change = bal_arena_alloc(&self->arena, sizeof(*change));

    if (!change)
        return bal_fail_memory(err, "folding an adapter");
    if (row->slots[BAL_SLOT_MAGNITUDE] != BAL_NONE ||
        row->slots[BAL_SLOT_BIAS] != BAL_NONE)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "module '%s': of target_parameters only plain LoRA is "
                        "folded",
                        row->module);
    int rc = find(self, row, &stack, err);
    if (rc)
        return rc;

    const bal_tensor *tensor = bal_model_at(self->base, stack.entry);
    uint64_t experts = tensor->rank == 3 ? tensor->shape[0] : 1;
    bool square = stack.straight && stack.turned;
    bool is_turned = square ? bal_fit_stack_turned(&self->fit) : stack.turned;
    fill(change, row, experts, is_turned);
    rc = scale_of(self, row, &stack, row->rank / experts, &change->scale, err);
    if (!rc)
        rc = bal_fit_floats(tensor, err);
    if (!rc)
        rc = bal_edits_touch(self, &edit, stack.entry, err);
    if (rc)
        return rc;
    edit->change = change;
    return 0;
}
