/* model.safetensors.index.json: which tensor is in which shard. */
#ifndef MODEL_INDEX_H
#define MODEL_INDEX_H

#include "core/map.h"
#include "model/model.h"

#define BAL_INDEX_NAME "model.safetensors.index.json"
#define BAL_INDEX_MAX  ((size_t)256 << 20)

typedef struct bal_index_row {
    const char *tensor;
    const char *file;
} bal_index_row;

typedef struct bal_index {
    bal_index_row *rows; /* in the order of the file */
    size_t count;
    const char **files; /* each once, by name */
    size_t file_count;
    bool has_total, has_parameters;
    uint64_t total; /* bytes of the tensors, where has_total */
    bal_map tensors;
    bal_arena arena;
} bal_index;

/* ECORRUPT: not an object, a duplicate key, no weight_map, a name of a shard
 * that is not the plain name of a safetensors file. */
BAL_CHECK int bal_index_parse(bal_index *out, bal_bytes json, const char *what,
                              bal_error *err);
/* The shard of a tensor, NULL: not in the map. */
const char *bal_index_find(const bal_index *self, const char *tensor);
void bal_index_done(bal_index *self);

typedef struct bal_index_totals {
    bool has_parameters;
    uint64_t parameters, size;
} bal_index_totals;
/* Append the text of an index, as the reference writes it: indented by 2, rows
 * as they come, a newline at the end. */
BAL_CHECK int bal_index_write(bal_buf *to, const bal_index_row *rows,
                              size_t count, const bal_index_totals *totals,
                              bal_error *err);

/* True if name is the plain name of a safetensors file. */
bool bal_shard_name_valid(const char *name);

#endif
