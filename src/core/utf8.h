/* One character of UTF-8 at a time. */
#ifndef CORE_UTF8_H
#define CORE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The code point at the front of text and its length in bytes (1 to 4); 0 if
 * the bytes are not UTF-8 (overlongs, surrogates, over U+10FFFF, cut short) or
 * len is 0. *point is set only where the result is not 0. */
size_t bal_utf8_next(uint32_t *point, const char *text, size_t len);
/* Write point as UTF-8; the length in bytes. */
size_t bal_utf8_put(char out[4], uint32_t point);

#endif
