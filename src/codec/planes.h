/* Elements to byte planes and back. */
#ifndef CODEC_PLANES_H
#define CODEC_PLANES_H

#include <stddef.h>
#include <stdint.h>

#define BAL_PLANES_MAX 8

/* One plane: byte p of each element. */
typedef struct bal_plane {
    const uint8_t *data;
    uint8_t value; /* of every byte, where data is NULL */
} bal_plane;

/* count elements of width (2, 4 or 8) bytes at from become width planes of
 * count bytes: plane p at to[p], which planes[p] then says; or only its value,
 * where all of its bytes are the same, and to[p] holds nothing. count is at
 * least 1. */
void bal_planes_split(bal_plane *planes, uint8_t *const *to,
                      const uint8_t *from, size_t count, size_t width);
/* The way back: width planes, wherever they are, to count elements at to. */
void bal_planes_join(uint8_t *to, const bal_plane *planes, size_t count,
                     size_t width);

#endif
