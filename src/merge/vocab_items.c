#include "merge/vocab_items.h"

#include <string.h>

enum { LEVELS = 64 };

bal_scan bal_items_scan(bal_items *self, bal_bytes part)
{
    return (bal_scan){ part.data, part.len, 0, &self->arena, self->what };
}

int bal_items_next(bal_items *self, bal_buf *out, bal_error *err)
{
    int rc = self->filled ? bal_buf_text(out, ",", err) : 0;

    self->filled = true;
    if (rc)
        return rc;
    return bal_buf_append(out, self->gap, self->gap_len, err);
}

/* One item, from what is behind the bracket or comma before it. */
static int edit_item(bal_items *self, bal_buf *out, bal_scan *scan,
                     size_t behind, size_t index, bal_error *err)
{
    bool stays = true;

    bal_scan_peek(scan);
    self->gap = scan->data + behind;
    self->gap_len = scan->at - behind;
    size_t start = scan->at;
    int rc = self->keyed ? bal_scan_skip(scan, 0, err) : 0;
    if (!rc && self->keyed)
        rc = bal_scan_open(scan, ':', err);
    if (!rc)
        rc = bal_scan_skip(scan, LEVELS, err);
    if (rc)
        return rc;
    bal_bytes item = { scan->data + start, scan->at - start };
    rc = self->keep(self, item, index, &stays, err);
    bal_arena_done(&self->arena);
    if (!rc && stays)
        rc = bal_items_next(self, out, err);
    if (!rc && stays)
        rc = bal_buf_append(out, item.data, item.len, err);
    return rc;
}

int bal_items_edit(bal_items *self, bal_buf *out, bal_bytes container,
                   bal_items_keep *keep, size_t *tail, bal_error *err)
{
    bal_scan scan = bal_items_scan(self, container);
    bool more = false;

    self->keep = keep;
    self->keyed = bal_scan_peek(&scan) == '{';
    char closing = self->keyed ? '}' : ']';
    int rc = bal_scan_open(&scan, self->keyed ? '{' : '[', err);
    self->gap_len = 0;
    self->filled = false;
    if (!rc)
        rc = bal_buf_append(out, container.data, 1, err);
    for (size_t i = 0; !rc; i++) {
        *tail = scan.at;
        bal_scan_peek(&scan);
        size_t behind = i ? scan.at + 1 : *tail;

        rc = bal_scan_more(&scan, closing, !i, &more, err);
        if (rc || !more)
            return rc;
        rc = edit_item(self, out, &scan, behind, i, err);
    }
    return rc;
}

int bal_items_end(bal_items *self, bal_buf *out, bal_bytes container,
                  size_t tail, bal_error *err)
{
    const char *data = container.data;

    /* Of a container that lost all, the bracket alone. */
    if (!self->filled)
        tail = container.len - 1;
    return bal_buf_append(out, data + tail, container.len - tail, err);
}

bool bal_items_pretty(const bal_items *self)
{
    return self->gap_len && memchr(self->gap, '\n', self->gap_len);
}

int bal_items_line(bal_items *self, bal_buf *out, const char *more,
                   bal_error *err)
{
    if (!bal_items_pretty(self))
        return 0;
    int rc = bal_buf_append(out, self->gap, self->gap_len, err);
    return rc ? rc : bal_buf_text(out, more, err);
}
