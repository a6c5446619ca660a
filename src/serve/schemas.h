/* What bodies are: for the OpenAPI document, and as people read it. */
#ifndef SERVE_SCHEMAS_H
#define SERVE_SCHEMAS_H

#include "serve/routes.h"

typedef struct bal_schema {
    const char *name;
    const char *type;   /* media type */
    const char *shape;  /* for docs/http.md */
    const char *schema; /* JSON Schema, compact */
} bal_schema;

extern const bal_schema bal_schemas[];
extern const size_t bal_schema_count;

/* There is one for each schema that a route names. */
const bal_schema *bal_schema_find(const char *name);
/* The schema of a query parameter, compact JSON. */
const char *bal_query_schema(const bal_route_query *query);

#endif
