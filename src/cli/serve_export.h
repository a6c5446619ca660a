/* What 'ballast serve-export' did, and telling it. */
#ifndef CLI_SERVE_EXPORT_H
#define CLI_SERVE_EXPORT_H

#include "cli/cli.h"

/* One spec, and what came of it. Texts in the arena. */
typedef struct bal_export_asked {
    const char *spec;
    const char *why; /* it was skipped; NULL: it was not */
    int code;        /* of why */
    bool done;
    bal_exported_info info;
} bal_export_asked;

typedef struct bal_export_list {
    bal_export_asked *rows;
    size_t count;
    bal_buf pruned; /* of const char *, paths */
} bal_export_list;

void bal_cli_exports_text(bal_cli *cli, const bal_export_list *self);
void bal_cli_exports_json(bal_cli *cli, const bal_export_list *self);
/* A JSON array of what was exported, whole or not at all; folders above it are
 * made. */
BAL_CHECK int bal_cli_exports_manifest(bal_cli *cli,
                                       const bal_export_list *self,
                                       const char *file, bal_error *err);

#endif
