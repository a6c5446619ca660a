/* A module's tensors as a formula over the base's: by family, and by which way
 * up the base's tensor lies. Turned means that all matrices are read turned:
 * (B A) turned is A turned times B turned, and so for the other products. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "model/elements.h"
#include "model/fold_edits.h"
#include "model/peft_config.h"

static const bal_strided nothing = { .entry = BAL_NONE };

static const uint64_t *shape_of(const bal_edits *self, size_t entry)
{
    return bal_model_at(self->adapter, entry)->shape;
}

/* A matrix of the adapter that lies row by row. */
static bal_strided plain(const bal_edits *self, size_t entry)
{
    const bal_tensor *tensor = bal_model_at(self->adapter, entry);
    uint64_t width = tensor->rank > 1 ? tensor->shape[1] : 1;

    return (bal_strided){ .entry = entry, .down = width, .right = 1 };
}

static bal_strided turned(bal_strided matrix)
{
    uint64_t down = matrix.down;

    matrix.down = matrix.right;
    matrix.right = down;
    return matrix;
}

static bal_operand single(bal_strided matrix)
{
    return (
        bal_operand){ .left = matrix, .right = nothing, .diagonal = BAL_NONE };
}

/* B A, [out, r] and [r, in]. */
static bal_operand product(bal_strided b, bal_strided a, uint64_t rank)
{
    return (bal_operand){
        .left = b, .right = a, .rank = rank, .diagonal = BAL_NONE
    };
}

static bal_operand turn(bal_operand operand)
{
    if (!operand.rank)
        return single(turned(operand.left));
    return (bal_operand){ .left = turned(operand.right),
                          .right = turned(operand.left),
                          .rank = operand.rank,
                          .diagonal = operand.diagonal };
}

/* A change of a matrix out x in, its operands not turned yet. */
static int new_change(bal_edits *self, bal_update **out, const bal_adapted *row,
                      bool is_turned, bal_error *err)
{
    bal_update *change = bal_arena_alloc(&self->arena, sizeof(*change));

    if (!change)
        return bal_fail_memory(err, "folding an adapter");
    *change = (bal_update){
        .rows = is_turned ? row->in : row->out,
        .cols = is_turned ? row->out : row->in,
        .scale = row->scale,
        .magnitude = row->slots[BAL_SLOT_MAGNITUDE],
        .turned = is_turned,
    };
    if (change->magnitude != BAL_NONE)
        change->meeting = BAL_MEETING_DORA;
    *out = change;
    return 0;
}

static void turn_change(bal_update *change)
{
    uint64_t rows = change->rows2;

    if (!change->turned)
        return;
    change->rows2 = change->cols2;
    change->cols2 = rows;
    for (size_t i = 0; i < 2; i++)
        change->operands[i] = turn(change->operands[i]);
}

/* ---- formulas by family ------------------------------------------------- */

static void lora(const bal_edits *self, const bal_adapted *row,
                 bal_update *change)
{
    change->operands[0] =
        product(plain(self, row->slots[BAL_SLOT_B]),
                plain(self, row->slots[BAL_SLOT_A]), row->rank);
    change->operands[0].diagonal = row->slots[BAL_SLOT_DIAGONAL];
}

static void loha(const bal_edits *self, const bal_adapted *row,
                 bal_update *change)
{
    change->formula = BAL_FORMULA_HADAMARD;
    change->operands[0] =
        product(plain(self, row->slots[BAL_SLOT_W1_A]),
                plain(self, row->slots[BAL_SLOT_W1_B]), row->rank);
    change->operands[1] =
        product(plain(self, row->slots[BAL_SLOT_W2_A]),
                plain(self, row->slots[BAL_SLOT_W2_B]), row->rank);
}

/* One side of a Kronecker product: whole, or itself a product. */
static bal_operand side(const bal_edits *self, const bal_adapted *row,
                        bal_slot slot, uint64_t shape[2])
{
    size_t whole = row->slots[slot];

    if (whole != BAL_NONE) {
        memcpy(shape, shape_of(self, whole), 2 * sizeof(shape[0]));
        return single(plain(self, whole));
    }
    size_t a = row->slots[slot + 1];
    size_t b = row->slots[slot + 2];
    shape[0] = shape_of(self, a)[0];
    shape[1] = shape_of(self, b)[1];
    return product(plain(self, a), plain(self, b), shape_of(self, b)[0]);
}

static void lokr(const bal_edits *self, const bal_adapted *row,
                 bal_update *change)
{
    uint64_t first[2];
    uint64_t second[2];

    change->formula = BAL_FORMULA_KRONECKER;
    change->operands[0] = side(self, row, BAL_SLOT_W1, first);
    change->operands[1] = side(self, row, BAL_SLOT_W2, second);
    change->rows2 = second[0];
    change->cols2 = second[1];
}

/* Numbers for outputs, [out, 1], or for inputs, [1, in], which is of the same
 * strides where the other dimension repeats. */
static void ia3(const bal_edits *self, const bal_adapted *row,
                bal_update *change)
{
    size_t entry = row->slots[BAL_SLOT_FACTOR];
    bool outputs = row->in == 1;

    (void)self;
    change->meeting = BAL_MEETING_TIMES;
    change->operands[0] = single((bal_strided){
        .entry = entry,
        .down = outputs ? 1 : 0,
        .right = outputs ? 0 : 1,
    });
}

static void (*const formulas[BAL_FAMILIES])(const bal_edits *,
                                            const bal_adapted *,
                                            bal_update *) = {
    [BAL_FAMILY_LORA] = lora,    [BAL_FAMILY_EMBEDDING] = lora,
    [BAL_FAMILY_ADALORA] = lora, [BAL_FAMILY_LOHA] = loha,
    [BAL_FAMILY_LOKR] = lokr,    [BAL_FAMILY_IA3] = ia3,
};

/* ---- matrices ----------------------------------------------------------- */

/* The module's bias: out numbers of the adapter added to it, or times it. */
static int change_bias(bal_edits *self, const bal_adapted *row, bal_slot slot,
                       bal_meeting meeting, uint64_t out, bal_error *err)
{
    bal_update *change = NULL;
    bal_edit *edit = NULL;
    size_t entry;
    int rc = bal_fit_find(&self->fit, &entry, row->module, ".bias", err);
    if (rc)
        return rc;
    if (entry == BAL_NONE)
        return meeting == BAL_MEETING_TIMES
                   ? 0
                   : bal_fail(err, BAL_ECORRUPT,
                              "module '%s' of the adapter has a lora_B.bias, "
                              "but the base's has no bias: it cannot be folded",
                              row->module);
    const bal_tensor *tensor = bal_model_at(self->base, entry);
    rc = bal_fit_floats(tensor, err);
    if (rc)
        return rc;
    if (tensor->rank != 1 || tensor->shape[0] != out)
        return bal_fail(err, BAL_ECORRUPT,
                        "module '%s' of the adapter has %llu outputs, the "
                        "base's bias another number",
                        row->module, (unsigned long long)out);
    rc = bal_edits_touch(self, &edit, entry, err);
    if (!rc)
        rc = new_change(self, &change, row, false, err);
    if (rc)
        return rc;
    change->meeting = meeting;
    change->rows = 1;
    change->cols = out;
    change->operands[0] =
        single((bal_strided){ .entry = row->slots[slot], .right = 1 });
    edit->change = change;
    return 0;
}

/* A matrix that the adapter gave other rows has those of the adapter's copy. */
static const bal_tensor *start_of(const bal_edits *self, const bal_edit *edit)
{
    if (edit->whole != BAL_NONE)
        return bal_model_at(self->adapter, edit->whole);
    return bal_model_at(self->base, edit->base);
}

static int change_matrix(bal_edits *self, const bal_adapted *row,
                         bal_error *err)
{
    bal_update *change = NULL;
    bal_edit *edit = NULL;
    bal_adapted whole = *row;
    bool is_turned;
    int rc = bal_edits_weight(self, &edit, row->module, err);
    if (rc)
        return rc;

    const bal_tensor *tensor = start_of(self, edit);
    rc = bal_fit_turned(&self->fit, row, tensor, &is_turned, err);
    if (rc)
        return rc;
    whole.out = tensor->shape[is_turned];
    whole.in = tensor->shape[!is_turned];
    rc = new_change(self, &change, &whole, is_turned, err);
    if (rc)
        return rc;
    formulas[row->family](self, row, change);
    turn_change(change);
    edit->change = change;
    if (row->slots[BAL_SLOT_BIAS] != BAL_NONE)
        return change_bias(self, row, BAL_SLOT_BIAS, BAL_MEETING_ADD, whole.out,
                           err);
    if (row->family == BAL_FAMILY_IA3 && row->in == 1)
        return change_bias(self, row, BAL_SLOT_FACTOR, BAL_MEETING_TIMES,
                           whole.out, err);
    return 0;
}

/* ---- rows of tokens ----------------------------------------------------- */

static int by_row(const void *a, const void *b)
{
    const bal_token_row *left = a;
    const bal_token_row *right = b;

    return (left->row > right->row) - (left->row < right->row);
}

/* A list for the embedding, or an object of lists by module. */
static const json_t *indices_of(const bal_edits *self, const char *module)
{
    json_t *all =
        json_object_get(self->parts.config, "trainable_token_indices");
    const char *key;
    json_t *value;

    if (json_is_array(all))
        return all;
    json_object_foreach(all, key, value)
    {
        if (bal_peft_named(module, key))
            return value;
    }
    return NULL;
}

static int fill_tokens(bal_edit *edit, const json_t *indices, uint64_t rows,
                       bal_error *err)
{
    for (size_t i = 0; i < edit->token_count; i++) {
        const json_t *index = json_array_get(indices, i);
        json_int_t row =
            json_is_integer(index) ? json_integer_value(index) : -1;

        if (row < 0 || (uint64_t)row >= rows)
            return bal_fail(err, BAL_ECORRUPT,
                            "trainable_token_indices names a token that the "
                            "base's %llu do not have",
                            (unsigned long long)rows);
        edit->tokens[i] = (bal_token_row){ (uint64_t)row, i };
    }
    qsort(edit->tokens, edit->token_count, sizeof(*edit->tokens), by_row);
    for (size_t i = 1; i < edit->token_count; i++) {
        if (edit->tokens[i - 1].row == edit->tokens[i].row)
            return bal_fail(err, BAL_ECORRUPT,
                            "trainable_token_indices names token %llu twice",
                            (unsigned long long)edit->tokens[i].row);
    }
    return 0;
}

static int change_tokens(bal_edits *self, const bal_adapted *row,
                         bal_error *err)
{
    const json_t *indices = indices_of(self, row->module);
    bal_edit *edit = NULL;
    int rc = bal_edits_weight(self, &edit, row->module, err);
    if (rc)
        return rc;

    const bal_tensor *tensor = start_of(self, edit);
    if (json_array_size(indices) != row->in)
        return bal_fail(err, BAL_ECORRUPT,
                        "module '%s' has %llu rows of tokens, "
                        "trainable_token_indices %zu",
                        row->module, (unsigned long long)row->in,
                        json_array_size(indices));
    if (tensor->rank != 2 || tensor->shape[1] != row->out)
        return bal_fail(err, BAL_ECORRUPT,
                        "module '%s' has rows of %llu, the base's others",
                        row->module, (unsigned long long)row->out);
    edit->token_count = (size_t)row->in;
    edit->token_entry = row->slots[BAL_SLOT_ROWS];
    edit->tokens = bal_arena_alloc(&self->arena,
                                   edit->token_count * sizeof(*edit->tokens));
    if (!edit->tokens)
        return bal_fail_memory(err, "folding an adapter");
    return fill_tokens(edit, indices, tensor->shape[0], err);
}

/* ---- all of it ---------------------------------------------------------- */

int bal_edits_module(bal_edits *self, const bal_adapted *row, bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    bool tokens = row->family == BAL_FAMILY_TOKENS;
    int rc = bal_buf_format(&name, err, "%s.weight", row->module);

    if (rc || bal_edits_same(self, bal_buf_string(&name), tokens))
        return rc;
    if (tokens)
        return change_tokens(self, row, err);
    if (row->stacked)
        return bal_edits_stack(self, row, err);
    return change_matrix(self, row, err);
}
