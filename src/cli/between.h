/* Commits between the store of --root and another one. */
#ifndef CLI_BETWEEN_H
#define CLI_BETWEEN_H

#include "cli/cli.h"

struct between_opts {
    bool force;
};

extern const bal_opt bal_between_opts[];

/* The tenant's handle in another store, which has its own settings. */
typedef struct bal_other {
    bal_store *store;
    bal_tenant *tenant;
} bal_other;

void bal_other_done(bal_other *self);
/* The store at root, with cli's threads and cli's tenant; the tenant of --root
 * is open. With BAL_OPEN_CREATE one that is not there is made, to be like that
 * of --root. */
BAL_CHECK int bal_other_open(bal_other *out, bal_cli *cli, const char *root,
                             unsigned flags, bal_error *err);
/* Transfer what the arguments behind the first name, and tell of it. */
BAL_CHECK int bal_between(bal_cli *cli, bal_tenant *from, bal_tenant *to,
                          const struct between_opts *given, bal_error *err);

#endif
