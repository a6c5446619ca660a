/* Allocations that fail when their turn comes. */
#ifndef TORTURE_ALLOC_H
#define TORTURE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Take SQLite's allocations too. Before it is used. */
bool alloc_hook(void);
/* From now on, allocation n fails, and with `all` every later one; n 0: none
 * does. Only one thread of the program is at work here and in alloc_live. */
void alloc_begin(long n, bool all);
/* No more fail. True if one has. */
bool alloc_end(void);
/* How many were asked for since alloc_begin. */
long alloc_turns(void);
/* How many of ours since alloc_begin were not freed. */
size_t alloc_live(void);

#endif
