/* DSSE envelopes (secure-systems-lab, v1.0): a payload with its type, signed
 * over the pre-authentication encoding, so that neither can be taken for
 * another. */
#ifndef CORE_DSSE_H
#define CORE_DSSE_H

#include "core/key.h"

typedef struct bal_dsse_signature {
    const char *keyid; /* what it says of itself: a hint, never trusted */
    bal_bytes bytes;
} bal_dsse_signature;

#define BAL_DSSE_SIGNATURES 16

typedef struct bal_dsse {
    const char *type;
    bal_bytes payload;
    bal_dsse_signature signatures[BAL_DSSE_SIGNATURES];
    size_t count; /* 0: nobody signed it */
    bal_arena arena;
} bal_dsse;

/* Append "DSSEv1 <len> <type> <len> <payload>". */
BAL_CHECK int bal_dsse_pae(bal_buf *to, const char *type, bal_bytes payload,
                           bal_error *err);
/* Append the envelope as compact JSON: {"payload","payloadType","signatures"},
 * members in this order. key NULL: no signatures. */
BAL_CHECK int bal_dsse_write(bal_buf *to, const char *type, bal_bytes payload,
                             const bal_key *key, bal_error *err);
/* ECORRUPT: not an envelope; members that are there twice or are missing, bad
 * base64, more signatures than BAL_DSSE_SIGNATURES. Other members are passed
 * over, as the specification asks. */
BAL_CHECK int bal_dsse_read(bal_dsse *out, bal_bytes text, bal_error *err);
void bal_dsse_done(bal_dsse *self);
/* *good: one of the signatures is the key's, whatever keyid it carries. */
BAL_CHECK int bal_dsse_verify(const bal_dsse *self, const bal_key *key,
                              bool *good, bal_error *err);

#endif
