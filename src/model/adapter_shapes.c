/* A row a kind: which tensors it must have, which it may have beside, and how
 * the module's dimensions follow from theirs. */
#include "model/adapter_shapes.h"

#include <string.h>

#include "core/arith.h"
#include "core/error.h"

/* Rows and columns of a Kronecker product's factors: buffers are sized by it.
 */
enum { SIDE_MAX = 32768 };

typedef struct kind {
    const char *names[BAL_SLOTS]; /* of what it must have, as PEFT says */
    int (*shape)(bal_adapted *row, bal_model *model, bal_error *err);
} kind;

static const uint64_t *dims(const bal_adapted *row, bal_model *model,
                            bal_slot slot)
{
    return bal_model_at(model, row->slots[slot])->shape;
}

/* b is [out, r], a [r, in]. */
static int check_pair(const bal_adapted *row, const bal_tensor *a,
                      const bal_tensor *b, uint64_t *rank, bal_error *err)
{
    if (a->rank != 2 || b->rank != 2)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' has %u dimensions: only linear modules "
                        "and embeddings are folded",
                        a->rank != 2 ? a->name : b->name,
                        a->rank != 2 ? a->rank : b->rank);
    if (a->shape[0] != b->shape[1]) {
        int rc = bal_fail(err, BAL_ECORRUPT,
                          "module '%s': lora_A is of rank %llu, lora_B of %llu",
                          row->module, (unsigned long long)a->shape[0],
                          (unsigned long long)b->shape[1]);
        return a->shape[1] != b->shape[0]
                   ? rc
                   : bal_hint(err, rc,
                              "lora_A should be [r, in], lora_B [out, r]: they "
                              "look exchanged or transposed");
    }
    if (a->shape[0] > BAL_LORA_RANK_MAX)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "module '%s': rank %llu is over %u", row->module,
                        (unsigned long long)a->shape[0], BAL_LORA_RANK_MAX);
    *rank = a->shape[0];
    return 0;
}

/* An optional vector of n numbers, in whatever dimensions. */
static int check_vector(const bal_adapted *row, bal_model *model, bal_slot slot,
                        uint64_t n, bal_error *err)
{
    if (row->slots[slot] == BAL_NONE)
        return 0;
    const bal_tensor *tensor = bal_model_at(model, row->slots[slot]);
    uint64_t width = bal_dtype_bits(tensor->dtype) / 8;
    if (tensor->size == n * width)
        return 0;
    return bal_fail(err, BAL_ECORRUPT,
                    "tensor '%s' has %llu elements, its module asks for %llu",
                    tensor->name, (unsigned long long)(tensor->size / width),
                    (unsigned long long)n);
}

static int shape_lora(bal_adapted *row, bal_model *model, bal_error *err)
{
    const bal_tensor *a = bal_model_at(model, row->slots[BAL_SLOT_A]);
    const bal_tensor *b = bal_model_at(model, row->slots[BAL_SLOT_B]);
    int rc = check_pair(row, a, b, &row->rank, err);
    if (rc)
        return rc;

    row->in = a->shape[1];
    row->out = b->shape[0];
    rc = check_vector(row, model, BAL_SLOT_DIAGONAL, row->rank, err);
    if (!rc)
        rc = check_vector(row, model, BAL_SLOT_BIAS, row->out, err);
    if (!rc)
        rc = check_vector(row, model, BAL_SLOT_MAGNITUDE, row->out, err);
    return rc;
}

static int shape_loha(bal_adapted *row, bal_model *model, bal_error *err)
{
    uint64_t other = 0;
    int rc = check_pair(row, bal_model_at(model, row->slots[BAL_SLOT_W1_B]),
                        bal_model_at(model, row->slots[BAL_SLOT_W1_A]),
                        &row->rank, err);
    if (!rc)
        rc = check_pair(row, bal_model_at(model, row->slots[BAL_SLOT_W2_B]),
                        bal_model_at(model, row->slots[BAL_SLOT_W2_A]), &other,
                        err);
    if (rc)
        return rc;
    row->out = dims(row, model, BAL_SLOT_W1_A)[0];
    row->in = dims(row, model, BAL_SLOT_W1_B)[1];
    if (other == row->rank && row->out == dims(row, model, BAL_SLOT_W2_A)[0] &&
        row->in == dims(row, model, BAL_SLOT_W2_B)[1])
        return 0;
    return bal_fail(err, BAL_ECORRUPT,
                    "module '%s': hada_w1 and hada_w2 are of different shapes",
                    row->module);
}

/* One factor of a Kronecker product: whole, or itself a product. */
static int shape_side(bal_adapted *row, bal_model *model, bal_slot whole,
                      uint64_t shape[2], bal_error *err)
{
    size_t a = row->slots[whole + 1];
    size_t b = row->slots[whole + 2];

    if (row->slots[whole] != BAL_NONE) {
        const bal_tensor *tensor = bal_model_at(model, row->slots[whole]);
        if (tensor->rank != 2)
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "tensor '%s' has %u dimensions: only linear "
                            "modules are folded",
                            tensor->name, tensor->rank);
        shape[0] = tensor->shape[0];
        shape[1] = tensor->shape[1];
        return a == BAL_NONE && b == BAL_NONE
                   ? 0
                   : bal_fail(err, BAL_ECORRUPT,
                              "module '%s' has '%s', and factors of it",
                              row->module, tensor->name);
    }
    if (a == BAL_NONE || b == BAL_NONE)
        return bal_fail(err, BAL_ECORRUPT,
                        "module '%s' has not both factors of lokr_w%d, nor "
                        "itself",
                        row->module, whole == BAL_SLOT_W1 ? 1 : 2);
    int rc = check_pair(row, bal_model_at(model, b), bal_model_at(model, a),
                        &row->rank, err);
    if (rc)
        return rc;
    shape[0] = bal_model_at(model, a)->shape[0];
    shape[1] = bal_model_at(model, b)->shape[1];
    return 0;
}

static int shape_lokr(bal_adapted *row, bal_model *model, bal_error *err)
{
    uint64_t one[2] = { 0 };
    uint64_t two[2] = { 0 };
    int rc = shape_side(row, model, BAL_SLOT_W1, one, err);
    if (!rc)
        rc = shape_side(row, model, BAL_SLOT_W2, two, err);
    if (rc)
        return rc;
    if (one[0] > SIDE_MAX || one[1] > SIDE_MAX || two[0] > SIDE_MAX ||
        two[1] > SIDE_MAX || !bal_mul(&row->out, one[0], two[0]) ||
        !bal_mul(&row->in, one[1], two[1]))
        return bal_fail(err, BAL_EUNSUPPORTED, "module '%s' is too large",
                        row->module);
    return 0;
}

static int shape_ia3(bal_adapted *row, bal_model *model, bal_error *err)
{
    const bal_tensor *factor = bal_model_at(model, row->slots[BAL_SLOT_FACTOR]);

    if (factor->rank != 2 || (factor->shape[0] != 1 && factor->shape[1] != 1))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' is neither [out, 1] nor [1, in]: only "
                        "linear modules are folded",
                        factor->name);
    row->out = factor->shape[0];
    row->in = factor->shape[1];
    return 0;
}

static int shape_tokens(bal_adapted *row, bal_model *model, bal_error *err)
{
    const bal_tensor *rows = bal_model_at(model, row->slots[BAL_SLOT_ROWS]);

    if (rows->rank != 2)
        return bal_fail(err, BAL_ECORRUPT, "tensor '%s' has %u dimensions",
                        rows->name, rows->rank);
    row->in = rows->shape[0];
    row->out = rows->shape[1];
    return 0;
}

static const kind kinds[BAL_FAMILIES] = {
    [BAL_FAMILY_LORA] = { { [BAL_SLOT_A] = "lora_A", [BAL_SLOT_B] = "lora_B" },
                          shape_lora },
    [BAL_FAMILY_EMBEDDING] = { { [BAL_SLOT_A] = "lora_embedding_A",
                                 [BAL_SLOT_B] = "lora_embedding_B" },
                               shape_lora },
    [BAL_FAMILY_ADALORA] = { { [BAL_SLOT_A] = "lora_A",
                               [BAL_SLOT_B] = "lora_B",
                               [BAL_SLOT_DIAGONAL] = "lora_E" },
                             shape_lora },
    [BAL_FAMILY_LOHA] = { { [BAL_SLOT_W1_A] = "hada_w1_a",
                            [BAL_SLOT_W1_B] = "hada_w1_b",
                            [BAL_SLOT_W2_A] = "hada_w2_a",
                            [BAL_SLOT_W2_B] = "hada_w2_b" },
                          shape_loha },
    [BAL_FAMILY_LOKR] = { { NULL }, shape_lokr },
    [BAL_FAMILY_IA3] = { { [BAL_SLOT_FACTOR] = "ia3_l" }, shape_ia3 },
    [BAL_FAMILY_TOKENS] = { { [BAL_SLOT_ROWS] = "trainable_tokens_delta" },
                            shape_tokens },
};

/* use_dora speaks of every module, and so does every magnitude. */
static int check_dora(const bal_adapted *row, const json_t *config,
                      bal_error *err)
{
    bool asked = !bal_peft_off(json_object_get(config, "use_dora"));
    bool there = row->slots[BAL_SLOT_MAGNITUDE] != BAL_NONE;

    if (row->family == BAL_FAMILY_TOKENS || asked == there)
        return 0;
    return bal_fail(err, BAL_ECORRUPT,
                    asked ? "use_dora is true, but module '%s' has no "
                            "lora_magnitude_vector"
                          : "module '%s' has a lora_magnitude_vector, but "
                            "use_dora is false",
                    row->module);
}

int bal_adapted_shape(bal_adapted *row, const json_t *config, bal_model *model,
                      bal_error *err)
{
    const kind *of = &kinds[row->family];

    for (size_t i = 0; i < BAL_SLOTS; i++) {
        if (of->names[i] && row->slots[i] == BAL_NONE)
            return bal_fail(err, BAL_ECORRUPT, "module '%s' has no %s",
                            row->module, of->names[i]);
    }
    int rc = of->shape(row, model, err);
    if (rc)
        return rc;
    return check_dora(row, config, err);
}

/* Rows of it may have gone, none can have come. */
static int adalora_scale(bal_adapted *row, const bal_peft_scales *scales,
                         bal_error *err)
{
    static const double after_rank = 1e-5;
    double first = scales->rank.fallback;

    if ((double)row->rank > first)
        return bal_fail(err, BAL_ECORRUPT,
                        "module '%s' has rank %llu, and init_r is %g",
                        row->module, (unsigned long long)row->rank, first);
    row->scale = scales->alpha.fallback / (first + after_rank);
    return 0;
}

int bal_adapted_scale(bal_adapted *row, bal_peft_scales *scales, bal_error *err)
{
    bool scaled = row->family != BAL_FAMILY_IA3 &&
                  row->family != BAL_FAMILY_TOKENS && !row->stacked;

    row->scale = 1;
    if (row->family == BAL_FAMILY_ADALORA)
        return adalora_scale(row, scales, err);
    if (scaled)
        return bal_peft_scale(&row->scale, scales, row->module, row->rank, err);
    return 0;
}

/* By names alone: "….lora_A.weight", "….lora_A.default.weight",
 * "….lora_embedding_A". Of all these the first dimension is the rank. */
uint64_t bal_model_lora_rank(const bal_model *adapter)
{
    uint64_t highest = 0;

    for (size_t i = 0; i < bal_model_count(adapter); i++) {
        const bal_tensor *tensor = bal_model_at(adapter, i);
        bool factor = strstr(tensor->name, ".lora_A.") ||
                      strstr(tensor->name, ".lora_embedding_A");
        if (tensor->part == BAL_PART_TENSOR && factor && tensor->rank >= 2 &&
            tensor->shape[0] > highest)
            highest = tensor->shape[0];
    }
    return highest;
}
