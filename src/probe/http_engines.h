/* The table of engines, and finding out which one answers. */
#ifndef PROBE_HTTP_ENGINES_H
#define PROBE_HTTP_ENGINES_H

#include "probe/http_server.h"

/* By owned_by in the list of models, else by what it answers. models: the
 * answer of GET /v1/models. Sets engine and version; *root: where the model was
 * read from, NULL: not told. */
BAL_CHECK int bal_server_engine(bal_server *self, const char **root,
                                const json_t *models, bal_error *err);

#endif
