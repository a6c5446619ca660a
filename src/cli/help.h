/* Texts made from the tables of commands and options. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/cli.h"

/* What is told of a code that ends a run. */
typedef struct bal_exit_row {
    int status;
    const char *word;
    const char *when;
} bal_exit_row;

extern const bal_exit_row bal_exits[]; /* ends with a row without when */

/* The sets of a command's own options (values unused), and of the globals. */
bal_opt_set bal_own_options(const bal_command *command);
bal_opt_set bal_global_options(void);
/* "-m, --message MSG", "    --normalize, --no-normalize". */
void bal_opt_usage(char out[160], const bal_opt *row);

/* ballast help, ballast help COMMAND: as text. */
void bal_help_all(bal_out *out);
void bal_help_command(bal_out *out, const bal_command *command);

/* Who writes a shell's completion script. */
typedef struct bal_shell {
    const char *name;
    int (*write)(bal_buf *to, bal_error *err);
} bal_shell;
extern const bal_shell bal_shells[]; /* ends with a row without a name */

/* A man page in roff: of the program, of a command. */
BAL_CHECK int bal_man_program(bal_buf *to, bal_error *err);
BAL_CHECK int bal_man_command(bal_buf *to, const bal_command *command,
                              bal_error *err);
/* docs/cli.md. */
BAL_CHECK int bal_docs_write(bal_buf *to, bal_error *err);
/* docs/methods.md. */
BAL_CHECK int bal_docs_methods(bal_buf *to, bal_error *err);

#endif
