/* Allocations that fail when their turn comes, and that are counted: the
 * linker's --wrap for what is ours, a hook for SQLite. Not jansson, which takes
 * a failed allocation for a syntax error. */
#include "torture/alloc.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t len);
void *__real_calloc(size_t count, size_t len);
void *__real_realloc(void *old, size_t len);
void __real_free(void *old);
void *__wrap_malloc(size_t len);
void *__wrap_calloc(size_t count, size_t len);
void *__wrap_realloc(void *old, size_t len);
void __wrap_free(void *old);

#define TABLE (1U << 16)

/* Which allocation fails, counted down; below 1: none. */
static atomic_long left;
static atomic_long turns;
static atomic_bool on; /* and all that follow */
static atomic_bool fired;

/* What is allocated now, an open hash; lock guards it. What others allocated
 * and we free (strdup, realpath) is not in it. */
static struct {
    pthread_mutex_t lock;
    void *slots[TABLE];
    size_t count;
} live = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool refused(void)
{
    atomic_fetch_add(&turns, 1);
    if (atomic_load(&on) && atomic_load(&fired))
        return true;
    if (atomic_load(&left) < 1 || atomic_fetch_sub(&left, 1) != 1)
        return false;
    atomic_store(&fired, true);
    return true;
}

static size_t slot_of(const void *pointer)
{
    return (size_t)((uintptr_t)pointer * 0x9E3779B97F4A7C15U >> 40) % TABLE;
}

static void *gone(void)
{
    return &live;
}

static void *noted(void *pointer)
{
    size_t at = slot_of(pointer);

    if (!pointer)
        return NULL;
    pthread_mutex_lock(&live.lock);
    while (live.slots[at] && live.slots[at] != gone())
        at = (at + 1) % TABLE;
    live.slots[at] = pointer;
    live.count++;
    pthread_mutex_unlock(&live.lock);
    return pointer;
}

static void forget(const void *pointer)
{
    size_t at = slot_of(pointer);

    if (!pointer)
        return;
    pthread_mutex_lock(&live.lock);
    for (size_t i = 0; i < TABLE && live.slots[at]; i++) {
        if (live.slots[at] == pointer) {
            live.slots[at] = gone();
            live.count--;
            break;
        }
        at = (at + 1) % TABLE;
    }
    pthread_mutex_unlock(&live.lock);
}

void alloc_begin(long n, bool all)
{
    memset(live.slots, 0, sizeof(live.slots));
    live.count = 0;
    atomic_store(&fired, false);
    atomic_store(&on, all);
    atomic_store(&left, n);
    atomic_store(&turns, 0);
}

long alloc_turns(void)
{
    return atomic_load(&turns);
}

bool alloc_end(void)
{
    atomic_store(&left, 0);
    atomic_store(&on, false);
    return atomic_load(&fired);
}

size_t alloc_live(void)
{
    return live.count;
}

void *__wrap_malloc(size_t len)
{
    return refused() ? NULL : noted(__real_malloc(len));
}

void *__wrap_calloc(size_t count, size_t len)
{
    return refused() ? NULL : noted(__real_calloc(count, len));
}

void *__wrap_realloc(void *old, size_t len)
{
    if (refused())
        return NULL;
    forget(old);
    return noted(__real_realloc(old, len));
}

void __wrap_free(void *old)
{
    forget(old);
    __real_free(old);
}

static sqlite3_mem_methods sqlite;

static void *sqlite_malloc(int len)
{
    return refused() ? NULL : sqlite.xMalloc(len);
}

static void *sqlite_realloc(void *old, int len)
{
    return refused() ? NULL : sqlite.xRealloc(old, len);
}

bool alloc_hook(void)
{
    sqlite3_mem_methods ours;

    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite) != SQLITE_OK)
        return false;
    ours = sqlite;
    ours.xMalloc = sqlite_malloc;
    ours.xRealloc = sqlite_realloc;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &ours) != SQLITE_OK)
        return false;
    return sqlite3_initialize() == SQLITE_OK;
}
