/* Which file a tensor is in, a model does not tell; the headers that come along
 * with its entries do. */
#include "wdelta/order.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "model/safetensors.h"

enum { NO_FILE = 0 };

/* files[i]: of entry i, 1 and up; NO_FILE: no header has it. */
static int note_header(size_t *files, size_t number, bal_model *base, size_t i,
                       bal_error *err)
{
    BAL_LOCAL(bal_st_header) header = { 0 };
    const bal_tensor *entry = bal_model_at(base, i);
    BAL_LOCAL(bal_buf) json = { 0 };

    if (entry->size > BAL_HEADER_MAX)
        return 0;
    int rc = bal_buf_reserve(&json, (size_t)entry->size, err);
    if (!rc)
        rc = bal_model_read(base, i, 0, json.data, (size_t)entry->size, err);
    if (rc)
        return rc;
    bal_bytes text = { json.data, (size_t)entry->size };
    rc = bal_st_parse(&header, text, UINT64_MAX, entry->name, NULL);
    /* A header that cannot be read orders nothing. */
    if (rc)
        return rc == BAL_ENOMEM ? bal_fail_memory(err, "reading a header") : 0;
    for (size_t k = 0; k < header.count; k++) {
        size_t at =
            bal_model_find(base, BAL_PART_TENSOR, header.tensors[k].name);
        if (at != BAL_NONE)
            files[at] = number;
    }
    return 0;
}

static int note_headers(size_t *files, bal_model *base, size_t tensors,
                        size_t *headers, bal_error *err)
{
    int rc = 0;

    for (size_t i = tensors; i < bal_model_count(base) && !rc; i++) {
        if (bal_model_at(base, i)->part == BAL_PART_HEADER)
            rc = note_header(files, ++*headers, base, i, err);
    }
    return rc;
}

/* A counting sort: where the tensors of each file begin, files as they come. */
static int sort(size_t *order, const size_t *files, size_t count,
                size_t headers, bal_error *err)
{
    size_t *first = calloc(2 * (headers + 1), sizeof(*first));
    if (!first)
        return bal_fail_memory(err, "ordering tensors");

    size_t *sizes = first + headers + 1;
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        sizes[files[i]]++;
    for (size_t i = 0; i < count; i++) {
        size_t file = files[i];
        if (sizes[file]) {
            first[file] = at;
            at += sizes[file];
            sizes[file] = 0;
        }
        order[first[file]++] = i;
    }
    free(first);
    return 0;
}

int bal_wd_order(size_t **order, size_t *count, bal_model *base, bal_error *err)
{
    size_t tensors = 0;
    size_t headers = 0;

    while (tensors < bal_model_count(base) &&
           bal_model_at(base, tensors)->part == BAL_PART_TENSOR)
        tensors++;
    size_t *files = calloc(tensors + 1, sizeof(*files));
    size_t *sorted = calloc(tensors + 1, sizeof(*sorted));
    if (!files || !sorted) {
        free(files);
        free(sorted);
        return bal_fail_memory(err, "ordering tensors");
    }
    int rc = note_headers(files, base, tensors, &headers, err);
    if (!rc)
        rc = sort(sorted, files, tensors, headers, err);
    free(files);
    if (rc) {
        free(sorted);
        return rc;
    }
    *order = sorted;
    *count = tensors;
    return 0;
}
