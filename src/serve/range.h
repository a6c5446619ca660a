/* Conditions and ranges of RFC 9110: pure functions of the fields' texts. */
#ifndef SERVE_RANGE_H
#define SERVE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum bal_range_kind {
    BAL_RANGE_WHOLE, /* none, several, or none that is understood: all of it */
    BAL_RANGE_PART,
    BAL_RANGE_NOWHERE, /* nothing of it is there: 416 */
} bal_range_kind;

/* Of "bytes=a-b", "bytes=a-" or "bytes=-n" (NULL: none) of what has size
 * bytes. *offset and *length are set for WHOLE and PART. */
bal_range_kind bal_range_of(const char *text, uint64_t size, uint64_t *offset,
                            uint64_t *length);
/* Does a field If-None-Match or If-Match (NULL: no) name the tag, which is
 * quoted? "*" names every one; W/ is passed over where weak is allowed. */
bool bal_etag_named(const char *field, const char *tag, bool weak);

#endif
