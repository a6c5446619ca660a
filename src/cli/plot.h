/* A picture of a diff, as SVG: how much each module changed in each layer, and
 * how far apart the answers are. */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include "core/buf.h"

/* A tensor. */
typedef struct bal_plot_row {
    const char *name;
    bal_change change;
    double relative; /* of CHANGED; inf or NAN: it is no finite number */
} bal_plot_row;

typedef struct bal_plot {
    const char *a, *b; /* what to call the two */
    const bal_plot_row *rows;
    size_t count;
    const double *klds;      /* of each token, in nats */
    size_t kld_count;        /* 0: log-probabilities were not compared */
    double mean, p99, noise; /* of them; NAN: not known */
} bal_plot;

/* Write the picture in the place of what is there, complete or not at all.
 * Factors of one LoRA module, and its experts, are one cell: the largest. */
BAL_CHECK int bal_plot_write(const char *path, const bal_plot *plot,
                             bal_error *err);
/* The same into memory. */
BAL_CHECK int bal_plot_draw(bal_buf *to, const bal_plot *plot, bal_error *err);

#endif
