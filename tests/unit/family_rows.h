/* Merges of task vectors and what NumPy makes of them: the formulas transcribed
 * in float64, rounded once. */
#ifndef UNIT_FAMILY_ROWS_H
#define UNIT_FAMILY_ROWS_H

#include <stddef.h>

enum { N = 12, INPUTS = 3, SETTINGS = 4 };

/* Eighths; magnitudes repeat, so that cuts fall between equal ones. */
static const float eighths[INPUTS][N] = {
    { 6, -5, 4, 3, -3, 1, 0, 2, -8, 3, -1, 7 },
    { -2, 5, 4, -9, 3, 3, 1, -6, 2, 0, 8, -3 },
    { 1, 1, -7, 2, 5, -4, 3, 9, -1, 2, 6, -3 },
};

typedef struct setting {
    const char *name, *value;
} setting;

typedef struct merging {
    const char *method;
    setting settings[SETTINGS];
    const char *inputs[INPUTS]; /* as bal_input_parse takes them */
    float want[N];
} merging;

/* clang-format off */
static const merging mergings[] = {
    { "task_arithmetic",
      { { NULL } },
      { "x@0.3", "x@0.9", "x@-0.2" },
      { -0.0250000004F, 0.349999994F, 0.774999976F, -0.949999988F,
        0.100000001F, 0.474999994F, 0.0375000015F, -0.824999988F,
        -0.0500000007F, 0.0625F, 0.712499976F, 0.0F } },
    { "task_arithmetic",
      { { "normalize", "true" }, { "lambda", "0.7" } },
      { "x@0.3", "x@0.9", "x@0.5" },
      { 0.0257352944F, 0.180147052F, 0.0669117644F, -0.319117635F,
        0.221323535F, 0.0514705889F, 0.123529412F, -0.0154411765F,
        -0.0566176474F, 0.0977941155F, 0.509558797F, -0.108088233F } },
    { "task_arithmetic",
      { { "normalize", "true" } },
      { "x@0.5", "x@-0.5" },
      { 0.5F, -0.625F, 0.0F, 0.75F,
        -0.375F, -0.125F, -0.0625F, 0.5F,
        -0.625F, 0.1875F, -0.5625F, 0.625F } },
    { "task_arithmetic",
      { { "density", "0.1" }, { "rescale", "true" }, { "int8_mask", "true" } },
      { "x@1", "x@1" },
      { 0.5F, 0.0F, 1.0F, -0.75F,
        0.0F, 0.5F, 0.125F, -0.5F,
        -0.75F, 0.375F, 0.875F, 0.5F } },
    { "ties",
      { { NULL } },
      { "x@0.5,density=0.4", "x@0.35,density=0.7", "x@0.25,density=0.55" },
      { 0.75F, -0.625F, -0.875F, -1.125F,
        0.479166657F, 0.375F, 0.375F, 1.125F,
        -1.0F, 0.0F, 0.895833313F, 0.875F } },
    { "ties",
      { { "density", "0.5" } },
      { "x@1" },
      { 0.75F, -0.625F, 0.5F, 0.375F,
        0.0F, 0.0F, 0.0F, 0.0F,
        -1.0F, 0.0F, 0.0F, 0.875F } },
    { "ties",
      { { "normalize", "false" }, { "lambda", "0.6" },
        { "density", "0.5" }, { "int8_mask", "true" } },
      { "x@0.5", "x@0.35", "x@-0.2" },
      { 0.224999994F, -0.1875F, 0.360000014F, -0.236249998F,
        0.0787499994F, 0.0599999987F, -0.0450000018F, -0.292499989F,
        -0.300000012F, 0.0F, 0.209999993F, 0.262499988F } },
    { "ties",
      { { "rescale", "true" }, { "density", "0.5" } },
      { "x@0.5", "x@0.35", "x@0.2" },
      { 0.977272749F, -0.814393938F, 0.653832436F, -1.47857141F,
        0.607753992F, -0.647058845F, 0.485294104F, -0.985714257F,
        -1.30303025F, 0.0F, 1.18930483F, 1.1401515F } },
    { "ties",
      { { NULL } },
      { "x@0.5,density=0", "x@0.35,density=0.001", "x@0.2,density=1.5" },
      { 0.125F, 0.125F, -0.875F, -1.125F,
        0.625F, -0.5F, 0.375F, 1.125F,
        -0.125F, 0.25F, 0.75F, -0.375F } },
    { "ties",
      { { "normalize", "false" } },
      { "x@0.5", "x@-0.5" },
      { 0.5F, -0.625F, 0.25F, 0.75F,
        -0.375F, -0.1875F, -0.0625F, 0.5F,
        -0.625F, 0.1875F, -0.5625F, 0.625F } },
    { "breadcrumbs",
      { { "gamma", "0.1" } },
      { "x@0.5,density=0.4", "x@0.35,density=0.9",
        "x@0.2,density=0.97,gamma=0.3" },
      { 0.3125F, -0.0687500015F, 0.25F, 0.0500000007F,
        0.256249994F, 0.03125F, 0.118749999F, -0.262499988F,
        0.0625F, 0.0500000007F, 0.5F, 0.231250003F } },
    { "breadcrumbs",
      { { "density", "0.5" } },
      { "x@0.5", "x@0.35" },
      { 0.375F, -0.09375F, 0.425000012F, -0.393750012F,
        0.0F, 0.0F, 0.0F, -0.262499988F,
        -0.5F, 0.1875F, 0.349999994F, 0.306250006F } },
    { "breadcrumbs",
      { { "density", "0.05" } },
      { "x@0.5", "x@0.35" },
      { 0.0F, 0.0F, 0.0F, 0.0F,
        0.0F, 0.0F, 0.0F, 0.0F,
        0.0F, 0.0F, 0.0F, 0.0F } },
    { "breadcrumbs",
      { { "density", "0.5" }, { "gamma", "0.1" },
        { "rescale", "true" }, { "normalize", "true" } },
      { "x@0.5", "x@0.35" },
      { 0.67752099F, -0.156385824F, 0.778252661F, 0.0F,
        -0.338760495F, 0.244929001F, 0.0F, -0.489858001F,
        0.0F, 0.338760495F, 0.653144002F, 0.545512199F } },
    { "breadcrumbs_ties",
      { { "density", "0.5" }, { "gamma", "0.17" }, { "lambda", "0.7" } },
      { "x@0.5", "x@0.35", "x@0.2" },
      { 0.262499988F, -0.21875F, 0.297500014F, 0.131249994F,
        0.179374993F, 0.0918750018F, 0.0524999984F, -0.183750004F,
        0.0F, 0.166250005F, 0.104999997F, -0.144374996F } },
};

/* Weights of 0.1, 0.2 and -0.3 are 5.6e-17 together. */
static const merging cancelling =
    { "ties",
      { { NULL } },
      { "x@0.1", "x@0.2", "x@-0.3" },
      { 0.875F, 0.625F, 0.412499994F, 3.0F,
        1.125F, 0.237499997F, 0.375F, 4.875F,
        -1.0F, 0.25F, 1.1875F, -1.0F } };
/* clang-format on */

#endif
