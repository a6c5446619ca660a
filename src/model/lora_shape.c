/* The scale that most modules have becomes everyone's, by lora_alpha; what the
 * others differ by goes into their B. */
#include "model/lora_shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "model/loose.h"
#include "model/scaled.h"

enum { GROUP_MAX = 3 };

/* Modules that are computed together, and want each other. */
static const char *const groups[][GROUP_MAX + 1] = {
    { "q_proj", "k_proj", "v_proj", NULL },
    { "gate_proj", "up_proj", NULL },
};

/* ---- scale and rank ----------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double *left = a;
    const double *right = b;

    return (*left > *right) - (*left < *right);
}

/* The scale that most modules have, not 0 unless all have that. */
static int usual_scale(double *out, const bal_loras *loras, bal_error *err)
{
    double *scales = malloc((loras->count + 1) * sizeof(*scales));
    size_t best = 0;
    size_t n = 0;

    if (!scales)
        return bal_fail_memory(err, "an adapter's scales");
    *out = 0;
    for (size_t i = 0; i < loras->count; i++) {
        if (fabs(loras->rows[i].scale) > 0)
            scales[n++] = loras->rows[i].scale;
    }
    qsort(scales, n, sizeof(*scales), by_value);
    for (size_t i = 0, start = 0; i < n; i++) {
        start = scales[i] > scales[start] ? i : start;
        if (i - start + 1 <= best)
            continue;
        best = i - start + 1;
        *out = scales[i];
    }
    free(scales);
    return 0;
}

static int add_rows(bal_lora_shape *self, const bal_loras *loras,
                    const bal_model *adapter, double scale, bal_error *err)
{
    for (size_t i = 0; i < loras->count; i++) {
        const bal_lora *from = &loras->rows[i];
        bal_shaped *row = &self->rows[self->count++];

        if (from->a == BAL_NONE || from->b == BAL_NONE)
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "module '%s' has more than factors", from->module);
        bool same = !(fabs(from->scale - scale) > 0);
        *row = (bal_shaped){
            .module = bal_arena_copy(&self->arena, from->module,
                                     strlen(from->module)),
            .a = from->a,
            .b = from->b,
            .rank = from->rank,
            .in = from->in,
            .out = from->out,
            .dtypes = { bal_model_at(adapter, from->a)->dtype,
                        bal_model_at(adapter, from->b)->dtype },
            .factor = same ? 1 : from->scale / scale,
            .embedding = from->embedding,
        };
        if (!row->module)
            return bal_fail_memory(err, "an adapter's modules");
        self->rank = bal_max(self->rank, from->rank);
    }
    self->alpha = scale * (double)self->rank;
    if (self->alpha - self->alpha == 0)
        return 0;
    return bal_fail(err, BAL_EUNSUPPORTED, "a scale of %g is too large", scale);
}

/* ---- zeros -------------------------------------------------------------- */

static const char *const *group_of(const char *leaf)
{
    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
        for (const char *const *at = groups[i]; *at; at++) {
            if (!strcmp(*at, leaf))
                return groups[i];
        }
    }
    return NULL;
}

/* The module beside another, of another last name. */
static char *beside(bal_lora_shape *self, const char *module, const char *leaf)
{
    size_t stem = (size_t)(bal_loose_leaf(module) - module);
    size_t len = strlen(leaf);
    char *name = bal_arena_alloc(&self->arena, stem + len + 1);

    if (name) {
        memcpy(name, module, stem);
        memcpy(name + stem, leaf, len + 1);
    }
    return name;
}

static int add_zeros(bal_lora_shape *self, const bal_known *base,
                     const bal_shaped *like, const char *module, bal_error *err)
{
    bal_known_module found;
    int rc = bal_known_find(base, &found, module, err);

    if (rc || !found.in || !found.out)
        return rc;
    self->rows[self->count++] = (bal_shaped){
        .module = module,
        .a = BAL_NONE,
        .b = BAL_NONE,
        .rank = self->rank,
        .in = found.in,
        .out = found.out,
        .dtypes = { like->dtypes[0], like->dtypes[1] },
        .factor = 1,
    };
    return 0;
}

/* Is a module of this last name the first of its group that is there? */
static int is_first(bool *yes, bal_lora_shape *self, const bal_loras *loras,
                    const char *module, const char *const *group,
                    bal_error *err)
{
    const char *leaf = bal_loose_leaf(module);

    *yes = false;
    for (const char *const *at = group; *at && strcmp(*at, leaf); at++) {
        const char *other = beside(self, module, *at);

        if (!other)
            return bal_fail_memory(err, "an adapter's modules");
        if (bal_loras_find(loras, other))
            return 0;
    }
    *yes = true;
    return 0;
}

/* What a module's group lacks; only the group's first that is there asks. */
static int fill_group(bal_lora_shape *self, const bal_loras *loras, size_t i,
                      const bal_known *base, bal_error *err)
{
    const char *own = self->rows[i].module;
    const char *const *group = group_of(bal_loose_leaf(own));
    bool first = false;
    int rc = group ? is_first(&first, self, loras, own, group, err) : 0;

    for (const char *const *at = group; first && *at && !rc; at++) {
        const char *module = beside(self, own, *at);

        if (!module)
            return bal_fail_memory(err, "an adapter's modules");
        if (!bal_loras_find(loras, module))
            rc = add_zeros(self, base, &self->rows[i], module, err);
    }
    return rc;
}

/* ---- all ---------------------------------------------------------------- */

static int measure(bal_lora_shape *self, bal_model *adapter, bal_error *err)
{
    for (size_t i = 0; i < self->count; i++) {
        const bal_shaped *row = &self->rows[i];
        const bal_scaled b = { row->b,      row->rank,      row->rank,
                               row->factor, row->dtypes[1], 0 };
        double loss = 0;

        if (row->b == BAL_NONE || !(fabs(row->factor - 1) > 0))
            continue;
        int rc = bal_scaled_loss(&b, adapter, &loss, err);
        if (rc)
            return rc;
        self->loss = loss > self->loss ? loss : self->loss;
    }
    return 0;
}

static int fill(bal_lora_shape *self, const bal_loras *loras,
                bal_model *adapter, const bal_known *base, bal_error *err)
{
    double scale = 0;

    /* Each module asks for fewer than GROUP_MAX others. */
    self->rows = bal_arena_alloc(&self->arena, (loras->count * GROUP_MAX + 1) *
                                                   sizeof(*self->rows));
    if (!self->rows)
        return bal_fail_memory(err, "an adapter's modules");
    int rc = usual_scale(&scale, loras, err);
    if (!rc)
        rc = add_rows(self, loras, adapter, scale, err);
    size_t count = self->count;
    for (size_t i = 0; base && i < count && !rc; i++)
        rc = fill_group(self, loras, i, base, err);
    if (!rc)
        rc = measure(self, adapter, err);
    return rc ? rc : bal_lora_shape_config(self, loras->config, err);
}

int bal_lora_shape_init(bal_lora_shape *out, const bal_loras *loras,
                        bal_model *adapter, const bal_engine *engine,
                        const bal_known *base, bal_error *err)
{
    BAL_LOCAL(bal_lora_shape) self = { 0 };

    for (size_t i = 0; i < loras->whole_count; i++) {
        if (!loras->wholes[i].copy)
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "tensor '%s' is a whole tensor",
                            loras->wholes[i].name);
    }
    if (!loras->count)
        return bal_fail(err, BAL_EUNSUPPORTED, "an adapter without factors");
    int rc = fill(&self, loras, adapter, engine->grouped ? base : NULL, err);
    if (rc)
        return rc;
    *out = self;
    self = (bal_lora_shape){ 0 };
    return 0;
}

void bal_lora_shape_done(bal_lora_shape *self)
{
    bal_buf_done(&self->config);
    bal_arena_done(&self->arena);
    *self = (bal_lora_shape){ 0 };
}
