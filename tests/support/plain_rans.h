/* Anchored payloads read as docs/format.md describes them, one element at a
 * time and with none of the coder's code: an oracle. */
#ifndef SUPPORT_PLAIN_RANS_H
#define SUPPORT_PLAIN_RANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* n elements of width 1, 2 or 4 bytes, no differences, no tail. False: it is
 * not a payload of as many. */
bool plain_anchored(uint8_t *to, const uint8_t *base, size_t n,
                    const uint8_t *payload, size_t len);

#endif
