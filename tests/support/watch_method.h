/* A method that is made up to watch what a view hands to one, and what it takes
 * to use it. */
#ifndef SUPPORT_WATCH_METHOD_H
#define SUPPORT_WATCH_METHOD_H

#include "merge/merge.h"

/* What the last tile was. */
typedef struct watched {
    size_t count;
    size_t which[4];
    bool based;
    double base; /* its first element, -1: none */
    bal_arith arith;
    uint64_t seed;
} watched;
extern watched watch_seen;

/* Its result is the sum of the inputs, and of the base of an OPERAND method. It
 * has no parameters and needs a base if it has a role for one. */
bal_method watch_method(bal_role role, size_t min);
/* A recipe of it with count inputs; base may be BAL_NONE. */
bal_recipe *watch_recipe(const bal_method *method, bal_space space,
                         size_t count, size_t base);
/* What inputs of a space are. */
bal_kind watch_kind(bal_space space);
/* A model of tensor 'w' alone. */
bal_model *watch_input(bal_kind kind, bal_dtype dtype, size_t n,
                       const void *bytes);
/* The first entry of a view, which has len bytes. */
void watch_read(bal_model *view, void *to, size_t len);

#endif
