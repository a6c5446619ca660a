/* An adapter's maps, computed where they are read. */
#include "merge/maps.h"

#include <stdlib.h>

#include "core/error.h"
#include "model/peft.h"
#include "model/update.h"

/* Tags are modules. */
typedef struct maps {
    bal_model model;
    bal_model *adapter;
    bal_loras loras;
} maps;

/* s B A, as what folding adds. */
static bal_update update_of(const bal_lora *lora)
{
    return (bal_update){
        .formula = BAL_FORMULA_ONE,
        .meeting = BAL_MEETING_ADD,
        .operands = { {
            .left = { .entry = lora->b, .down = lora->rank, .right = 1 },
            .right = { .entry = lora->a, .down = lora->in, .right = 1 },
            .rank = lora->rank,
            .diagonal = BAL_NONE,
        } },
        .rows = lora->out,
        .cols = lora->in,
        .scale = lora->scale,
        .magnitude = BAL_NONE,
    };
}

static int maps_read(bal_model *model, size_t i, uint64_t offset, void *to,
                     size_t len, bal_error *err)
{
    maps *self = (maps *)model;
    const bal_update update =
        update_of(&self->loras.rows[bal_model_tag(model, i)]);

    const bal_update_sides sides = { .adapter = self->adapter };
    int rc =
        bal_update_difference(&update, &sides, BAL_F32, offset / sizeof(float),
                              len / sizeof(float), to, err);
    return rc ? bal_within(err, rc, "tensor '%s'", bal_model_at(model, i)->name)
              : 0;
}

static void maps_free(bal_model *model)
{
    maps *self = (maps *)model;

    bal_loras_done(&self->loras);
    bal_model_free(self->adapter);
}

static const bal_model_ops maps_ops = { .read = maps_read, .free = maps_free };

static int add(maps *self, size_t i, bal_buf *name, bal_error *err)
{
    const bal_lora *lora = &self->loras.rows[i];
    const uint64_t shape[] = { lora->out, lora->in };

    bal_buf_clear(name);
    int rc = bal_buf_format(name, err, "%s.weight", lora->module);
    if (rc)
        return rc;
    const bal_tensor entry = {
        .name = bal_buf_string(name),
        .part = BAL_PART_TENSOR,
        .form = BAL_FORM_DIFFERENCE,
        .dtype = BAL_F32,
        .of = BAL_F32,
        .rank = 2,
        .shape = shape,
    };
    return bal_model_add(&self->model, &entry, i, err);
}

static int list(maps *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    bal_facts facts = *bal_model_facts(self->adapter);
    int rc = bal_loras_read(&self->loras, self->adapter, err);

    for (size_t i = 0; i < self->loras.count && !rc; i++)
        rc = add(self, i, &name, err);
    facts.kind = BAL_KIND_DELTA;
    if (!rc)
        rc = bal_model_tell(&self->model, &facts, err);
    return rc ? rc : bal_model_ready(&self->model, err);
}

int bal_maps_open(bal_model **out, bal_model *adapter, bal_error *err)
{
    maps *self = bal_model_alloc(sizeof(*self), &maps_ops);
    if (!self)
        return bal_fail_memory(err, "merging adapters");
    BAL_OWN(bal_model) model = &self->model;
    self->adapter = bal_model_ref(adapter);

    int rc = list(self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}
