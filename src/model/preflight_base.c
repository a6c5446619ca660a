/* Rules about an adapter beside the base that it goes onto. */
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "model/gguf.h"
#include "model/preflight.h"

typedef unsigned long long ull;

enum { TOKENS_MAX = 16 << 20 };
static const char added_tokens[] = "added_tokens.json";

/* Of one module, told by who has both. */
typedef int each_fn(bal_flight *self, const bal_loose_module *module,
                    const bal_known_module *base, bal_error *err);

static int each_module(bal_flight *self, each_fn *fn, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; self->based && i < self->parts.module_count && !rc;
         i++) {
        const bal_loose_module *module = &self->parts.modules[i];
        bal_known_module base;

        rc = bal_known_find(&self->base, &base, module->name, err);
        if (!rc)
            rc = fn(self, module, &base, err);
    }
    return rc;
}

int bal_rule_no_base(bal_flight *self, bal_error *err)
{
    if (self->based)
        return 0;
    return bal_flight_tell(self, "", err, "no base was named");
}

/* ---- whether it is there ------------------------------------------------ */

/* True if that engine, or the base, has a module of that last name. */
static bool has_leaf(const bal_flight *self, const char *module)
{
    const char *leaf = bal_loose_leaf(module);
    const char *const *at = self->engine->modules;

    while (at && *at && strcmp(*at, leaf) != 0)
        at++;
    return (!at || *at) && (!self->based || bal_known_leaf(&self->base, leaf));
}

int bal_rule_module_unknown(bal_flight *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->parts.module_count && !rc; i++) {
        const char *module = self->parts.modules[i].name;

        if (!has_leaf(self, module))
            rc = bal_flight_tell(self, module, err,
                                 "there is no module '%.200s'",
                                 bal_loose_leaf(module));
    }
    return rc;
}

/* In a layer that the base lacks. */
static bool beyond(const bal_flight *self, const char *module)
{
    uint64_t layer = 0;

    return self->base.layers && bal_known_layer(&layer, module) &&
           layer >= self->base.layers;
}

static int nowhere(bal_flight *self, const bal_loose_module *module,
                   const bal_known_module *base, bal_error *err)
{
    if (base->there || !has_leaf(self, module->name) ||
        beyond(self, module->name))
        return 0;
    return bal_flight_tell(self, module->name, err,
                           "the base has no module of that path");
}

int bal_rule_module_nowhere(bal_flight *self, bal_error *err)
{
    return each_module(self, nowhere, err);
}

static int missing_layer(bal_flight *self, const bal_loose_module *module,
                         const bal_known_module *base, bal_error *err)
{
    if (base->there || !beyond(self, module->name))
        return 0;
    return bal_flight_tell(self, module->name, err, "the base has %llu layers",
                           (ull)self->base.layers);
}

int bal_rule_layer_missing(bal_flight *self, bal_error *err)
{
    return each_module(self, missing_layer, err);
}

static int vector(bal_flight *self, const bal_loose_module *module,
                  const bal_known_module *base, bal_error *err)
{
    if (!base->there || base->matrix)
        return 0;
    return bal_flight_tell(self, module->name, err,
                           "the base's weight is no matrix");
}

int bal_rule_module_vector(bal_flight *self, bal_error *err)
{
    return each_module(self, vector, err);
}

static int tied(bal_flight *self, const bal_loose_module *module,
                const bal_known_module *base, bal_error *err)
{
    if (!base->tied &&
        !(self->base.fit.tied && base->there && bal_is_embedding(module->name)))
        return 0;
    return bal_flight_tell(self, module->name, err,
                           "the base's head is its embedding");
}

int bal_rule_tied(bal_flight *self, bal_error *err)
{
    return each_module(self, tied, err);
}

/* ---- names in GGUF ------------------------------------------------------ */

static int nameless(bal_flight *self, const bal_loose_module *module,
                    const bal_known_module *base, bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    const char *heads = NULL;
    bal_error why = { 0 };
    int rc = bal_gguf_name(&name, &heads, module->name, &why);

    if (rc != BAL_EUNSUPPORTED || !base->there)
        return rc == BAL_ENOMEM ? bal_fail(err, rc, "%s", why.text) : 0;
    return bal_flight_tell(self, module->name, err, "%s", why.text);
}

int bal_rule_gguf_name(bal_flight *self, bal_error *err)
{
    bal_gguf_base base;
    bal_error why = { 0 };

    if (!self->based)
        return 0;
    if (bal_gguf_base_of(&base, &self->base, &why))
        return bal_flight_tell(self, "", err, "%s", why.text);
    return each_module(self, nameless, err);
}

/* ---- shapes ------------------------------------------------------------- */

/* The embedding's rows are a rule of their own. */
static bool rows_apart(const bal_loose_module *module)
{
    return module->embedding;
}

static int tell_shape(bal_flight *self, const bal_loose_module *module,
                      const bal_known_module *base, bal_error *err)
{
    bal_factor_dims dims = bal_flight_dims(self, module);

    return bal_flight_tell(
        self, module->name, err, "it is [%llu, %llu], the base's [%llu, %llu]",
        (ull)dims.out, (ull)dims.in, (ull)base->out, (ull)base->in);
}

static int small(bal_flight *self, const bal_loose_module *module,
                 const bal_known_module *base, bal_error *err)
{
    bal_factor_dims dims = bal_flight_dims(self, module);
    bool in = dims.in && dims.in < base->in && !rows_apart(module);
    bool out = dims.out && dims.out < base->out;

    return in || out ? tell_shape(self, module, base, err) : 0;
}

int bal_rule_shape_small(bal_flight *self, bal_error *err)
{
    return each_module(self, small, err);
}

static int large(bal_flight *self, const bal_loose_module *module,
                 const bal_known_module *base, bal_error *err)
{
    bal_factor_dims dims = bal_flight_dims(self, module);
    bool in = base->in && dims.in > base->in && !rows_apart(module);
    bool out = base->out && dims.out > base->out;

    return in || out ? tell_shape(self, module, base, err) : 0;
}

int bal_rule_shape_large(bal_flight *self, bal_error *err)
{
    return each_module(self, large, err);
}

static int vocabulary(bal_flight *self, const bal_loose_module *module,
                      const bal_known_module *base, bal_error *err)
{
    bal_factor_dims dims = bal_flight_dims(self, module);

    if (!rows_apart(module) || !base->in || !dims.in || dims.in == base->in)
        return 0;
    return bal_flight_tell(self, module->name, err,
                           "it is for %llu tokens, the base has %llu",
                           (ull)dims.in, (ull)base->in);
}

int bal_rule_vocabulary(bal_flight *self, bal_error *err)
{
    return each_module(self, vocabulary, err);
}

/* ---- tokens ------------------------------------------------------------- */

static int read_tokens(bal_flight *self, size_t entry, json_t **out,
                       bal_error *err)
{
    uint64_t size = bal_model_at(self->adapter, entry)->size;
    BAL_LOCAL(bal_buf) text = { .ceiling = TOKENS_MAX + 1 };
    bal_error why = { 0 };

    if (size > TOKENS_MAX)
        return bal_flight_tell(self, added_tokens, err,
                               "it is longer than 16 MiB");
    int rc = bal_buf_reserve(&text, size, err);
    if (!rc)
        rc = bal_model_read(self->adapter, entry, 0, text.data, size, err);
    if (rc)
        return rc;
    rc = bal_json_parse(out, text.data, size, added_tokens, &why);
    if (rc == BAL_ECORRUPT)
        return bal_flight_tell(self, added_tokens, err, "%s", why.text);
    return rc ? bal_fail(err, rc, "%s", why.text) : 0;
}

int bal_rule_added_tokens(bal_flight *self, bal_error *err)
{
    size_t entry = bal_model_find(self->adapter, BAL_PART_FILE, added_tokens);
    BAL_OWN(json_t) tokens = NULL;
    uint64_t vocab = 0;
    const char *token;
    json_t *id;

    if (entry == BAL_NONE || !self->based)
        return 0;
    int rc = read_tokens(self, entry, &tokens, err);
    if (!rc)
        rc = bal_known_vocabulary(&self->base, &vocab, err);
    if (rc || !tokens)
        return rc;
    json_object_foreach(tokens, token, id)
    {
        json_int_t number = json_integer_value(id);

        if (!rc && (number < 0 || (uint64_t)number >= vocab))
            rc = bal_flight_tell(self, added_tokens, err,
                                 "token '%.64s' is %lld, the base has %llu",
                                 token, (long long)number, (ull)vocab);
    }
    return rc;
}
