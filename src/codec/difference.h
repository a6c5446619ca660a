/* Inside codec/ only: a difference of two tensors as what it is a difference
 * of. */
#ifndef CODEC_DIFFERENCE_H
#define CODEC_DIFFERENCE_H

#include "codec/coder.h"
#include "codec/numbers.h"

/* Bytes of a patch: u32 where, then the element. */
#define BAL_PATCH_HEAD 4

/* Elements tuned of a kind such that tuned - base, rounded once, is each of n
 * differences, bit for bit, but for the patches. */
typedef struct bal_recovered {
    uint8_t *tuned;
    bal_buf patches;
    uint32_t patch_count;
    bool hopeless; /* most would be patches; the rest was not looked at */
} bal_recovered;

void bal_recovered_done(bal_recovered *self);
/* tuned is in a room of the coder's. */
BAL_CHECK int bal_recover(bal_coder *coder, bal_recovered *out,
                          const void *differences, const void *base, size_t n,
                          const bal_number_row *kind, bal_error *err);
/* n differences again. */
void bal_differ(void *to, const void *tuned, const void *base, size_t n,
                const bal_number_row *kind);
/* Put count patches in their places. ECORRUPT: not in order, or not inside. */
BAL_CHECK int bal_patch(void *to, size_t n, size_t wide, const uint8_t *patches,
                        size_t count, bal_error *err);

#endif
