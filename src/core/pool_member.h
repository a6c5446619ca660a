/* What a thread has of one bal_work: memory, and the run that it works at. */
#ifndef CORE_POOL_MEMBER_H
#define CORE_POOL_MEMBER_H

#include <stdatomic.h>

#include "core/pool.h"

/* A work's list of them; zero is empty. */
typedef struct bal_members {
    struct bal_member *first;
} bal_members;

/* Freed by its thread, even where the work is gone before. What follows the
 * links is the thread's alone as long as the work is there. */
typedef struct bal_member {
    _Atomic(bal_members *) home; /* NULL: the work is gone */
    struct bal_member *beside;   /* the thread's next one */
    struct bal_member *next, *prev;
    bal_work *work;
    void *scratch[BAL_SCRATCH_SLOTS];
    size_t room[BAL_SCRATCH_SLOTS];
    struct run *inside; /* the run whose item it works at, NULL: none */
} bal_member;

/* Before anything else; an errno. */
int bal_members_ready(void);
/* The calling thread's, made when it is first needed; NULL: no memory. */
bal_member *bal_member_of(bal_work *work, bal_members *home);
/* The work goes: their memory is freed, and what is left of them by their
 * threads, when they look next or end. */
void bal_members_end(bal_members *home);

#endif
