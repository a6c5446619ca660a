/* The directories that names pass through, each once, those above before those
 * below: "", "acme", "acme/3" of "acme/3/3f0a…". They are prefixes of the
 * names, which must outlive them; "" is the backend's own directory. */
#ifndef BLOCKS_DIRS_H
#define BLOCKS_DIRS_H

#include "blocks/file.h"
#include "core/map.h"

typedef struct bal_dirs {
    bal_map seen;
    bal_buf list; /* of bal_bytes */
} bal_dirs;

/* Every directory of one more name. */
BAL_CHECK int bal_dirs_add(bal_dirs *self, const char *name, bal_error *err);
size_t bal_dirs_count(const bal_dirs *self);
/* "<dir>/<the i-th>", in place of what `out` held. */
BAL_CHECK int bal_dirs_path(const bal_dirs *self, size_t i,
                            const file_backend *backend, bal_buf *out,
                            bal_error *err);
void bal_dirs_done(bal_dirs *self);

#endif
