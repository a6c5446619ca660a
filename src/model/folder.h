/* A model whose bytes lie in files: what bal_model_from_path builds up and
 * gives out. */
#ifndef MODEL_FOLDER_H
#define MODEL_FOLDER_H

#include "core/file.h"
#include "model/model.h"

/* A file that entries are in. The first some hundred weights files stay open;
 * all others are opened for each read, so that no folder runs us out of
 * descriptors. */
typedef struct bal_source {
    const char *name; /* below the folder */
    const char *path;
    uint64_t size, stamp; /* as first seen */
    bal_file *file;       /* NULL: opened for each read */
} bal_source;

typedef struct bal_spot {
    size_t source;
    uint64_t offset; /* of the entry's first byte in the file */
} bal_spot;

typedef struct bal_folder {
    bal_model base;
    bal_source *sources;
    size_t source_count, source_room;
    bal_spot *spots; /* by tag */
    size_t spot_count, spot_room;
} bal_folder;

/* Empty; to be freed with bal_model_free(&self->base). NULL: no memory. */
bal_folder *bal_folder_new(void);
/* The tensors of a safetensors file and its header, as entries. name: of the
 * header's entry. ECORRUPT names the file, or both files that have a tensor. */
BAL_CHECK int bal_folder_weights(bal_folder *self, const char *path,
                                 const char *name, bal_error *err);
/* A side file, as an entry. */
BAL_CHECK int bal_folder_side(bal_folder *self, const char *path,
                              const char *name, bal_error *err);
/* The file that entry i is in, by its name below the folder. */
const char *bal_folder_file_of(const bal_folder *self, size_t i);

#endif
