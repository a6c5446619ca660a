/* Rules are asked before and after: what is met no more was answered. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/room.h"
#include "model/lora_shape.h"
#include "model/preflight.h"

/* A rule that was met, and that a reshaped adapter may not meet. */
typedef struct met {
    const bal_rule *rule;
    const char *where, *fact;
} met;

typedef struct meetings {
    met *rows;
    size_t count, room;
    bool barred; /* one of them is against it */
    bal_arena arena;
} meetings;

static void meetings_done(meetings *self)
{
    free(self->rows);
    bal_arena_done(&self->arena);
    *self = (meetings){ 0 };
}

static int remember(void *ctx, const bal_rule *rule,
                    const bal_preflight_row *row, const char *fact)
{
    meetings *self = ctx;

    self->barred |= rule->bars;
    if (!rule->adapt)
        return 0;
    met *rows =
        bal_room_for_one(self->rows, self->count, &self->room, sizeof(*rows));
    if (!rows)
        return BAL_ENOMEM;
    self->rows = rows;
    met *one = &rows[self->count++];
    *one = (met){
        .rule = rule,
        .where = bal_arena_copy(&self->arena, row->where, strlen(row->where)),
        .fact = bal_arena_copy(&self->arena, fact, strlen(fact)),
    };
    return one->where && one->fact ? 0 : BAL_ENOMEM;
}

static bool still_met(const meetings *after, const bal_rule *rule)
{
    for (size_t i = 0; i < after->count; i++) {
        if (after->rows[i].rule == rule)
            return true;
    }
    return false;
}

/* ---- the new adapter ---------------------------------------------------- */

/* BAL_EUNSUPPORTED and the like: it is not to be reshaped. */
static int reshape(bal_model **out, double *loss, bal_model *adapter,
                   const bal_serving_options *options, bal_error *err)
{
    BAL_LOCAL(bal_loras) loras = { 0 };
    BAL_LOCAL(bal_lora_shape) shape = { 0 };
    BAL_LOCAL(bal_known) base = { 0 };
    int rc = bal_loras_read(&loras, adapter, err);
    if (!rc && options->base)
        rc = bal_known_open(&base, options->base, err);
    if (!rc)
        rc = bal_lora_shape_init(&shape, &loras, adapter,
                                 bal_engine_row(options->engine),
                                 options->base ? &base : NULL, err);
    if (rc)
        return rc;
    *loss = shape.loss;
    return bal_lora_shaped(out, adapter, &shape, err);
}

/* What cannot be reshaped is for bal_preflight to find. */
static bool is_left(int rc)
{
    return rc == BAL_EUNSUPPORTED || rc == BAL_ECORRUPT || rc == BAL_EINVAL;
}

/* ---- telling ------------------------------------------------------------ */

typedef struct told {
    bal_preflight_fn *fn;
    void *ctx;
    const char *engine;
    double loss;
} told;

static int tell(const told *to, const met *one, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc = bal_buf_format(&text, err, "%s: %s", one->fact, one->rule->adapt);
    if (!rc && one->rule->folds && to->loss > 0)
        rc = bal_buf_format(
            &text, err, ", which rounded by at most %.2g of a value", to->loss);
    if (rc)
        return rc;
    const bal_preflight_row row = {
        .rule = one->rule->name,
        .outcome = BAL_OUTCOME_ADAPTED,
        .engine = to->engine,
        .where = one->where,
        .text = bal_buf_string(&text),
    };
    return to->fn(to->ctx, &row);
}

static bool any_answered(const meetings *before, const meetings *after)
{
    for (size_t i = 0; i < before->count; i++) {
        if (!still_met(after, before->rows[i].rule))
            return true;
    }
    return false;
}

static int tell_answered(const told *to, const meetings *before,
                         const meetings *after, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < before->count && !rc; i++) {
        if (!still_met(after, before->rows[i].rule))
            rc = tell(to, &before->rows[i], err);
    }
    return rc;
}

/* ---- all ---------------------------------------------------------------- */

static int adapt(bal_model **out, bal_model *adapter,
                 const bal_serving_options *options, meetings *before, told *to,
                 bal_error *err)
{
    BAL_OWN(bal_model) made = NULL;
    BAL_LOCAL(meetings) after = { 0 };
    bal_error why = { 0 };
    int rc = bal_flight_run(adapter, options, options->base != NULL, remember,
                            before, err);

    if (!rc && before->count && !before->barred)
        rc = reshape(&made, &to->loss, adapter, options, &why);
    if (is_left(rc) && why.code)
        rc = 0;
    if (rc && why.code && err)
        *err = why;
    if (rc)
        return rc;
    if (made)
        rc = bal_flight_run(made, options, false, remember, &after, err);
    if (!rc && made && any_answered(before, &after)) {
        rc = tell_answered(to, before, &after, err);
        adapter = made;
    }
    if (!rc)
        *out = bal_model_ref(adapter);
    return rc;
}

int bal_lora_adapt(bal_model **out, bal_model *adapter,
                   const bal_serving_options *options, bal_preflight_fn *fn,
                   void *ctx, bal_error *err)
{
    const bal_engine *engine =
        options->engine ? bal_engine_row(options->engine) : NULL;
    BAL_LOCAL(meetings) before = { 0 };
    told to = { fn, ctx, engine ? engine->info.version : "", 0 };

    return adapt(out, adapter, options, &before, &to, err);
}
