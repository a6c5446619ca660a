/* Huffman planes read by what docs/format.md says, bit by bit. */
#ifndef SUPPORT_PLAIN_HUFFMAN_H
#define SUPPORT_PLAIN_HUFFMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* n bytes to `to`. False if the plane is not as described. */
bool plain_huffman(uint8_t *to, size_t n, const uint8_t *plane, size_t len);

#endif
