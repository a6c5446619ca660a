/* base + (tuned - base) is tuned again, nearly always. Where it is not, another
 * number may do, if its difference is the same; what is left is patched. */
#include "codec/difference.h"

#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"

enum { STEP = 1024 };

void bal_recovered_done(bal_recovered *self)
{
    bal_buf_done(&self->patches);
}

void bal_differ(void *to, const void *tuned, const void *base, size_t n,
                const bal_number_row *kind)
{
    const bal_kernels *kernels = bal_kernels_use();

    if (kind->dtype == BAL_F64)
        kernels->sub_f64(to, tuned, base, n);
    else
        kernels->diff[kind->dtype](to, tuned, base, n);
}

static void add(void *to, const void *base, const void *differences, size_t n,
                const bal_number_row *kind)
{
    const bal_kernels *kernels = bal_kernels_use();

    if (kind->dtype == BAL_F64)
        kernels->add_f64(to, base, differences, n);
    else
        kernels->sum[kind->dtype](to, base, differences, n);
}

/* Where the difference of `tuned` is another one: the base takes its place, and
 * what it should be is a patch. */
static int add_patch(bal_recovered *out, size_t i, const uint8_t *want,
                     const void *base, const bal_number_row *kind,
                     bal_error *err)
{
    uint8_t where[BAL_PATCH_HEAD];

    bal_put32(where, (uint32_t)i);
    int rc = bal_buf_append(&out->patches, where, sizeof(where), err);
    if (rc)
        return rc;
    memcpy(out->tuned + i * kind->width,
           (const uint8_t *)base + i * kind->width, kind->width);
    out->patch_count++;
    return bal_buf_append(&out->patches, want, kind->wide, err);
}

int bal_recover(bal_coder *coder, bal_recovered *out, const void *differences,
                const void *base, size_t n, const bal_number_row *kind,
                bal_error *err)
{
    uint64_t again[STEP];
    const uint8_t *from = differences;
    int rc = 0;

    out->tuned = bal_coder_room(coder, BAL_ROOM_TUNED, n * kind->width);
    if (!out->tuned)
        return bal_fail_memory(err, "a tuned block");
    for (size_t at = 0; at < n && !rc; at += STEP) {
        size_t many = n - at < STEP ? n - at : STEP;
        const uint8_t *near = (const uint8_t *)base + at * kind->width;
        const uint8_t *want = from + at * kind->wide;
        uint8_t *tuned = out->tuned + at * kind->width;
        add(tuned, near, want, many, kind);
        bal_differ(again, tuned, near, many, kind);
        if (!memcmp(again, want, many * kind->wide))
            continue;
        out->hopeless = out->patches.len > n * kind->wide / 4;
        if (out->hopeless)
            return 0;
        for (size_t i = 0; i < many && !rc; i++) {
            const uint8_t *is = (const uint8_t *)again + i * kind->wide;
            if (memcmp(is, want + i * kind->wide, kind->wide) != 0)
                rc = add_patch(out, at + i, want + i * kind->wide, base, kind,
                               err);
        }
    }
    return rc;
}

int bal_patch(void *to, size_t n, size_t wide, const uint8_t *patches,
              size_t count, bal_error *err)
{
    uint64_t least = 0;

    for (size_t i = 0; i < count; i++, patches += BAL_PATCH_HEAD + wide) {
        uint64_t at = bal_get32(patches);
        if (at < least || at >= n)
            return bal_fail(err, BAL_ECORRUPT, "patch %zu has no place", i);
        memcpy((uint8_t *)to + at * wide, patches + BAL_PATCH_HEAD, wide);
        least = at + 1;
    }
    return 0;
}
