/* Owned bytes that grow by doubling, never over their ceiling. */
#include "core/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"

enum { SMALLEST = 64, BULK = 64 * 1024 };

static const size_t default_ceiling = (size_t)1 << 30;

void *bal_pages(size_t len)
{
    if (len > SIZE_MAX - BAL_PAGE)
        return NULL;
    return aligned_alloc(BAL_PAGE, (bal_max(len, 1) + BAL_PAGE - 1) / BAL_PAGE *
                                       BAL_PAGE);
}

void *bal_page_start(void *memory)
{
    size_t past = (uintptr_t)memory % BAL_PAGE;

    return (char *)memory + (past ? BAL_PAGE - past : 0);
}

/* Grow to room bytes; a buffer of many pages starts at a page. */
static char *grow(bal_buf *self, size_t room)
{
    if (room < BULK)
        return realloc(self->data, room);
    char *data = bal_pages(room);
    if (!data)
        return NULL;
    if (self->data)
        memcpy(data, self->data, self->len + 1);
    free(self->data);
    return data;
}

int bal_buf_reserve(bal_buf *self, size_t more, bal_error *err)
{
    size_t ceiling = self->ceiling ? self->ceiling : default_ceiling;

    if (self->len > ceiling || more > ceiling - self->len)
        return bal_fail(err, BAL_EINVAL, "more than %zu bytes", ceiling);
    size_t need = self->len + more + 1;
    if (need <= self->room)
        return 0;
    size_t room = self->room ? self->room : SMALLEST;
    while (room < need)
        room *= 2;
    room = bal_max(bal_min(room, ceiling + 1), need);
    char *data = grow(self, room);
    if (!data)
        return bal_fail_memory(err, "growing a buffer");
    self->data = data;
    self->room = room;
    self->data[self->len] = '\0';
    return 0;
}

int bal_buf_append(bal_buf *self, const void *data, size_t len, bal_error *err)
{
    int rc = bal_buf_reserve(self, len, err);
    if (rc)
        return rc;

    if (len)
        memcpy(self->data + self->len, data, len);
    self->len += len;
    self->data[self->len] = '\0';
    return 0;
}

int bal_buf_text(bal_buf *self, const char *text, bal_error *err)
{
    return bal_buf_append(self, text, strlen(text), err);
}

int bal_buf_format(bal_buf *self, bal_error *err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0)
        return bal_fail(err, BAL_EINVAL, "text that cannot be formatted");
    int rc = bal_buf_reserve(self, (size_t)len, err);
    if (rc)
        return rc;

    va_start(args, format);
    vsnprintf(self->data + self->len, (size_t)len + 1, format, args);
    va_end(args);
    self->len += (size_t)len;
    return 0;
}

void bal_buf_clear(bal_buf *self)
{
    self->len = 0;
    if (self->data)
        self->data[0] = '\0';
}

void bal_buf_done(bal_buf *self)
{
    free(self->data);
    self->data = NULL;
    self->len = 0;
    self->room = 0;
}

const char *bal_buf_string(const bal_buf *self)
{
    return self->data ? self->data : "";
}
