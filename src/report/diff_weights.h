/* What a diff says of weights: tensor by tensor, layer by layer, by kind of
 * module, and of all. */
#ifndef REPORT_DIFF_WEIGHTS_H
#define REPORT_DIFF_WEIGHTS_H

#include "report/diff_groups.h"

/* What a row of bal_diff leaves behind. */
typedef struct bal_diff_entry {
    const char *name;
    bal_change change;
    bool dtype_changed, finite;
    double relative, max_abs;
} bal_diff_entry;

typedef struct bal_diff_weights {
    bal_work *work;  /* borrowed */
    bal_diff_fn *fn; /* told of each row as it comes; NULL: none */
    void *ctx;
    bal_buf entries; /* bal_diff_entry, of all tensors */
    bal_arena names;
    size_t shared;
    size_t differing; /* entries that are not unchanged */
    size_t counts[BAL_DTYPE_CHANGED + 1];
    double diff2, norm2;
    bool unmeasured; /* a change that is not in these sums */
    double most;     /* relative change of the most changed tensor */
    const char *most_name;
    bal_diff_groups layers, modules;
    bal_diff_groups cells; /* modules in layers, "" for those outside */
    int rc;
    bal_error err;
} bal_diff_weights;

void bal_diff_weights_done(bal_diff_weights *self);
/* out->work, fn and ctx are set. If fn stops, it is of the rows until then. */
BAL_CHECK int bal_diff_weights_fill(bal_diff_weights *out, bal_model *a,
                                    bal_model *b, bal_error *err);
const bal_diff_entry *bal_diff_weights_at(const bal_diff_weights *self,
                                          size_t i); /* NULL behind the last */
/* |b - a| / |a| over all that was compared; inf where something changed that no
 * number tells. */
double bal_diff_weights_overall(const bal_diff_weights *self);
/* True if anything changed by more than threshold, or in a way that is not
 * measured: added, removed, reshaped, not finite. */
bool bal_diff_weights_moved(const bal_diff_weights *self, double threshold);
/* Members, into the open object: "shared" to "non_finite"; "layers" and
 * "modules". */
void bal_diff_weights_json(bal_json *json, const bal_diff_weights *self);
void bal_diff_weights_json_groups(bal_json *json, const bal_diff_weights *self);

#endif
