/* What a request asks for, before anything acts on it: the path in segments and
 * the query in fields, decoded strictly and each once. */
#ifndef SERVE_URI_H
#define SERVE_URI_H

#include "serve/request.h"

#define BAL_URI_LONGEST  16384 /* bytes, as it stands in the request */
#define BAL_URI_SEGMENTS 16
#define BAL_URI_FIELDS   64

typedef struct bal_uri {
    const char *segments[BAL_URI_SEGMENTS]; /* decoded */
    size_t segment_count;
    bool nowhere; /* it can match no route: "." or "..", a '/' in a segment, or
                     more segments than any has */
    bal_field *query;
    size_t query_count;
} bal_uri;

/* Of "/path?query", or the same behind "http://host". EINVAL: too long, not a
 * path, a control character, a space, an escape that is none, what decodes to
 * NUL or to other than UTF-8, a query field twice, more fields than
 * BAL_URI_FIELDS. '+' is a space in the query. */
BAL_CHECK int bal_uri_parse(bal_uri *out, const char *text, size_t len,
                            bal_arena *arena, bal_error *err);

#endif
