/* Tiles: the same range of every input, widened to double, less the base where
 * the method wants differences. Their size is chosen for a core's cache and
 * shows in nothing that a method computes. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/view.h"
#include "model/elements.h"

enum {
    TILE_MOST = 16 * 1024, /* elements */
    TILE_LEAST = 1024,
    TILE_MEMORY = 4 << 20, /* bytes of all of a tile's rows together */
};

/* A tile's memory, in rows of `most` elements: the inputs that take part, the
 * base, the method's scratch. */
typedef struct tiles {
    bal_view *view;
    const bal_view_row *row;
    bal_tile tile;
    const double **inputs;
    double *memory;
    size_t most;
} tiles;

static void tiles_done(tiles *self)
{
    free(self->memory);
    free(self->inputs);
}

static size_t rows_of(const bal_view *view, const bal_view_row *row)
{
    const bal_method *method = view->method;

    return row->count + row->based + method->scratch +
           method->scratch_each * row->count;
}

size_t bal_view_tile_size(const bal_view *self, const bal_view_row *row,
                          uint64_t n)
{
    size_t unit = row->unit;
    /* One more row: the result. */
    size_t most = TILE_MEMORY / sizeof(double) / (rows_of(self, row) + 1);
    uint64_t need = unit == 1 ? n : (n / unit + 2) * unit;

    most = bal_min(bal_max(most, TILE_LEAST), TILE_MOST);
    most -= most % 8;
    if (self->tile)
        most = self->tile;
    most = bal_max(most - most % unit, unit);
    return bal_min(bal_min(most, need), row->extent.total);
}

bal_tile bal_view_no_tile(const bal_view *self, const bal_view_row *row)
{
    return (bal_tile){
        .method = self->method,
        .weights = row->weights,
        .which = row->which,
        .count = row->count,
        .tensor = row->name,
        .extent = &row->extent,
        .arith = &row->arith,
        .seed = self->seed,
        .stream = self->stream,
        .drawn = row->drawn,
        .prepared = row->prepared,
    };
}

static int tiles_init(tiles *self, uint64_t n, bal_error *err)
{
    const bal_view_row *row = self->row;
    size_t rows = rows_of(self->view, row);

    self->most = bal_view_tile_size(self->view, row, n);
    self->inputs = calloc(row->count + 1, sizeof(*self->inputs));
    self->memory = malloc((rows + 1) * self->most * sizeof(*self->memory));
    if (!self->inputs || !self->memory)
        return bal_fail_memory(err, "merging");
    for (size_t k = 0; k < row->count; k++)
        self->inputs[k] = self->memory + k * self->most;
    self->tile = bal_view_no_tile(self->view, row);
    self->tile.inputs = self->inputs;
    if (row->based)
        self->tile.base = self->memory + row->count * self->most;
    self->tile.scratch = self->memory + (row->count + row->based) * self->most;
    return 0;
}

/* One input's elements, in the dtype that is worked in. BAL_NONE, or what is as
 * it is in the base of differences: zeros. */
static int read_input(double *to, const tiles *self, size_t input,
                      uint64_t start, size_t n, bal_error *err)
{
    const bal_view_row *row = self->row;
    const bal_tensor *source =
        input == BAL_NONE ? NULL : bal_view_source(self->view, row, input);

    if (!source || source->form == BAL_FORM_SAME ||
        source->form == BAL_FORM_REMOVED) {
        memset(to, 0, n * sizeof(*to));
        return 0;
    }
    int rc = bal_elements_read(to, self->view->inputs[input],
                               row->sources[input], start, n, err);
    if (!rc && row->arith.mergekit && source->dtype != row->arith.work)
        bal_arith_round(&row->arith, to, n);
    return rc;
}

/* Elements [start, start + n) of all. */
static int tiles_fill(tiles *self, uint64_t start, size_t n, bal_error *err)
{
    const bal_view *view = self->view;
    const bal_view_row *row = self->row;
    double *base = self->memory + row->count * self->most;
    bool origin = row->based && view->method->role == BAL_ROLE_ORIGIN;
    int rc = row->based
                 ? read_input(base, self, bal_view_slice_of(view, row)->base,
                              start, n, err)
                 : 0;

    for (size_t k = 0; !rc && k < row->count; k++) {
        double *to = self->memory + k * self->most;

        rc = read_input(to, self, row->which[k], start, n, err);
        if (!rc && origin)
            bal_op_sub(&row->arith, to, to, base, n);
    }
    self->tile.start = start;
    self->tile.n = n;
    return rc;
}

int bal_view_each(bal_view *self, const bal_view_row *row, uint64_t start,
                  uint64_t n, bal_tile_fn *fn, void *ctx, bal_error *err)
{
    BAL_LOCAL(tiles) tiled = { .view = self, .row = row };
    uint64_t end = start + n;
    uint64_t total = row->extent.total;

    if (!n)
        return 0;
    start -= start % row->unit;
    end = bal_min((end - 1) / row->unit * row->unit + row->unit, total);
    int rc = tiles_init(&tiled, n, err);
    while (!rc && start < end) {
        size_t count = bal_min(end - start, tiled.most);
        rc = tiles_fill(&tiled, start, count, err);
        if (!rc)
            rc = fn(ctx, &tiled.tile, err);
        start += count;
    }
    return rc;
}

int bal_view_tiles(bal_walk *walk, bal_tile_fn *fn, void *ctx, bal_error *err)
{
    return bal_view_each(walk->view, walk->row, 0, walk->row->extent.total, fn,
                         ctx, err);
}
