/* Taking items out of an array or object in somebody's JSON text, and putting
 * others in behind them: what stays keeps its bytes, what is new is laid out
 * like what stands beside it. */
#ifndef MERGE_VOCAB_ITEMS_H
#define MERGE_VOCAB_ITEMS_H

#include "core/json.h"

typedef struct bal_items bal_items;

/* Whether an item stays: a value, of an object with its key. */
typedef int bal_items_keep(bal_items *self, bal_bytes item, size_t index,
                           bool *keep, bal_error *err);

/* Zero but for what, and arena to be emptied in the end. */
struct bal_items {
    bal_arena arena;  /* of decoded strings, emptied at each item */
    const char *what; /* named in messages */
    /* How the last item is laid out, once all were seen: what is between the
     * comma before it and itself. */
    const char *gap;
    size_t gap_len;
    bool filled; /* something stayed, or was put in */
    bool keyed;  /* it is an object */
    bal_items_keep *keep;
};

/* To read a part of an item with. */
bal_scan bal_items_scan(bal_items *self, bal_bytes part);
/* The items of a container that stay, with its opening bracket and without the
 * closing one; where that and the space before it begin is left in *tail. */
BAL_CHECK int bal_items_edit(bal_items *self, bal_buf *out, bal_bytes container,
                             bal_items_keep *keep, size_t *tail,
                             bal_error *err);
/* What stands before one more item. */
BAL_CHECK int bal_items_next(bal_items *self, bal_buf *out, bal_error *err);
/* True if items stand on lines of their own. */
bool bal_items_pretty(const bal_items *self);
/* If so, a new line at the depth of items, and `more`. */
BAL_CHECK int bal_items_line(bal_items *self, bal_buf *out, const char *more,
                             bal_error *err);
/* The closing bracket. */
BAL_CHECK int bal_items_end(bal_items *self, bal_buf *out, bal_bytes container,
                            size_t tail, bal_error *err);

#endif
