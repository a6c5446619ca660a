/* Changes compared as the models that they make of one base. */
#ifndef CLI_BASED_H
#define CLI_BASED_H

#include "cli/cli.h"

/* The two models that are compared, as the program's arguments name them.
 * base NULL: one by each of two. Else it names what each of them that is a
 * delta or an adapter is put onto (ECORRUPT: a delta is of another base), and
 * with one argument the base is the first model itself. */
BAL_CHECK int bal_cli_both(bal_named *a, bal_named *b, bal_cli *cli,
                           const char *base, bal_error *err);

#endif
