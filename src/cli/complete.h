/* What completion scripts share: which kind of thing a value is. */
#ifndef CLI_COMPLETE_H
#define CLI_COMPLETE_H

#include "cli/cli.h"

typedef enum bal_value_kind {
    BAL_VALUE_TEXT, /* anything */
    BAL_VALUE_DIR,
    BAL_VALUE_FILE,
    BAL_VALUE_REF,
    BAL_VALUE_MODEL, /* a path or a ref */
    BAL_VALUE_WORDS, /* one of a few */
    BAL_VALUE_KINDS,
} bal_value_kind;

/* By what stands for the value in help; for WORDS they are appended to words,
 * with a space between. */
BAL_CHECK int bal_value_kind_of(bal_value_kind *out, bal_buf *words,
                                const char *value, bal_error *err);

/* A script being written: the first failure is kept. */
typedef struct bal_script {
    bal_buf *to;
    int rc;
    bal_error *err;
} bal_script;

void bal_script_put(bal_script *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Text in which each character of special gets a backslash, and a ' becomes
 * '\'' (it stands in single quotes). */
void bal_script_quoted(bal_script *self, const char *text, const char *special);

int bal_complete_bash(bal_buf *to, bal_error *err);
int bal_complete_zsh(bal_buf *to, bal_error *err);
int bal_complete_fish(bal_buf *to, bal_error *err);

#endif
