/* SHA-256 (FIPS 180-4), for what others check: statements, the log, key ids.
 * Our own ids are BLAKE3 (core/hash.h). */
#ifndef CORE_SHA256_H
#define CORE_SHA256_H

#include "core/buf.h"

typedef struct bal_sha256 {
    uint8_t bytes[32];
} bal_sha256;

/* Of the parts, one behind the other. EIO: the library refuses. */
BAL_CHECK int bal_sha256_of(bal_sha256 *out, const bal_bytes *parts,
                            size_t count, bal_error *err);
/* 64 hex digits and a NUL. */
void bal_sha256_hex(char out[65], const bal_sha256 *self);
/* EINVAL unless hex is exactly 64 lower-case hex digits. */
BAL_CHECK int bal_sha256_parse(bal_sha256 *out, const char *hex,
                               bal_error *err);
bool bal_sha256_equal(const bal_sha256 *a, const bal_sha256 *b);

#endif
