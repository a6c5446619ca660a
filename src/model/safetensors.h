/* The safetensors header: read strictly, written as the reference writes it.
 *
 * Policy (stricter than the reference parser, which lets two readers see
 * different weights under one hash): duplicate keys at any level, positional
 * and enum forms, unknown keys in a tensor's info, null __metadata__, empty
 * names, and U+0000 in names or metadata are refused, as are holes, overlaps
 * and trailing bytes. Limits: header 100,000,000 bytes, 2^20 tensors, names of
 * 4096 bytes, rank BAL_MAX_RANK. */
#ifndef MODEL_SAFETENSORS_H
#define MODEL_SAFETENSORS_H

#include "core/file.h"
#include "model/model.h"

#define BAL_HEADER_MAX  100000000u
#define BAL_TENSORS_MAX ((size_t)1 << 20)

typedef struct bal_str_pair {
    const char *key, *value;
} bal_str_pair;

typedef struct bal_st_tensor {
    const char *name;
    bal_dtype dtype;
    uint32_t rank;
    const uint64_t *shape;
    uint64_t begin, end; /* in the data, which starts behind the header */
} bal_st_tensor;

typedef struct bal_st_header {
    bal_st_tensor *tensors; /* by begin, then end, then name */
    size_t count;
    bal_str_pair *metadata; /* __metadata__, in file order */
    size_t metadata_count;
    uint64_t data_size;
    bal_arena arena;
} bal_st_header;

/* json: the header without its length. data_size: bytes behind it in the file;
 * UINT64_MAX: not known, not compared. `what` names the file in messages.
 * ECORRUPT names the byte, the tensor and the rule. */
BAL_CHECK int bal_st_parse(bal_st_header *out, bal_bytes json,
                           uint64_t data_size, const char *what,
                           bal_error *err);
void bal_st_header_done(bal_st_header *self);

/* Check the first bytes of a file of `size` and give the header's length.
 * ECORRUPT: not safetensors, and called what it is instead: git-lfs pointer,
 * pickle, zip (PyTorch), HTML, GGUF, NUL padding, too short, too long. */
BAL_CHECK int bal_st_length(uint64_t *out, const void *head, size_t len,
                            uint64_t size, const char *what, bal_error *err);

/* Append the header JSON (no length) for tensors in the order given, offsets
 * consecutive, __metadata__ first, space-padded to a multiple of 8. */
BAL_CHECK int bal_st_write(bal_buf *to, const bal_tensor *const *tensors,
                           size_t count, const bal_str_pair *metadata,
                           size_t metadata_count, bal_error *err);

#endif
