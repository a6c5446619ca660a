/* A view's recipe as mergekit's configuration. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"
#include "merge/mergekit.h"
#include "store/manifest.h"
#include "store/mergekit_names.h"
#include "store/resolve.h"
#include "store/verified.h"

/* What commits are called there. */
typedef struct names {
    const char *const *map;
    size_t count;
    bal_input *inputs; /* by the map's entries */
    char text[65 + 1 + BAL_ID_HEX + 1];
    char *named;
} names;

static void names_done(names *self)
{
    free(self->inputs);
    bal_str_free(self->named);
}

static int names_init(names *self, bal_tenant *tenant, bal_error *err)
{
    int rc = bal_mergekit_map_check(self->map, self->count, err);
    if (rc)
        return rc;
    self->inputs = calloc(self->count + 1, sizeof(*self->inputs));
    if (!self->inputs)
        return bal_fail_memory(err, "an export");
    for (size_t i = 0; i < self->count; i++) {
        const char *spec = strrchr(self->map[i], '=') + 1;
        rc = bal_input_resolve(&self->inputs[i], tenant, spec, err);
        if (rc)
            return bal_within(err, rc, "'%s'", self->map[i]);
        json_decref(self->inputs[i].parameters);
        self->inputs[i].parameters = NULL;
    }
    return 0;
}

static const char *name_of(void *ctx, const bal_input *input)
{
    names *self = ctx;
    char hex[BAL_ID_HEX + 1];

    for (size_t i = 0; i < self->count; i++) {
        const bal_input *other = &self->inputs[i];
        if (strcmp(other->tenant, input->tenant) != 0 ||
            !bal_id_equal(&other->commit, &input->commit))
            continue;
        bal_str_free(self->named);
        self->named = bal_str_copy(self->map[i]);
        if (self->named)
            *strrchr(self->named, '=') = '\0';
        return self->named;
    }
    bal_id_hex(hex, &input->commit);
    snprintf(self->text, sizeof(self->text), "%s:%s", input->tenant, hex);
    return self->text;
}

/* As it is recorded: what a commit shows of it is for people. */
static int read_recipe(bal_recipe **out, bal_tenant *tenant,
                       const bal_id *commit, bal_error *err)
{
    BAL_OWN(bal_commit) row = NULL;
    BAL_LOCAL(bal_buf) kind = { 0 };
    BAL_LOCAL(bal_buf) body = { 0 };
    BAL_OWN(json_t) json = NULL;
    char hex[BAL_ID_HEX + 1];
    int rc = bal_commit_open(&row, tenant, commit, err);
    if (!rc)
        rc = bal_manifest_get(&kind, &body, tenant,
                              &bal_commit_info_of(row)->manifest, err);
    if (rc)
        return rc;

    bal_id_hex(hex, commit);
    if (strcmp(bal_buf_string(&kind), bal_kind_name(BAL_KIND_VIEW)) != 0)
        return bal_fail(err, BAL_EINVAL, "commit '%.12s' is not a view", hex);
    rc = bal_view_read(&json, (bal_bytes){ body.data, body.len }, err);
    return rc ? rc : bal_recipe_parse(out, json, err);
}

int bal_export_mergekit(char **out, bal_tenant *tenant, const bal_id *commit,
                        const char *const *map, size_t map_count,
                        bal_error *err)
{
    BAL_LOCAL(names) called = { .map = map, .count = map_count };
    BAL_OWN(bal_recipe) recipe = NULL;
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc = names_init(&called, tenant, err);
    if (!rc)
        rc = read_recipe(&recipe, tenant, commit, err);
    if (!rc)
        rc = bal_mergekit_write(&text, recipe, name_of, &called, err);
    if (rc)
        return rc;
    *out = bal_str_copy(bal_buf_string(&text));
    return *out ? 0 : bal_fail_memory(err, "an export");
}
