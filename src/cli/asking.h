/* Options of commands that ask a model: who answers, and how. */
#ifndef CLI_ASKING_H
#define CLI_ASKING_H

#include "cli/cli.h"

/* The first member of the command's options. */
typedef struct bal_asking {
    const char *runner, *command, *url, *model, *base;
    bal_opt_f64 timeout;
    bal_opt_u64 max_tokens, repeat, top, parallel;
    bool stream;
} bal_asking;

/* bal_opt_more_fn: the rows, with offsets from the start of bal_asking. */
bool bal_asking_opt(bal_opt *out, size_t i);
/* The library's options; base is opened where it is no folder, and must stay.
 * EINVAL: no runner is named and none follows from what is. */
BAL_CHECK int bal_asking_fill(bal_ask_options *out, bal_named *base,
                              bal_cli *cli, const bal_asking *given,
                              bal_error *err);
/* A file of probes. What it has that is not used is told on stderr. */
typedef struct bal_asking_file {
    const char *path;
    const char *pattern; /* NULL: see bal_probes_options */
    bool escapes;
} bal_asking_file;
BAL_CHECK int bal_asking_probes(bal_probes **out, bal_cli *cli,
                                const bal_asking_file *file, bal_error *err);

#endif
