/* The methods. A new one is a file with its parameters and functions (linear.c
 * is the model of one), and a row here. */
#include <string.h>

#include "merge/arcee_fusion.h"
#include "merge/family.h"
#include "merge/karcher.h"
#include "merge/linear.h"
#include "merge/merge.h"
#include "merge/model_stock.h"
#include "merge/multislerp.h"
#include "merge/nearswap.h"
#include "merge/nuslerp.h"
#include "merge/passthrough.h"
#include "merge/peft_types.h"
#include "merge/ram.h"
#include "merge/sce.h"
#include "merge/slerp.h"

const bal_method bal_methods[] = {
    {
        .info = {
            .name = "linear",
            .summary = "weighted average, or weighted sum",
            .paper = "arXiv:2203.05482",
            .formula = "sum w_i x_i, over sum w_i where normalize",
            .guard = "weights that sum to 0 are refused under normalize; "
                "mergekit gives inf and NaN",
            .min_inputs = 1,
            .params = bal_linear_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .check = bal_linear_check,
        .same = bal_linear_same,
        .share = bal_linear_share,
        .merge = bal_linear_merge,
    },
    {
        .info = {
            .name = "sce",
            .summary = "what varies most, weighted by size, majority signs",
            .paper = "arXiv:2408.07990",
            .formula = "b + sum s_i w_i d_i / sum w_i: d_i = x_i - b of the "
                "select_topk part of the elements whose variance "
                "over inputs is largest, w_i the mean square of d_i "
                "over the sum of all, s_i 1 where the sign of d_i is "
                "that of sum d_i",
            .guard = "mean squares that sum to less than 1e-6 count "
                "alike, as in mergekit; the view warns",
            .min_inputs = 1,
            .params = bal_sce_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .role = BAL_ROLE_ORIGIN,
        .needs_base = true,
        .scratch = 2,
        .scratch_each = 2,
        .prepare = bal_sce_prepare,
        .merge = bal_sce_merge,
    },
    {
        .info = {
            .name = "ram",
            .summary = "unique changes whole, shared ones averaged",
            .paper = "arXiv:2601.13572",
            .formula = "b + d where one input alone changes an element by "
                "more than epsilon, b + the mean of those that do "
                "where several do",
            .min_inputs = 1,
            .params = bal_ram_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .role = BAL_ROLE_ORIGIN,
        .needs_base = true,
        .scratch = 1,
        .scratch_each = 1,
        .merge = bal_ram_merge,
    },
    {
        .info = {
            .name = "ramplus_tl",
            .summary = "ram, unique changes grown by what is shared",
            .paper = "arXiv:2601.13572",
            .formula = "as ram, unique changes times 1 + r min(alpha, "
                "shared_i / unique_i), counted over the tensor",
            .min_inputs = 1,
            .params = bal_ramplus_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .role = BAL_ROLE_ORIGIN,
        .needs_base = true,
        .f32 = true,
        .scratch = 1,
        .scratch_each = 1,
        .prepare = bal_ramplus_prepare,
        .merge = bal_ramplus_merge,
    },
    {
        .info = {
            .name = "arcee_fusion",
            .summary = "the other model where it matters, else the base",
            .formula = "b + d where |d| KL(softmax x || softmax b) of the "
                "row reaches the median + 1.5 (third quartile - "
                "first), b elsewhere",
            .guard = "quartiles are exact; mergekit takes a sample of "
                "more than a million elements. What is not taken is "
                "b itself, where mergekit adds 0 times d. Of small "
                "changes the divergence is rounding noise, and so is "
                "what is taken",
            .min_inputs = 1,
            .max_inputs = 1,
            .params = bal_arcee_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .few = BAL_FEW_COPY,
        .role = BAL_ROLE_OPERAND,
        .needs_base = true,
        .f32 = true,
        .scratch = 3,
        .align = bal_arcee_align,
        .draws = bal_arcee_draws,
        .prepare = bal_arcee_prepare,
        .merge = bal_arcee_merge,
    },
    {
        .info = {
            .name = "passthrough",
            .summary = "one input as it is, or scaled",
            .formula = "scale x",
            .min_inputs = 1,
            .max_inputs = 1,
            .params = bal_passthrough_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .same = bal_passthrough_same,
        .share = bal_passthrough_share,
        .merge = bal_passthrough_merge,
    },
    {
        .info = {
            .name = "task_arithmetic",
            .summary = "weighted sum of differences to a base",
            .paper = "arXiv:2212.04089",
            .formula = "b + lambda sum w_i d_i, over sum w_i where "
                "normalize; d_i = x_i - b",
            .guard = "a divisor below 1e-8, or that is only what rounding "
                "left of 0, counts as 1",
            .min_inputs = 1,
            .params = bal_task_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .role = BAL_ROLE_ORIGIN,
        .needs_base = true,
        .scratch_each = BAL_FAMILY_EACH,
        .same = bal_task_same,
        .share = bal_task_share,
        .merge = bal_family_merge,
    },
    {
        .info = {
            .name = "ties",
            .summary = "keep the largest differences, settle signs",
            .paper = "arXiv:2306.01708",
            .formula = "as task_arithmetic, of the density part of the "
                "largest |d_i|, without those whose sign is not that "
                "of sum w_i d_i; normalize divides by the weights "
                "that are left",
            .guard = "of equal magnitudes at the cut the lower index is "
                "kept; mergekit's sort is not stable",
            .min_inputs = 1,
            .params = bal_ties_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .role = BAL_ROLE_ORIGIN,
        .needs_base = true,
        .scratch = BAL_FAMILY_ELECT,
        .scratch_each = BAL_FAMILY_ELECT_EACH,
        .prepare = bal_family_prepare,
        .merge = bal_family_merge,
        .sparsify = &bal_sparsify_magnitude,
        .consensus = true,
    },
    {
        .info = {
            .name = "dare_linear",
            .summary = "drop differences at random, rescale, add",
            .paper = "arXiv:2311.03099",
            .formula = "as task_arithmetic, each element of d_i kept with "
                "probability density; rescale: times sum |d_i| over "
                "sum |kept|",
            .guard = "a factor that is not finite is left out. Draws are "
                "Philox4x32-10 unless mergekit's stream is asked for",
            .min_inputs = 1,
            .flags = BAL_METHOD_SEEDED,
            .params = bal_dare_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .role = BAL_ROLE_ORIGIN,
        .needs_base = true,
        .scratch_each = BAL_FAMILY_EACH,
        .prepare = bal_family_prepare,
        .merge = bal_family_merge,
        .sparsify = &bal_sparsify_bernoulli,
        .draws = bal_dare_draws,
    },
    {
        .info = {
            .name = "dare_ties",
            .summary = "drop differences at random, rescale, settle signs",
            .paper = "arXiv:2311.03099",
            .formula = "as dare_linear, with the signs of ties",
            .guard = "as dare_linear",
            .min_inputs = 1,
            .flags = BAL_METHOD_SEEDED,
            .params = bal_dare_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .role = BAL_ROLE_ORIGIN,
        .needs_base = true,
        .scratch = BAL_FAMILY_ELECT,
        .scratch_each = BAL_FAMILY_ELECT_EACH,
        .prepare = bal_family_prepare,
        .merge = bal_family_merge,
        .sparsify = &bal_sparsify_bernoulli,
        .draws = bal_dare_draws,
        .consensus = true,
    },
    {
        .info = {
            .name = "della",
            .summary = "drop differences by rank and chance, settle signs",
            .paper = "arXiv:2406.11617",
            .formula = "as dare_ties, with probability density - epsilon + "
                "2 epsilon rank / (n - 1), ranks of |d_i| in a row",
            .guard = "a row of one element is kept with probability "
                "density; mergekit refuses it",
            .min_inputs = 1,
            .flags = BAL_METHOD_SEEDED,
            .params = bal_della_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .role = BAL_ROLE_ORIGIN,
        .needs_base = true,
        .scratch = BAL_FAMILY_MAGPRUNE,
        .scratch_each = BAL_FAMILY_ELECT_EACH,
        .align = bal_magprune_align,
        .check = bal_della_check,
        .prepare = bal_family_prepare,
        .merge = bal_family_merge,
        .sparsify = &bal_sparsify_magprune,
        .draws = bal_della_draws,
        .consensus = true,
    },
    {
        .info = {
            .name = "della_linear",
            .summary = "drop differences by rank and chance, add",
            .paper = "arXiv:2406.11617",
            .formula = "as della, without signs",
            .guard = "as della",
            .min_inputs = 1,
            .flags = BAL_METHOD_SEEDED,
            .params = bal_della_linear_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .role = BAL_ROLE_ORIGIN,
        .needs_base = true,
        .scratch = BAL_FAMILY_MAGPRUNE,
        .scratch_each = BAL_FAMILY_EACH,
        .align = bal_magprune_align,
        .check = bal_della_check,
        .prepare = bal_family_prepare,
        .merge = bal_family_merge,
        .sparsify = &bal_sparsify_magprune,
        .draws = bal_della_draws,
    },
    {
        .info = {
            .name = "breadcrumbs",
            .summary = "drop the largest and the smallest, add",
            .paper = "arXiv:2312.06795",
            .formula = "as task_arithmetic, of the density part of |d_i| "
                "below the gamma part of the largest",
            .guard = "of equal magnitudes at a cut the lower index is "
                "kept; mergekit's sort is not stable",
            .min_inputs = 1,
            .params = bal_breadcrumbs_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .role = BAL_ROLE_ORIGIN,
        .needs_base = true,
        .scratch_each = BAL_FAMILY_EACH,
        .prepare = bal_family_prepare,
        .merge = bal_family_merge,
        .sparsify = &bal_sparsify_outliers,
    },
    {
        .info = {
            .name = "breadcrumbs_ties",
            .summary = "drop the largest and the smallest, settle signs",
            .paper = "arXiv:2312.06795",
            .formula = "as breadcrumbs, with the signs of ties",
            .guard = "as breadcrumbs",
            .min_inputs = 1,
            .params = bal_breadcrumbs_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .role = BAL_ROLE_ORIGIN,
        .needs_base = true,
        .scratch = BAL_FAMILY_ELECT,
        .scratch_each = BAL_FAMILY_ELECT_EACH,
        .prepare = bal_family_prepare,
        .merge = bal_family_merge,
        .sparsify = &bal_sparsify_outliers,
        .consensus = true,
    },
    {
        .info = {
            .name = "slerp",
            .summary = "along the arc from the base to the other",
            .formula = "(sin((1 - t) a) b + sin(t a) x) / sin a, a the "
                "angle of b and x as whole tensors",
            .guard = "(1 - t) b + t x where |cos a| > 0.9995, "
                "near-opposite vectors too, as in mergekit; a zero "
                "vector counts as at a right angle",
            .min_inputs = 1,
            .max_inputs = 1,
            .params = bal_slerp_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .few = BAL_FEW_COPY,
        .role = BAL_ROLE_OPERAND,
        .needs_base = true,
        .scratch = 2,
        .prepare = bal_slerp_prepare,
        .merge = bal_slerp_merge,
    },
    {
        .info = {
            .name = "nuslerp",
            .summary = "along the arc between two, by tensor, row or column",
            .formula = "slerp of two by t = w_1 / (w_0 + w_1), of whole "
                "tensors (flatten), rows or columns; with a base of "
                "differences",
            .guard = "linear below cos a = -0.9995, where mergekit's "
                "factors have no bound; t is 1/2 where the weights "
                "sum to less than 1e-6",
            .min_inputs = 2,
            .max_inputs = 2,
            .params = bal_nuslerp_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .few = BAL_FEW_COPY,
        .role = BAL_ROLE_ORIGIN,
        .scratch = 2,
        .same = bal_nuslerp_same,
        .prepare = bal_nuslerp_prepare,
        .merge = bal_nuslerp_merge,
    },
    {
        .info = {
            .name = "multislerp",
            .summary = "mean direction of several, weighted, times mean norm",
            .formula = "mean norm times the exponential map, at the "
                "weighted mean direction m, of the weighted mean of "
                "u_i - (u_i m) m",
            .guard = "where there is no mean direction: the weighted sum, "
                "which mergekit has for two inputs and refuses for "
                "more",
            .min_inputs = 1,
            .params = bal_multislerp_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .role = BAL_ROLE_ORIGIN,
        .scratch = 3,
        .scratch_each = 1,
        .check = bal_multislerp_check,
        .same = bal_multislerp_same,
        .prepare = bal_multislerp_prepare,
        .merge = bal_multislerp_merge,
    },
    {
        .info = {
            .name = "karcher",
            .summary = "mean on the sphere, by steps, times mean norm",
            .formula = "mean norm times the Karcher mean of directions, by "
                "at most max_iter steps of length above tol",
            .guard = "an input opposite to the mean is left out of that "
                "step; mergekit's factor has no bound",
            .min_inputs = 1,
            .params = bal_karcher_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .scratch = 3,
        .scratch_each = 1,
        .same = bal_karcher_same,
        .prepare = bal_karcher_prepare,
        .merge = bal_karcher_merge,
    },
    {
        .info = {
            .name = "model_stock",
            .summary = "from the base to the average, as far as inputs agree",
            .paper = "arXiv:2403.19522",
            .formula = "t avg + (1 - t) b, t = N c / (1 + (N - 1) c), c the "
                "mean cosine of the x_i - b",
            .guard = "t is 0 where |1 + (N - 1) c| < 1e-6, of opposite "
                "inputs, as in mergekit, and the view warns; near that it is "
                "large, and finite",
            .min_inputs = 2,
            .params = bal_model_stock_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .few = BAL_FEW_DROP,
        .role = BAL_ROLE_OPERAND,
        .needs_base = true,
        .scratch = 1,
        .scratch_each = 1,
        .prepare = bal_model_stock_prepare,
        .merge = bal_model_stock_merge,
    },
    {
        .info = {
            .name = "nearswap",
            .summary = "the other model where it is near the base",
            .formula = "w x + (1 - w) b, w = t / |b - x|, 0 to 1, |b - x| "
                "at least 1e-6",
            .min_inputs = 1,
            .max_inputs = 1,
            .params = bal_nearswap_params,
        },
        .absent = BAL_ABSENT_ZERO,
        .role = BAL_ROLE_OPERAND,
        .needs_base = true,
        .scratch = 1,
        .merge = bal_nearswap_merge,
    },
    BAL_PEFT_TYPE("peft_linear", "PEFT's linear: factors, or maps, are added",
                  "sum w_i x_i", bal_peft_linear_params, NULL, 0),
    BAL_PEFT_TYPE("peft_magnitude_prune", "PEFT's magnitude_prune",
                  "sum w_i p_i, p_i the density part of the largest |x_i|",
                  bal_peft_prune_params, &bal_sparsify_topk, 0),
    BAL_PEFT_TYPE("peft_dare_linear", "PEFT's dare_linear",
                  "sum w_i p_i, p_i elements of x_i / density kept with "
                  "probability density",
                  bal_peft_prune_params, &bal_sparsify_bernoulli,
                  BAL_METHOD_SEEDED),
    BAL_PEFT_TIES("peft_ties", "PEFT's ties", "p_i as magnitude_prune's",
                  &bal_sparsify_topk, 0),
    BAL_PEFT_TIES("peft_dare_ties", "PEFT's dare_ties", "p_i as dare_linear's",
                  &bal_sparsify_bernoulli, BAL_METHOD_SEEDED),
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

bal_base_use bal_method_base(const bal_method_info *method)
{
    const bal_method *row = bal_method_row(method->name);

    if (!row || row->role == BAL_ROLE_NONE)
        return BAL_BASE_NONE;
    return row->needs_base ? BAL_BASE_NEEDED : BAL_BASE_POSSIBLE;
}
