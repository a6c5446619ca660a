/* The body of POST merges, read strictly: every member known, of its type. */
#ifndef SERVE_MERGE_BODY_H
#define SERVE_MERGE_BODY_H

#include "core/json.h"
#include "serve/request.h"

typedef struct bal_merge_body {
    json_t *root;
    json_t *inputs;     /* of objects, each with a "spec"; one at least */
    json_t *parameters; /* NULL: none */
    const char *base;   /* NULL: none */
    const char *method, *message, *ref;
    const json_t *seed; /* an integer; NULL: none */
    bool strict;
} bal_merge_body;

void bal_merge_body_done(bal_merge_body *self);
/* EINVAL names the member. */
BAL_CHECK int bal_merge_body_read(bal_merge_body *out, bal_bytes text,
                                  bal_error *err);
/* Into a recipe of the method. */
BAL_CHECK int bal_merge_body_fill(bal_recipe *to, const bal_merge_body *self,
                                  bal_tenant *tenant, bal_error *err);

#endif
