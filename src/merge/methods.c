/* The methods. A new one is a file with its parameters and functions (linear.c
 * is the model of one), and a row here. */
#include <string.h>

#include "merge/linear.h"
#include "merge/merge.h"

const bal_method bal_methods[] = {
    {
        .info = {
            .name = "linear",
            .summary = "weighted average, or weighted sum",
            .paper = "arXiv:2203.05482",
            .min_inputs = 1,
            .params = bal_linear_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .check = bal_linear_check,
        .same = bal_linear_same,
        .share = bal_linear_share,
        .merge = bal_linear_merge,
    },
};

const size_t bal_methods_count = sizeof(bal_methods) / sizeof(bal_methods[0]);

const bal_method *bal_method_row(const char *name)
{
    for (size_t i = 0; i < bal_methods_count; i++) {
        if (!strcmp(bal_methods[i].info.name, name))
            return &bal_methods[i];
    }
    return NULL;
}

size_t bal_method_count(void)
{
    return bal_methods_count;
}

const bal_method_info *bal_method_at(size_t i)
{
    return &bal_methods[i].info;
}

const bal_method_info *bal_method_find(const char *name)
{
    const bal_method *row = bal_method_row(name);

    return row ? &row->info : NULL;
}
