/* The header as the reference writes it: compact, __metadata__ first, padded
 * with spaces so that the data begins at a multiple of 8. */
#include "core/arith.h"
#include "core/error.h"
#include "core/json.h"
#include "model/safetensors.h"

static void write_metadata(bal_json *json, const bal_str_pair *metadata,
                           size_t count)
{
    bal_json_key(json, "__metadata__");
    bal_json_object(json);
    for (size_t i = 0; i < count; i++) {
        bal_json_key(json, metadata[i].key);
        bal_json_string(json, metadata[i].value);
    }
    bal_json_close(json);
}

static void write_tensor(bal_json *json, const bal_tensor *tensor,
                         uint64_t begin, uint64_t end)
{
    bal_json_key(json, tensor->name);
    bal_json_object(json);
    bal_json_key(json, "dtype");
    bal_json_string(json, bal_dtype_name(tensor->dtype));
    bal_json_key(json, "shape");
    bal_json_array(json);
    for (uint32_t i = 0; i < tensor->rank; i++)
        bal_json_u64(json, tensor->shape[i]);
    bal_json_close(json);
    bal_json_key(json, "data_offsets");
    bal_json_array(json);
    bal_json_u64(json, begin);
    bal_json_u64(json, end);
    bal_json_close(json);
    bal_json_close(json);
}

int bal_st_write(bal_buf *to, const bal_tensor *const *tensors, size_t count,
                 const bal_str_pair *metadata, size_t metadata_count,
                 bal_error *err)
{
    static const char spaces[8] = "        ";
    size_t start = to->len;
    uint64_t begin = 0;
    bal_json json;

    bal_json_begin(&json, to, 0);
    bal_json_object(&json);
    if (metadata_count)
        write_metadata(&json, metadata, metadata_count);
    for (size_t i = 0; i < count; i++) {
        uint64_t end = 0;
        if (!bal_add(&end, begin, tensors[i]->size))
            return bal_fail(err, BAL_EINVAL, "tensors of more than 2^64 bytes");
        write_tensor(&json, tensors[i], begin, end);
        begin = end;
    }
    bal_json_close(&json);
    int rc = bal_json_end(&json, err);
    if (rc)
        return rc;

    size_t len = to->len - start;
    if (len > BAL_HEADER_MAX - 7)
        return bal_fail(err, BAL_EINVAL,
                        "a safetensors header of %zu bytes, over %u", len,
                        BAL_HEADER_MAX);
    return bal_buf_append(to, spaces, (8 - len % 8) % 8, err);
}
