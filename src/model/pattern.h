/* Regular expressions of strangers, with limits: a hostile one is an error and
 * never a hang. PCRE2, 8 bits, UTF-8; Python's syntax as far as the two agree,
 * which is what adapter configs use. */
#ifndef MODEL_PATTERN_H
#define MODEL_PATTERN_H

#include "ballast.h"

#include "core/own.h"

typedef struct bal_pattern bal_pattern;

/* EINVAL: not a regular expression, or longer than 4096 bytes. */
BAL_CHECK int bal_pattern_new(bal_pattern **out, const char *regex,
                              bal_error *err);
/* *yes: the pattern matches text from its start (as Python's re.match). EINVAL:
 * it takes too many steps. */
BAL_CHECK int bal_pattern_match(const bal_pattern *self, const char *text,
                                bool *yes, bal_error *err);
/* The same, anywhere in text (as Python's re.search). */
BAL_CHECK int bal_pattern_find(const bal_pattern *self, const char *text,
                               bool *yes, bal_error *err);
void bal_pattern_free(bal_pattern *self);
BAL_OWNABLE(bal_pattern)

#endif
