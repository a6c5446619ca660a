/* One tensor merged through a view, for tests of methods: numbers in, numbers
 * out. */
#ifndef SUPPORT_MERGE_CASE_H
#define SUPPORT_MERGE_CASE_H

#include "merge/merge.h"

enum { MERGE_CASE_INPUTS = 8 };

typedef struct merge_setting {
    const char *name, *value;
} merge_setting;

/* The base, where there is one, is the last input. */
typedef struct merge_case {
    const char *method;
    bool mergekit;
    bal_dtype dtype; /* of the inputs, to which their numbers are rounded */
    merge_setting settings[4];
    double weights[MERGE_CASE_INPUTS]; /* all 0: all 1 */
    const char *scale;                 /* of every input; NULL: not told */
    uint32_t rank;
    uint64_t shape[3];
    const double *inputs[MERGE_CASE_INPUTS]; /* NULL ends them */
    const double *base;                      /* NULL: none */
} merge_case;

/* The merge as a model of one tensor "w", whole models going in; an error is
 * left in check_err. */
int merge_case_open(bal_model **out, const merge_case *self);
/* Its elements, and what dtype they came in. */
bal_dtype merge_case_run(double *out, const merge_case *self);
/* Every element of got within `part` of want's size, or both 0. */
bool merge_case_near(const double *got, const double *want, size_t n,
                     double part);
/* n numbers of normal size, multiples of 2^-12, the same for the same seed. */
void merge_case_fill(double *out, size_t n, uint64_t seed);

#endif
