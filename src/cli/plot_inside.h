/* What the files that draw a plot share. Lengths are pixels. */
#ifndef CLI_PLOT_INSIDE_H
#define CLI_PLOT_INSIDE_H

#include "cli/plot.h"
#include "cli/svg.h"
#include "core/map.h"

/* What is said of a cell; of several tensors the last of these that is so. */
typedef enum bal_cell_kind {
    BAL_CELL_SAME,
    BAL_CELL_CHANGED,
    BAL_CELL_OTHER, /* added, removed or reshaped */
    BAL_CELL_ODD,   /* no finite number */
    BAL_CELL_KINDS,
} bal_cell_kind;

typedef struct bal_cell {
    size_t layer, module; /* columns and rows; layer BAL_NONE: outside */
    bal_cell_kind kind;
    double value;     /* of CHANGED */
    const char *name; /* of the tensor that it is of */
    size_t tensors;
} bal_cell;

/* The cells of one plot. */
typedef struct bal_grid {
    bal_arena arena;
    bal_map cell_map;
    bal_buf cells;      /* bal_cell, in the order of the model */
    bal_map module_map; /* of modules in layers */
    bal_buf modules;    /* their names: const char * */
    bal_buf layers;     /* numbers that there are: size_t, ascending */
    size_t outside;     /* cells without a layer */
    double low, high;   /* log10 of what changed: the scale's ends */
} bal_grid;

BAL_CHECK int bal_grid_fill(bal_grid *out, const bal_plot *plot,
                            bal_error *err);
void bal_grid_done(bal_grid *self);
size_t bal_grid_count(const bal_grid *self);
const bal_cell *bal_grid_at(const bal_grid *self, size_t i);

/* The space at each side. */
#define BAL_PLOT_MARGIN 24.0

/* Each draws from y down and gives where it ended; *right grows to where it
 * ended on that side. */
double bal_plot_heat(bal_svg *svg, const bal_grid *grid, double y,
                     double *right);
double bal_plot_legend(bal_svg *svg, const bal_grid *grid, double y,
                       double *right);
double bal_plot_bars(bal_svg *svg, const bal_plot *plot, double y,
                     double *right);

#endif
