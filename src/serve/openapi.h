/* The routes as an OpenAPI 3.1 document, and as docs/http.md. */
#ifndef SERVE_OPENAPI_H
#define SERVE_OPENAPI_H

#include "core/buf.h"

/* The document that GET /openapi.json gives: made once, kept. By any thread. */
BAL_CHECK int bal_openapi(bal_bytes *out, bal_error *err);
/* The same, made anew; indent 0: compact. */
BAL_CHECK int bal_openapi_write(bal_buf *to, unsigned indent, bal_error *err);
/* docs/http.md. */
BAL_CHECK int bal_docs_http(bal_buf *to, bal_error *err);

#endif
