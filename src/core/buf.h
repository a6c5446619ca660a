/* Owned bytes that grow up to a ceiling, and borrowed slices. */
#ifndef CORE_BUF_H
#define CORE_BUF_H

#include "ballast.h"

#include "core/own.h"

typedef struct bal_bytes {
    const void *data;
    size_t len;
} bal_bytes;

/* Zero is valid and empty. data always has a NUL behind len once anything was
 * appended, so that text can be handed on as a string. */
typedef struct bal_buf {
    char *data;
    size_t len;
    size_t room;
    size_t ceiling; /* 0: 1 GiB */
} bal_buf;

/* Room for more bytes behind len; EINVAL over the ceiling, ENOMEM. */
BAL_CHECK int bal_buf_reserve(bal_buf *self, size_t more, bal_error *err);
BAL_CHECK int bal_buf_append(bal_buf *self, const void *data, size_t len,
                             bal_error *err);
BAL_CHECK int bal_buf_text(bal_buf *self, const char *text, bal_error *err);
BAL_CHECK int bal_buf_format(bal_buf *self, bal_error *err, const char *format,
                             ...) __attribute__((format(printf, 3, 4)));
/* Empty it, keep the memory. */
void bal_buf_clear(bal_buf *self);
void bal_buf_done(bal_buf *self);
/* The text, "" when empty; borrowed. */
const char *bal_buf_string(const bal_buf *self);

/* Memory for bulk data, at the start of a page; freed with free(). NULL: none.
 *
 * Where it starts matters: on some processors (AMD's Zen among them) the
 * kernel's copy of read and write runs at a quarter of its speed when the place
 * copied to lies 1 to 63 bytes ahead, modulo 4096, of the place copied from.
 * From the start of a page that does not happen for nearly every file. */
#define BAL_PAGE ((size_t)4096)
void *bal_pages(size_t len);
/* The first page in memory that has BAL_PAGE bytes to spare: for what comes and
 * goes often, where asking malloc for alignment would leave gaps. */
void *bal_page_start(void *memory);

/* Many small things that live and go together. */
typedef struct bal_arena {
    struct bal_arena_page *pages;
    size_t ceiling; /* bytes in all; 0: 8 GiB */
    size_t used;
} bal_arena;

/* Zeroed, aligned to 16; NULL: no memory, or over the ceiling. */
void *bal_arena_alloc(bal_arena *self, size_t len);
char *bal_arena_copy(bal_arena *self, const char *text, size_t len);
void bal_arena_done(bal_arena *self);

#endif
