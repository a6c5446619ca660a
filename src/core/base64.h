/* Base64 (RFC 4648), padded. */
#ifndef CORE_BASE64_H
#define CORE_BASE64_H

#include "core/buf.h"

/* Append the text of data, standard alphabet. */
BAL_CHECK int bal_base64_encode(bal_buf *to, const void *data, size_t len,
                                bal_error *err);
/* Append what text stands for; the standard or the URL-safe alphabet, one of
 * them. ECORRUPT: another character, padding missing or too much, bits set that
 * no byte has (so that one value has one text). */
BAL_CHECK int bal_base64_decode(bal_buf *to, const char *text, size_t len,
                                bal_error *err);

#endif
