/* Files out of a model's entries, into a folder that nobody reads yet. */
#ifndef MODEL_PUT_H
#define MODEL_PUT_H

#include "model/model.h"

typedef struct bal_put_file {
    const char *path;      /* below the folder, '/' between */
    bal_bytes head[2];     /* what stands before the entries */
    const size_t *entries; /* their bytes, one behind the other */
    size_t count;
} bal_put_file;

/* Writes and syncs them, and every directory that they are in. In pieces of
 * BAL_TILE by all threads; no file may be there yet. */
BAL_CHECK int bal_put_files(const char *dir, const bal_put_file *files,
                            size_t count, bal_model *model, bal_work *work,
                            bal_error *err);

#endif
