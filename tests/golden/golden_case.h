/* One case of tests/golden/mergekit: a merge of one tensor, run as a view. */
#ifndef GOLDEN_CASE_H
#define GOLDEN_CASE_H

#include <jansson.h>

#include "core/buf.h"
#include "merge/merge.h"

enum { GOLDEN_INPUTS = 8 };

/* A tensor as the files hold it: base64, little endian. */
typedef struct golden_tensor {
    bal_dtype dtype;
    uint32_t rank;
    uint64_t shape[8];
    bal_buf bytes;
} golden_tensor;

/* What came of a merge. */
typedef struct golden_result {
    int rc; /* of the first step that failed; its text is in err */
    bal_error err;
    golden_tensor tensor;
} golden_result;

/* A file of cases; NULL, with a message, if it cannot be read. */
json_t *golden_load(const char *name);
/* False: not as described in README.md there. */
bool golden_tensor_read(golden_tensor *out, const json_t *json);
void golden_tensor_done(golden_tensor *self);

/* The inputs of a case, count of them in `order`. */
typedef struct golden_inputs {
    bal_model *models[GOLDEN_INPUTS];
    size_t count;
} golden_inputs;

/* One more whole model of one tensor. */
void golden_inputs_add(golden_inputs *self, const char *name,
                       const golden_tensor *tensor);
void golden_inputs_done(golden_inputs *self);

/* The view of a case, in weights space, and one of its tensors: read whole, and
 * from some place on, which must give the same bytes. */
int golden_open(bal_model **out, const json_t *one, const golden_inputs *inputs,
                bool mergekit, bal_error *err);
int golden_read(golden_tensor *out, bal_model *view, const char *name,
                bal_error *err);
/* Both, of a case of one tensor. */
void golden_run(golden_result *out, const json_t *one,
                const golden_inputs *inputs, bool mergekit);

#endif
