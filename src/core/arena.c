/* Many small things that live and go together: pages that are filled from the
 * front and freed at once. Pages grow with what is in the arena, so that a
 * million names cost some dozen allocations. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/buf.h"

enum { ALIGN = 16, FIRST_PAGE = 4096, LAST_PAGE = 1 << 20 };

typedef struct bal_arena_page {
    struct bal_arena_page *next;
    size_t room; /* bytes behind this head */
    size_t used;
    _Alignas(ALIGN) uint8_t data[];
} bal_arena_page;

static const size_t default_ceiling = (size_t)8 << 30;

static bal_arena_page *add_page(bal_arena *self, size_t len)
{
    size_t room = self->pages ? self->pages->room * 2 : FIRST_PAGE;

    room = bal_max(bal_min(room, LAST_PAGE), len);
    bal_arena_page *page = calloc(1, sizeof(*page) + room);
    if (!page)
        return NULL;
    page->room = room;
    page->next = self->pages;
    self->pages = page;
    return page;
}

void *bal_arena_alloc(bal_arena *self, size_t len)
{
    size_t ceiling = self->ceiling ? self->ceiling : default_ceiling;
    bal_arena_page *page = self->pages;

    if (len > ceiling || self->used > ceiling - len ||
        len > SIZE_MAX - ALIGN - sizeof(*page))
        return NULL;
    size_t step = (bal_max(len, 1) + ALIGN - 1) / ALIGN * ALIGN;
    if (!page || step > page->room - page->used)
        page = add_page(self, step);
    if (!page)
        return NULL;
    void *at = page->data + page->used;
    page->used += step;
    self->used += step;
    return at;
}

char *bal_arena_copy(bal_arena *self, const char *text, size_t len)
{
    if (len == SIZE_MAX)
        return NULL;
    char *copy = bal_arena_alloc(self, len + 1);
    if (copy && len)
        memcpy(copy, text, len);
    return copy;
}

void bal_arena_done(bal_arena *self)
{
    while (self->pages) {
        bal_arena_page *page = self->pages;
        self->pages = page->next;
        free(page);
    }
    self->used = 0;
}
