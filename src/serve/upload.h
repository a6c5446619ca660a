/* Bodies that go to disk: a folder of the server's own below the store's root,
 * and one in it for each upload. */
#ifndef SERVE_UPLOAD_H
#define SERVE_UPLOAD_H

#include "ballast.h"

#include "core/own.h"

typedef struct bal_home bal_home;

/* Makes "serve.ballast-<16 hex digits>" in root, locked for the life of the
 * process, and removes what killed servers left there. */
BAL_CHECK int bal_home_make(bal_home **out, const char *root, bal_error *err);
const char *bal_home_path(const bal_home *self);
/* Removes it. */
void bal_home_free(bal_home *self);
BAL_OWNABLE(bal_home)

typedef struct bal_upload {
    char *dir;      /* NULL: none was begun */
    int fd;         /* of dir's adapter_model.safetensors; -1: closed */
    uint64_t begun; /* bytes whose writing to disk was asked for */
} bal_upload;

BAL_CHECK int bal_upload_begin(bal_upload *self, bal_home *home,
                               bal_error *err);
/* at: how many came before. */
BAL_CHECK int bal_upload_add(bal_upload *self, uint64_t at, const void *data,
                             size_t len, bal_error *err);
/* All is there. */
void bal_upload_end(bal_upload *self);
void bal_upload_done(bal_upload *self);

#endif
