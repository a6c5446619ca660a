/* Arrays that grow by doubling. */
#ifndef CORE_ROOM_H
#define CORE_ROOM_H

#include <stdlib.h>

/* The array, moved if need be, with room for one more than `count` items of
 * `size` bytes; NULL: no memory, and the array is as before. */
static inline void *bal_room_for_one(void *array, size_t count, size_t *room,
                                     size_t size)
{
    if (count < *room)
        return array;
    size_t wanted = *room ? 2 * *room : 64;
    void *grown = reallocarray(array, wanted, size);
    if (grown)
        *room = wanted;
    return grown;
}

#endif
