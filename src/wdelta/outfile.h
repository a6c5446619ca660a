/* A large file in the making: under a temporary name beside where it will be,
 * gone unless it is published. */
#ifndef WDELTA_OUTFILE_H
#define WDELTA_OUTFILE_H

#include "core/file.h"

typedef struct bal_outfile {
    char *path;   /* the real path that it will have */
    bal_buf name; /* what it is called until then; empty: published */
    int fd;
} bal_outfile;

/* EINVAL: path is, or lies in, one of `avoid`; something else than a file is
 * there. Files ending in .wdelta may lie in a folder that is avoided. */
BAL_CHECK int bal_outfile_make(bal_outfile *out, const char *path,
                               const char *const *avoid, size_t count,
                               bal_error *err);
/* Durable, and under its final name. */
BAL_CHECK int bal_outfile_publish(bal_outfile *self, bal_error *err);
void bal_outfile_done(bal_outfile *self);

#endif
