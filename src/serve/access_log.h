/* One line a request on stderr. */
#ifndef SERVE_ACCESS_LOG_H
#define SERVE_ACCESS_LOG_H

#include "ballast.h"

typedef enum bal_log_kind {
    BAL_LOG_TEXT,
    BAL_LOG_JSON,
    BAL_LOG_OFF,
} bal_log_kind;

typedef struct bal_log_line {
    int64_t at;
    const char *method, *path, *peer;
    int status;
    uint64_t bytes;
    double seconds;
    size_t token; /* its number; 0: none */
} bal_log_line;

/* NULL: text. EINVAL: not json, text or off. */
BAL_CHECK int bal_log_kind_of(bal_log_kind *out, const char *text,
                              bal_error *err);
/* One write; where that fails the line is lost. */
void bal_log_write(bal_log_kind kind, const bal_log_line *line);

#endif
