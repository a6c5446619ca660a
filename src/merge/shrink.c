/* An adapter of lower rank. */
#include "merge/shrink.h"

#include <stdlib.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/factored.h"

typedef struct shrink {
    bal_factored made;
    bal_loras loras; /* of made.others: its modules are those of made */
} shrink;

/* ---- factors ------------------------------------------------------------ */

static int no_memory(bal_error *err)
{
    return bal_fail_memory(err, "an adapter of lower rank");
}

static int spectrum_of(bal_spectrum *out, const shrink *self, size_t i,
                       bal_error *err)
{
    const bal_lora *lora = &self->loras.rows[i];
    BAL_LOCAL(bal_lowrank) map = { 0 };
    int rc = bal_lowrank_init(&map, (size_t)lora->out, (size_t)lora->in,
                              (size_t)lora->rank, err);

    if (!rc)
        rc = bal_lowrank_read(&map, 0, 1, self->made.others, lora, err);
    if (!rc)
        rc = bal_spectrum_init(out, &map, err);
    return rc;
}

static int compute(bal_lowrank *out, bal_factored *made, size_t i,
                   bal_error *err)
{
    const shrink *self = (const shrink *)made;
    BAL_LOCAL(bal_spectrum) spectrum = { 0 };
    int rc = spectrum_of(&spectrum, self, i, err);

    return rc ? rc
              : bal_spectrum_cut(out, &spectrum, (size_t)made->modules[i].rank,
                                 err);
}

static void drop(bal_factored *made)
{
    bal_loras_done(&((shrink *)made)->loras);
}

/* ---- ranks -------------------------------------------------------------- */

typedef struct rank_job {
    shrink *self;
    double energy;
} rank_job;

static int find_rank(size_t i, void *ctx, bal_error *err)
{
    const rank_job *job = ctx;
    BAL_LOCAL(bal_spectrum) spectrum = { 0 };
    int rc = spectrum_of(&spectrum, job->self, i, err);

    if (rc)
        return bal_within(err, rc, "module '%s'",
                          job->self->loras.rows[i].module);
    job->self->made.modules[i].rank =
        bal_max(bal_spectrum_rank(&spectrum, job->energy), 1);
    return 0;
}

/* What no map of that shape has more of: what is asked for beyond it would be
 * zeros, as many as anybody says. */
static uint64_t most_rank(const bal_lora *lora)
{
    return bal_min(lora->in, lora->out);
}

int bal_rank_told(uint64_t *out, const json_t *ranks, const char *module,
                  uint64_t most, bal_error *err)
{
    json_int_t rank = json_integer_value(json_object_get(ranks, module));

    if (rank < 1 || (uint64_t)rank > most)
        return bal_fail(err, BAL_ECORRUPT,
                        "the recipe does not tell the rank of module '%s'",
                        module);
    *out = (uint64_t)rank;
    return 0;
}

static int choose_ranks(shrink *self, const bal_shrink *how, bal_work *work,
                        bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->loras.count && !rc; i++) {
        const bal_lora *lora = &self->loras.rows[i];
        self->made.modules[i] =
            (bal_joined){ .module = lora->module,
                          .in = lora->in,
                          .out = lora->out,
                          .embedding = lora->embedding,
                          .rank = bal_min(how->rank, most_rank(lora)) };
        if (!how->rank && how->ranks)
            rc = bal_rank_told(&self->made.modules[i].rank, how->ranks,
                               lora->module, most_rank(lora), err);
    }
    if (rc || how->rank || how->ranks)
        return rc;
    rank_job job = { self, how->energy };
    return bal_pool_run(work, self->loras.count, find_rank, &job, err);
}

/* ---- opening ------------------------------------------------------------ */

static int list(shrink *self, bal_error *err)
{
    bal_factored *made = &self->made;
    int rc = bal_factored_list(made, &self->loras, 1, err);

    for (size_t i = 0; !rc && i < self->loras.whole_count; i++)
        rc = bal_entries_pass(&made->model, made->others,
                              self->loras.wholes[i].entry, err);
    return rc;
}

static int plan(shrink *self, const bal_shrink *how, bal_work *work,
                bal_error *err)
{
    bal_factored *made = &self->made;
    bal_facts facts = *bal_model_facts(made->others);
    int rc = bal_loras_read(&self->loras, made->others, err);
    if (rc)
        return rc;

    made->count = self->loras.count;
    made->modules = calloc(made->count + 1, sizeof(*made->modules));
    if (!made->modules)
        return no_memory(err);
    int dtype = how->dtype >= 0
                    ? how->dtype
                    : bal_loras_join(-1, &self->loras, made->others);
    made->dtype = dtype >= 0 ? (bal_dtype)dtype : BAL_F32;
    rc = choose_ranks(self, how, work, err);
    if (!rc)
        rc = list(self, err);
    if (!rc)
        rc = bal_model_tell(&made->model, &facts, err);
    return rc ? rc : bal_model_ready(&made->model, err);
}

int bal_shrink_open(bal_model **out, bal_model *adapter, const bal_shrink *how,
                    bal_work *work, bal_error *err)
{
    shrink *self = bal_factored_alloc(sizeof(*self), compute, drop);
    if (!self)
        return no_memory(err);
    self->made.others = bal_model_ref(adapter);
    BAL_OWN(bal_model) model = &self->made.model;

    int rc = plan(self, how, work, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}
