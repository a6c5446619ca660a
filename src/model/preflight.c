/* A run: the adapter is read as it lies there, then rule after rule is asked
 * where it is met. */
#include "model/preflight.h"

#include <stdarg.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/str.h"

enum { TEXT_MAX = 64 << 10 };

static const char *const consequences[] = {
    [BAL_OUTCOME_REFUSED] = "the adapter is refused",
    [BAL_OUTCOME_WRONG] = "answers are not PEFT's",
    [BAL_OUTCOME_FATAL] = "the first request with it ends the server",
    [BAL_OUTCOME_ADAPTED] = "",
    [BAL_OUTCOME_NOTED] = "no harm",
};

const json_t *bal_flight_key(const bal_flight *self, const char *key)
{
    return json_object_get(self->parts.config, key);
}

bool bal_flight_is_lora(const bal_flight *self)
{
    const char *type = json_string_value(bal_flight_key(self, "peft_type"));

    return type && !strcmp(type, "LORA");
}

const char *bal_flight_name(const bal_flight *self, size_t entry)
{
    return bal_model_at(self->adapter, entry)->name;
}

static const bal_tensor *matrix(const bal_flight *self, size_t entry)
{
    const bal_tensor *tensor =
        entry == BAL_NONE ? NULL : bal_model_at(self->adapter, entry);

    return tensor && tensor->rank == 2 ? tensor : NULL;
}

bal_factor_dims bal_flight_dims(const bal_flight *self,
                                const bal_loose_module *module)
{
    const bal_tensor *a = matrix(self, module->a);
    const bal_tensor *b = matrix(self, module->b);

    return (bal_factor_dims){
        .in = a ? a->shape[1] : 0,
        .rank_a = a ? a->shape[0] : 0,
        .rank_b = b ? b->shape[1] : 0,
        .out = b ? b->shape[0] : 0,
    };
}

/* What comes of it: the rule's own words before those of the outcome. */
static const char *consequence(const bal_rule *rule, bal_outcome outcome)
{
    bool own = outcome == BAL_OUTCOME_WRONG || outcome == BAL_OUTCOME_NOTED;

    return own && rule->then ? rule->then : consequences[outcome];
}

int bal_flight_tell(bal_flight *self, const char *where, bal_error *err,
                    const char *format, ...)
{
    BAL_LOCAL(bal_buf) fact = { .ceiling = TEXT_MAX };
    BAL_LOCAL(bal_buf) text = { .ceiling = TEXT_MAX };
    char raw[512];
    va_list args;
    int outcome = self->rule->outcomes[bal_engine_id_of(self->engine)];

    va_start(args, format);
    vsnprintf(raw, sizeof(raw), format, args);
    va_end(args);
    int rc = bal_printable(&fact, raw, strlen(raw), false, err);
    if (!rc)
        rc = bal_buf_format(&text, err, "%s: %s", bal_buf_string(&fact),
                            consequence(self->rule, (bal_outcome)outcome));
    if (rc)
        return rc;
    const bal_preflight_row row = {
        .rule = self->rule->name,
        .outcome = (bal_outcome)outcome,
        .engine = self->engine->info.version,
        .where = where,
        .text = bal_buf_string(&text),
    };
    return self->fn(self->ctx, self->rule, &row, bal_buf_string(&fact));
}

/* ---- a run -------------------------------------------------------------- */

static int run_rules(bal_flight *self, bool values, bal_error *err)
{
    bal_engine_id column = bal_engine_id_of(self->engine);
    bool foreign = column == BAL_ENGINE_PEFT && self->parts.config &&
                   !bal_flight_is_lora(self);
    int rc = 0;

    for (size_t i = 0; i < bal_flight_rules_count && !rc; i++) {
        const bal_rule *rule = &bal_flight_rules[i];

        if (rule->outcomes[column] == BAL_OUTCOME_NONE ||
            (rule->values && !values) || (foreign && !rule->any_type))
            continue;
        self->rule = rule;
        rc = rule->check(self, err);
    }
    return rc;
}

/* Scales that the config does not give are a rule's to tell. */
static int read_scales(bal_flight *self, bal_error *err)
{
    bal_error why = { 0 };

    if (!self->parts.config)
        return 0;
    int rc = bal_peft_scales_init(&self->scales, self->parts.config, &why);
    self->scaled = !rc;
    if (rc == BAL_ENOMEM)
        return bal_fail(err, rc, "%s", why.text);
    if (rc)
        self->unscaled = why;
    return 0;
}

static int open_all(bal_flight *self, const bal_serving_options *options,
                    bal_error *err)
{
    int rc = bal_loose_read(&self->parts, self->adapter, err);
    if (!rc)
        rc = read_scales(self, err);
    if (!rc && options->base)
        rc = bal_known_open(&self->base, options->base, err);
    self->based = !rc && options->base;
    return rc;
}

static int check_options(const bal_model *adapter,
                         const bal_serving_options *options, bal_error *err)
{
    const bal_facts *facts = bal_model_facts(adapter);

    if (!options->engine || !bal_engine_row(options->engine))
        return bal_fail(err, BAL_EINVAL,
                        "'%.64s' is not one of vllm, sglang, llama.cpp, peft",
                        options->engine ? options->engine : "");
    if (facts->kind == BAL_KIND_ADAPTER)
        return 0;
    return bal_fail(err, BAL_EINVAL, "'%s' is of kind '%s', not an adapter",
                    facts->name ? facts->name : "", bal_kind_name(facts->kind));
}

int bal_flight_run(bal_model *adapter, const bal_serving_options *options,
                   bool values, bal_met_fn *fn, void *ctx, bal_error *err)
{
    int rc = check_options(adapter, options, err);
    if (rc)
        return rc;
    const bal_engine *engine = bal_engine_row(options->engine);
    bal_flight self = {
        .engine = engine,
        .max_rank =
            options->max_rank ? options->max_rank : engine->info.max_rank,
        .adapter = adapter,
        .fn = fn,
        .ctx = ctx,
    };
    rc = open_all(&self, options, err);
    if (!rc)
        rc = run_rules(&self, values, err);
    if (self.based)
        bal_known_done(&self.base);
    bal_peft_scales_done(&self.scales);
    bal_loose_done(&self.parts);
    return rc;
}

typedef struct told {
    bal_preflight_fn *fn;
    void *ctx;
} told;

static int pass_on(void *ctx, const bal_rule *rule,
                   const bal_preflight_row *row, const char *fact)
{
    const told *to = ctx;

    (void)rule;
    (void)fact;
    return to->fn(to->ctx, row);
}

int bal_preflight(bal_model *adapter, const bal_serving_options *options,
                  bal_preflight_fn *fn, void *ctx, bal_error *err)
{
    told to = { fn, ctx };

    return bal_flight_run(adapter, options, true, pass_on, &to, err);
}
