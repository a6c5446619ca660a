/* Members are the threads' own, so that a thread that ends while a work is
 * freed finds its own memory there. */
#include "core/pool_member.h"

#include <pthread.h>
#include <stdlib.h>

/* The first of a thread's members. One key for the life of the process: the
 * destructor of one that is deleted may be running in a thread that ends just
 * then, and nobody can wait for it. */
static pthread_key_t members_key;
static int members_error;
static pthread_once_t members_once = PTHREAD_ONCE_INIT;

/* Which work a member is of, and its place in the work's list: a thread may end
 * while the work is freed. Nothing is taken while it is held. */
static pthread_mutex_t leaving = PTHREAD_MUTEX_INITIALIZER;

static void drop_scratch(bal_member *self)
{
    for (size_t i = 0; i < BAL_SCRATCH_SLOTS; i++) {
        free(self->scratch[i]);
        self->scratch[i] = NULL;
        self->room[i] = 0;
    }
}

static void take_out_locked(bal_member *self, bal_members *home)
{
    if (self->next)
        self->next->prev = self->prev;
    if (self->prev)
        self->prev->next = self->next;
    else
        home->first = self->next;
}

static void member_free(bal_member *self)
{
    pthread_mutex_lock(&leaving);
    bal_members *home = atomic_load(&self->home);
    if (home)
        take_out_locked(self, home);
    pthread_mutex_unlock(&leaving);
    drop_scratch(self);
    free(self);
}

/* When a thread ends. */
static void members_leave(void *first)
{
    bal_member *self = first;

    while (self) {
        bal_member *next = self->beside;
        member_free(self);
        self = next;
    }
}

static void make_key(void)
{
    members_error = pthread_key_create(&members_key, members_leave);
}

int bal_members_ready(void)
{
    pthread_once(&members_once, make_key);
    return members_error;
}

/* Free those of the calling thread whose work is gone. */
static bal_member *sweep(bal_member *first)
{
    bal_member **at = &first;

    while (*at) {
        bal_member *self = *at;
        if (atomic_load(&self->home)) {
            at = &self->beside;
            continue;
        }
        *at = self->beside;
        member_free(self);
    }
    return first;
}

bal_member *bal_member_of(bal_work *work, bal_members *home)
{
    bal_member *first = pthread_getspecific(members_key);

    for (bal_member *self = first; self; self = self->beside) {
        if (atomic_load(&self->home) == home)
            return self;
    }
    bal_member *self = calloc(1, sizeof(*self));
    if (!self)
        return NULL;
    first = sweep(first);
    if (pthread_setspecific(members_key, self)) {
        (void)pthread_setspecific(members_key, first);
        free(self);
        return NULL;
    }
    self->beside = first;
    self->work = work;
    atomic_store(&self->home, home);
    pthread_mutex_lock(&leaving);
    self->next = home->first;
    if (self->next)
        self->next->prev = self;
    home->first = self;
    pthread_mutex_unlock(&leaving);
    return self;
}

void bal_members_end(bal_members *home)
{
    pthread_mutex_lock(&leaving);
    for (bal_member *self = home->first; self; self = self->next) {
        drop_scratch(self);
        atomic_store(&self->home, NULL);
    }
    home->first = NULL;
    pthread_mutex_unlock(&leaving);
    (void)pthread_setspecific(members_key,
                              sweep(pthread_getspecific(members_key)));
}
