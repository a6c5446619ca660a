/* Specs of other tenants: what is granted is there, all else is not. */
#ifndef STORE_RESOLVE_H
#define STORE_RESOLVE_H

#include "merge/merge.h"
#include "store/store.h"

/* A spec among what the tenant named `name` has granted to viewer: a full id, a
 * ref or a prefix of a granted commit, then ~N and ^ as long as each step is
 * granted, too. *owner: a handle of that tenant. Whatever is wrong is ENOTFOUND
 * "no ref or commit 'SPEC' in tenant 'NAME'", by the same queries: whether
 * there is something that may not be read cannot be told. */
BAL_CHECK int bal_resolve_granted(bal_id *out, bal_tenant *owner,
                                  const bal_tenant *viewer, const char *name,
                                  const char *spec, bal_error *err);

/* "[tenant:]spec[@weight][,name=value]…" as a recipe's input, its commit looked
 * up: of another tenant what was granted. out->parameters is the caller's. */
BAL_CHECK int bal_input_resolve(bal_input *out, bal_tenant *tenant,
                                const char *text, bal_error *err);

#endif
