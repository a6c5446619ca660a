/* target_parameters: factors of a parameter that may be a stack of one matrix
 * an expert. A holds the experts' factors one after the other, [E r, in]; B has
 * them interleaved, [out, r E]. Two parameters of one module have the names
 * lora_A and base_layer.lora_A; which is which only their shapes say. */
#include <string.h>

#include "core/error.h"
#include "model/fold_edits.h"
#include "model/fold_experts.h"
#include "model/peft_config.h"

static const char layer[] = ".base_layer";

typedef struct found {
    const char *path; /* "model.layers.0.mlp.experts.gate_up_proj" */
    size_t entry;     /* BAL_NONE: each expert is a tensor of its own */
    bool straight, turned;
    bal_experts apart;
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

/* The same of experts that the base has apart, [out / parts, in] each. */
static int try_apart(const bal_edits *self, const bal_adapted *row, found *out,
                     bal_error *err)
{
    size_t entry;
    int rc = bal_experts_find(&out->apart, &self->fit, out->path, err);
    if (rc || !out->apart.count || row->rank % out->apart.count)
        return rc;
    rc = bal_experts_at(&out->apart, &self->fit, 0, 0, &entry, err);
    if (rc)
        return rc;
    const bal_tensor *tensor = bal_model_at(self->base, entry);
    out->straight = tensor->rank == 2 && tensor->shape[1] == row->in &&
                    tensor->shape[0] * out->apart.parts == row->out;
    return 0;
}

/* Does the module have a parameter of that name, and do its factors fit it? */
static int try_name(bal_edits *self, const bal_adapted *row, const char *name,
                    found *out, bal_error *err)
{
    const char *dot = strrchr(name, '.');
    BAL_LOCAL(bal_buf) path = { 0 };
    size_t entry;

    *out = (found){ .entry = BAL_NONE };
    if (!dot)
        return 0;
    int rc = bal_buf_format(&path, err, "%.*s%s",
                            (int)outer_length(row->module), row->module, dot);
    if (rc || !bal_peft_named(bal_buf_string(&path), name))
        return rc;
    out->path = bal_arena_copy(&self->arena, bal_buf_string(&path), path.len);
    if (!out->path)
        return bal_fail_memory(err, "folding an adapter");
    rc = bal_fit_find(&self->fit, &entry, out->path, "", err);
    if (rc)
        return rc;
    if (entry == BAL_NONE)
        return try_apart(self, row, out, err);
    try_tensor(self, row, entry, out);
    return 0;
}

/* The one of target_parameters that fits. */
static int find(bal_edits *self, const bal_adapted *row, found *out,
                bal_error *err)
{
    const json_t *names =
        json_object_get(self->parts.config, "target_parameters");
    size_t fitting = 0;

    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        found one = { 0 };
        int rc = name ? try_name(self, row, name, &one, err) : 0;
        if (rc)
            return rc;
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
static int scale_of(const bal_edits *self, const found *stack, uint64_t rank,
                    double *scale, bal_error *err)
{
    bal_peft_scales scales = { 0 };
    int rc = bal_peft_scales_init(&scales, self->parts.config, err);
    if (!rc)
        rc = bal_peft_scale(scale, &scales, stack->path, rank, err);
    bal_peft_scales_done(&scales);
    return rc;
}

/* The experts' matrices, one after the other. */
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

static int edit(bal_edits *self, size_t entry, const bal_update *update,
                bal_error *err)
{
    bal_edit *to = NULL;
    bal_update *copy = bal_arena_alloc(&self->arena, sizeof(*copy));
    if (!copy)
        return bal_fail_memory(err, "folding an adapter");

    *copy = *update;
    int rc = bal_fit_floats(bal_model_at(self->base, entry), err);
    if (!rc)
        rc = bal_edits_touch(self, &to, entry, err);
    if (rc)
        return rc;
    if (to->whole != BAL_NONE)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' has other rows in the adapter, and "
                        "target_parameters names it",
                        bal_model_at(self->base, entry)->name);
    to->change = copy;
    return 0;
}

static int edit_stack(bal_edits *self, const bal_adapted *row,
                      const found *stack, bal_error *err)
{
    const bal_tensor *tensor = bal_model_at(self->base, stack->entry);
    uint64_t experts = tensor->rank == 3 ? tensor->shape[0] : 1;
    bool square = stack->straight && stack->turned;
    bool is_turned = square ? bal_fit_stack_turned(&self->fit) : stack->turned;
    bal_update update;

    fill(&update, row, experts, is_turned);
    int rc = scale_of(self, stack, row->rank / experts, &update.scale, err);
    if (rc)
        return rc;
    return edit(self, stack->entry, &update, err);
}

/* One tensor of one expert: some rows of its matrix. */
static int edit_part(bal_edits *self, const bal_adapted *row,
                     const found *stack, const bal_update *whole, uint64_t n,
                     bal_error *err)
{
    const bal_experts *apart = &stack->apart;
    uint64_t expert = n / apart->parts;
    size_t part = (size_t)(n % apart->parts);
    bal_update update = *whole;
    bal_operand *product = &update.operands[0];
    size_t entry;
    int rc = bal_experts_at(apart, &self->fit, expert, part, &entry, err);
    if (rc)
        return rc;

    update.rows = row->out / apart->parts;
    product->left.start =
        expert * product->left.step + part * update.rows * product->left.down;
    product->right.start = expert * product->right.step;
    const bal_tensor *tensor =
        entry == BAL_NONE ? NULL : bal_model_at(self->base, entry);
    if (!tensor || tensor->rank != 2 || tensor->shape[0] != update.rows ||
        tensor->shape[1] != update.cols)
        return bal_fail(err, BAL_ECORRUPT,
                        "module '%s' of the adapter does not fit expert %llu "
                        "of the base",
                        row->module, (unsigned long long)expert);
    return edit(self, entry, &update, err);
}

static int edit_apart(bal_edits *self, const bal_adapted *row,
                      const found *stack, bal_error *err)
{
    uint64_t experts = stack->apart.count;
    bal_update update;

    fill(&update, row, experts, false);
    int rc = scale_of(self, stack, row->rank / experts, &update.scale, err);
    for (uint64_t i = 0; i < experts * stack->apart.parts && !rc; i++)
        rc = edit_part(self, row, stack, &update, i, err);
    return rc;
}

int bal_edits_stack(bal_edits *self, const bal_adapted *row, bal_error *err)
{
    found stack = { 0 };

    if (row->slots[BAL_SLOT_MAGNITUDE] != BAL_NONE ||
        row->slots[BAL_SLOT_BIAS] != BAL_NONE)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "module '%s': of target_parameters only plain LoRA is "
                        "folded",
                        row->module);
    int rc = find(self, row, &stack, err);
    if (rc)
        return rc;
    if (stack.entry == BAL_NONE)
        return edit_apart(self, row, &stack, err);
    return edit_stack(self, row, &stack, err);
}
