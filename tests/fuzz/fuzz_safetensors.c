/* A safetensors file: its first bytes, then its header. What is taken is
 * written again by us and read back, and must be the same tensors in the same
 * places. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "model/safetensors.h"
#include "support/fuzz.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

static bal_tensor tensor_of(const bal_st_tensor *from)
{
    return (bal_tensor){
        .name = from->name,
        .dtype = from->dtype,
        .rank = from->rank,
        .shape = from->shape,
        .size = from->end - from->begin,
    };
}

static void compare(const bal_st_header *a, const bal_st_header *b)
{
    must(a->count == b->count && a->data_size == b->data_size);
    must(a->metadata_count == b->metadata_count);
    for (size_t i = 0; i < a->metadata_count; i++) {
        must(!strcmp(a->metadata[i].key, b->metadata[i].key));
        must(!strcmp(a->metadata[i].value, b->metadata[i].value));
    }
    for (size_t i = 0; i < a->count; i++) {
        const bal_st_tensor *left = &a->tensors[i];
        const bal_st_tensor *right = &b->tensors[i];
        must(!strcmp(left->name, right->name));
        must(left->dtype == right->dtype && left->rank == right->rank);
        must(left->begin == right->begin && left->end == right->end);
        must(!left->rank ||
             !memcmp(left->shape, right->shape, left->rank * sizeof(uint64_t)));
    }
}

static void write_again(const bal_st_header *header)
{
    BAL_LOCAL(bal_buf) json = { 0 };
    BAL_LOCAL(bal_st_header) again = { 0 };
    bal_tensor *tensors = calloc(header->count + 1, sizeof(*tensors));
    const bal_tensor **list = calloc(header->count + 1, sizeof(*list));

    must(tensors && list);
    for (size_t i = 0; i < header->count; i++) {
        tensors[i] = tensor_of(&header->tensors[i]);
        list[i] = &tensors[i];
    }
    must(!bal_st_write(&json, list, header->count, header->metadata,
                       header->metadata_count, NULL));
    bal_bytes bytes = { json.data, json.len };
    must(!bal_st_parse(&again, bytes, header->data_size, "again", NULL));
    compare(header, &again);
    free(tensors);
    free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_LOCAL(bal_st_header) header = { 0 };
    bal_error err = { 0 };
    uint64_t length = 0;

    if (bal_st_length(&length, data, bal_min(size, 256), size, "f", &err))
        return 0;
    must(length <= size - 8);
    bal_bytes json = { data + 8, (size_t)length };
    if (bal_st_parse(&header, json, size - 8 - length, "f", &err)) {
        must(err.code == BAL_ECORRUPT && err.text[0]);
        return 0;
    }
    write_again(&header);
    return 0;
}
