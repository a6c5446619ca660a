/* llama.cpp multiplies each map by alpha / rank, with one alpha for all and
 * each pair's own rank, or by nothing where alpha is 0. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "model/gguf.h"

typedef unsigned long long ull;

enum { NAME_MAX_GGUF = 63 };

typedef struct type_row {
    bal_dtype from, to;
    uint32_t type;
} type_row;

static const type_row types[] = {
    { BAL_F32, BAL_F32, 0 },
    { BAL_F16, BAL_F16, 1 },
    { BAL_BF16, BAL_BF16, 30 },
    { BAL_F64, BAL_F32, 0 },
};

typedef struct plan {
    bal_gguf *out;
    bal_model *adapter;
    const bal_known *base;
    bal_gguf_base names;
} plan;

/* ---- one scale for all -------------------------------------------------- */

/* The alpha that gives each module its scale; 0: there is none. */
static float common_alpha(const bal_loras *loras)
{
    const double near = 1e-9;
    double alpha = 0;

    for (size_t i = 0; i < loras->count; i++) {
        const bal_lora *row = &loras->rows[i];
        double own = row->scale * (double)row->rank;

        alpha = i ? alpha : own;
        if (!(fabs(own - alpha) <= near * fabs(alpha)))
            return 0;
    }
    bool fits = fabs(alpha) < (double)FLT_MAX && fabs(alpha) > (double)FLT_MIN;
    return fits ? (float)alpha : 0;
}

/* ---- tensors ------------------------------------------------------------ */

static const type_row *type_of(const bal_tensor *tensor)
{
    const type_row *row = types;

    /* bal_loras_read takes these floats alone. */
    while (row->from != tensor->dtype)
        row++;
    return row;
}

static int name_tensor(plan *self, bal_gguf_tensor *tensor, const char *base,
                       const char *tail, bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    int rc = bal_buf_format(&name, err, "%s.%s", base, tail);
    if (rc)
        return rc;
    if (name.len > NAME_MAX_GGUF)
        return bal_fail(err, BAL_EUNSUPPORTED, "tensor '%s': its name is long",
                        bal_buf_string(&name));
    tensor->name = bal_arena_copy(&self->out->arena, name.data, name.len);
    return tensor->name ? 0 : bal_fail_memory(err, "an adapter's tensors");
}

static void set_dims(bal_gguf_tensor *self, uint64_t first, uint64_t second,
                     const type_row *type)
{
    self->dims[0] = first;
    self->dims[1] = second;
    self->type = type->type;
    self->from.dtype = type->to;
    self->size = first * second * (bal_dtype_bits(type->to) / 8);
}

static int add_a(plan *self, const bal_lora *row, const char *name,
                 bal_error *err)
{
    bal_gguf_tensor *tensor = &self->out->tensors[self->out->count++];
    const type_row *type = type_of(bal_model_at(self->adapter, row->a));

    *tensor = (bal_gguf_tensor){ .from = { .entry = row->a, .rank = row->rank },
                                 .turned = row->embedding };
    set_dims(tensor, row->embedding ? row->rank : row->in,
             row->embedding ? row->in : row->rank, type);
    return name_tensor(self, tensor, name, "lora_a", err);
}

static int add_b(plan *self, const bal_lora *row, const char *name,
                 uint64_t heads, bal_error *err)
{
    bal_gguf_tensor *tensor = &self->out->tensors[self->out->count++];
    const type_row *type = type_of(bal_model_at(self->adapter, row->b));
    bool folded = !(fabsf(self->out->alpha) > 0);
    double loss = 0;

    *tensor = (bal_gguf_tensor){
        .from = { .entry = row->b,
                  .rank = row->rank,
                  .wide = row->rank,
                  .factor = folded ? row->scale : 1,
                  .heads = heads },
        .scaled = true,
    };
    set_dims(tensor, row->rank, row->out, type);
    int rc = name_tensor(self, tensor, name, "lora_b", err);
    return rc || !folded
               ? rc
               : bal_scaled_loss(&tensor->from, self->adapter, &loss, err);
}

/* ---- beside the base ---------------------------------------------------- */

static int check_base(const plan *self, const bal_lora *row, bal_error *err)
{
    bal_known_module base;
    int rc = bal_known_find(self->base, &base, row->module, err);
    if (rc)
        return rc;

    if (!base.there)
        return bal_fail(err, BAL_EUNSUPPORTED, "the base has no module '%s'",
                        row->module);
    if (base.tied || (self->base->fit.tied && row->embedding))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "module '%s': the base's head is its embedding",
                        row->module);
    if (bal_is_embedding(row->module) != row->embedding)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "module '%s' has factors of another kind", row->module);
    if (!base.in || (base.in == row->in && base.out == row->out))
        return 0;
    return bal_fail(err, BAL_ECORRUPT,
                    "module '%s' is [%llu, %llu], the base's [%llu, %llu]",
                    row->module, (ull)row->out, (ull)row->in, (ull)base.out,
                    (ull)base.in);
}

/* Of how many heads the rows are whose order changes; 0: it does not. */
static int count_heads(const plan *self, uint64_t *out, const bal_lora *row,
                       const char *key, bal_error *err)
{
    *out = 0;
    if (!self->names.paired || !key)
        return 0;
    *out = bal_known_number(self->base, key);
    if (!*out)
        *out = bal_known_number(self->base, "num_attention_heads");
    if (*out && row->out % 2 == 0 && row->out / 2 % *out == 0)
        return 0;
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "module '%s' has %llu rows, which are not those of %llu "
                    "heads",
                    row->module, (ull)row->out, (ull)*out);
}

static int add_row(plan *self, const bal_lora *row, bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    const char *key = NULL;
    uint64_t heads = 0;

    if (row->a == BAL_NONE || row->b == BAL_NONE)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "module '%s' has more than factors", row->module);
    int rc = bal_gguf_name(&name, &key, row->module, err);
    if (!rc)
        rc = check_base(self, row, err);
    if (!rc)
        rc = count_heads(self, &heads, row, key, err);
    if (!rc)
        rc = add_a(self, row, bal_buf_string(&name), err);
    return rc ? rc : add_b(self, row, bal_buf_string(&name), heads, err);
}

static int check_wholes(const bal_loras *loras, bal_error *err)
{
    for (size_t i = 0; i < loras->whole_count; i++) {
        if (!loras->wholes[i].copy)
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "tensor '%s' is a whole tensor, which a GGUF "
                            "adapter cannot have",
                            loras->wholes[i].name);
    }
    if (loras->count)
        return 0;
    return bal_fail(err, BAL_EUNSUPPORTED, "an adapter without factors");
}

int bal_gguf_plan(bal_gguf *out, const bal_loras *loras, bal_model *adapter,
                  const bal_known *base, bal_error *err)
{
    BAL_LOCAL(bal_gguf) self = { .alpha = common_alpha(loras) };
    plan all = { .out = &self, .adapter = adapter, .base = base };
    int rc = check_wholes(loras, err);
    if (!rc)
        rc = bal_gguf_base_of(&all.names, base, err);
    if (rc)
        return rc;
    self.architecture = all.names.architecture;
    self.tensors =
        bal_arena_alloc(&self.arena, 2 * loras->count * sizeof(*self.tensors));
    if (!self.tensors)
        return bal_fail_memory(err, "an adapter's tensors");
    for (size_t i = 0; i < loras->count && !rc; i++)
        rc = add_row(&all, &loras->rows[i], err);
    if (rc)
        return rc;
    *out = self;
    self = (bal_gguf){ 0 };
    return 0;
}

void bal_gguf_done(bal_gguf *self)
{
    bal_arena_done(&self->arena);
    *self = (bal_gguf){ 0 };
}
