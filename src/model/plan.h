/* How a model is laid out in files when it is written: which safetensors files,
 * their headers, the order of the tensors in each. The rules are the opening
 * comment of write.c. */
#ifndef MODEL_PLAN_H
#define MODEL_PLAN_H

#include "model/safetensors.h"

typedef struct bal_plan_file {
    const char *name;
    size_t *entries; /* of the model, by where they lie */
    size_t count, room;
    bal_str_pair *metadata;
    size_t metadata_count;
    bal_buf json;  /* the header, without its length */
    bool recorded; /* what was recorded for it fits what it holds */
} bal_plan_file;

typedef struct bal_plan {
    bal_plan_file *files;
    size_t count;
    bal_buf index;   /* a new index, empty: none */
    bool drop_index; /* the recorded index is not to be written */
    bal_arena arena;
} bal_plan;

enum bal_plan_flags {
    BAL_PLAN_ONE = 1 << 16, /* one file, whatever was recorded */
};

/* flags: bal_write_flags, and these. ECORRUPT: a recorded header that cannot be
 * read. */
BAL_CHECK int bal_plan_make(bal_plan *out, bal_model *model, unsigned flags,
                            bal_error *err);
void bal_plan_done(bal_plan *self);

#endif
