/* The file around the arrays: the JSON header, the records' heads, where each
 * array lies. */
#ifndef WDELTA_LAYOUT_H
#define WDELTA_LAYOUT_H

#include "wdelta/plan.h"

typedef struct bal_wd_layout {
    uint32_t version;
    const char *strategy;
    const char *parent; /* 64 hex digits */
    bal_model *tuned, *base;
    bal_wd_plan *plans; /* in the order of the records */
    size_t count;
    bal_buf start; /* magic, version, header */
    uint64_t size; /* of the file, trailer included */
} bal_wd_layout;

/* Fills start, size and the plans' offsets. */
BAL_CHECK int bal_wd_layout_make(bal_wd_layout *self, bal_error *err);
/* The offsets of a plan whose records begin at `at`; gives where they end. */
uint64_t bal_wd_layout_place(bal_wd_plan *plan, uint64_t at);
/* Start, heads, and arrays that are small. */
BAL_CHECK int bal_wd_layout_write(const bal_wd_layout *self, int fd,
                                  bal_error *err);
void bal_wd_layout_done(bal_wd_layout *self);

#endif
