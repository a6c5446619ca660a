/* What the parts of ballast wdelta share. */
#ifndef CLI_WDELTA_H
#define CLI_WDELTA_H

#include "cli/commands.h"

typedef struct bal_wdelta_opts {
    const char *base, *out, *strategy;
    bal_opt_f64 outlier_fraction, sparsity, max_error;
    bal_opt_list parents;
    bool quality, force;
} bal_wdelta_opts;

/* Files that are open, in an order. */
typedef struct bal_wdelta_files {
    bal_wdelta **at;
    size_t count;
} bal_wdelta_files;

BAL_CHECK int bal_wdelta_files_open(bal_wdelta_files *out,
                                    const char *const *paths, size_t count,
                                    bal_error *err);
void bal_wdelta_files_done(bal_wdelta_files *self);

BAL_CHECK int bal_cli_wdelta_save(bal_cli *cli, const bal_wdelta_opts *given,
                                  bal_error *err);
BAL_CHECK int bal_cli_wdelta_inspect(bal_cli *cli, const bal_wdelta_opts *given,
                                     bal_error *err);

#endif
