/* Reads are widened to whole groups of 8 elements, which is what bal_model_read
 * asks for, and what they hold too much is left out again. */
#include "model/elements.h"

#include <assert.h>
#include <stdlib.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"

enum { GROUP = 8, PIECE = 128 * 1024 };

uint64_t bal_elements_of(const bal_tensor *tensor)
{
    uint64_t elements = 0;
    uint64_t bytes;

    if (!bal_shape_size(&elements, &bytes, tensor->dtype, tensor->shape,
                        tensor->rank))
        return 0;
    return elements;
}

int bal_elements_read(double *to, bal_model *model, size_t i, uint64_t start,
                      size_t n, bal_error *err)
{
    const bal_tensor *tensor = bal_model_at(model, i);
    size_t width = bal_dtype_bits(tensor->dtype) / 8;
    uint64_t total = tensor->size / width;
    void (*widen)(double *, const void *, size_t) =
        bal_kernels_use()->to_f64[tensor->dtype];

    assert(widen && start <= total && n <= total - start);
    size_t room = bal_min((uint64_t)n + 2 * (uint64_t)GROUP, PIECE) * width;
    uint8_t *raw = malloc(room);
    if (!raw)
        return bal_fail_memory(err, "reading a tensor");
    int rc = 0;
    while (n && !rc) {
        uint64_t low = start - start % GROUP;
        uint64_t high = bal_min(total, low + room / width / GROUP * GROUP);
        size_t got = bal_min(n, high - start);

        rc = bal_model_read(model, i, low * width, raw, (high - low) * width,
                            err);
        if (!rc)
            widen(to, raw + (start - low) * width, got);
        to += got;
        start += got;
        n -= got;
    }
    free(raw);
    return rc;
}
