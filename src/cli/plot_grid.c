/* Tensors become cells: by layer and module, as parts.h has them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plot_inside.h"
#include "core/error.h"
#include "report/parts.h"

/* A scale of less than this many decades would make much of nothing. */
static const double least_span = 0.5;

void bal_grid_done(bal_grid *self)
{
    bal_arena_done(&self->arena);
    bal_map_done(&self->cell_map);
    bal_buf_done(&self->cells);
    bal_map_done(&self->module_map);
    bal_buf_done(&self->modules);
    bal_buf_done(&self->layers);
}

size_t bal_grid_count(const bal_grid *self)
{
    return self->cells.len / sizeof(bal_cell);
}

static bal_cell *cell_at(const bal_grid *self, size_t i)
{
    return (bal_cell *)(void *)self->cells.data + i;
}

const bal_cell *bal_grid_at(const bal_grid *self, size_t i)
{
    return cell_at(self, i);
}

static bal_cell_kind kind_of(const bal_plot_row *row)
{
    static const bal_cell_kind kinds[] = {
        [BAL_UNCHANGED] = BAL_CELL_SAME,     [BAL_ADDED] = BAL_CELL_OTHER,
        [BAL_REMOVED] = BAL_CELL_OTHER,      [BAL_RESHAPED] = BAL_CELL_OTHER,
        [BAL_DTYPE_CHANGED] = BAL_CELL_SAME,
    };

    if (row->change != BAL_CHANGED)
        return kinds[row->change];
    if (!isfinite(row->relative))
        return BAL_CELL_ODD;
    return row->relative > 0 ? BAL_CELL_CHANGED : BAL_CELL_SAME;
}

/* The text's number; one that is new gets the next. */
static int number_of(size_t *out, bool *there, bal_grid *self, bal_map *map,
                     const char *text, bal_error *err)
{
    size_t len = strlen(text);

    *out = bal_map_find(map, text, len);
    *there = *out != BAL_NONE;
    if (*there)
        return 0;
    *out = map->count;
    const char *copy = bal_arena_copy(&self->arena, text, len);
    return copy ? bal_map_add(map, copy, len, out, there, err)
                : bal_fail_memory(err, "a plot");
}

static int find_module(size_t *out, bal_grid *self, const char *module,
                       bal_error *err)
{
    bool there;
    int rc = number_of(out, &there, self, &self->module_map, module, err);
    if (rc || there)
        return rc;

    const char *kept = bal_arena_copy(&self->arena, module, strlen(module));
    if (!kept)
        return bal_fail_memory(err, "a plot");
    return bal_buf_append(&self->modules, &kept, sizeof(kept), err);
}

static void merge(bal_cell *into, const bal_cell *from)
{
    bool more = from->kind > into->kind ||
                (from->kind == into->kind && from->value > into->value);

    into->tensors++;
    if (!more)
        return;
    into->kind = from->kind;
    into->value = from->value;
    into->name = from->name;
}

static int add_row(bal_grid *self, const bal_plot_row *row, bal_error *err)
{
    char module[BAL_MODULE_ROOM];
    char key[BAL_MODULE_ROOM + 32];
    bal_cell cell = { .name = row->name, .kind = kind_of(row), .tensors = 1 };
    size_t index;
    bool there;
    int rc = 0;

    bal_part_of(row->name, &cell.layer, module);
    cell.value = cell.kind == BAL_CELL_CHANGED ? row->relative : 0;
    snprintf(key, sizeof(key), "%zu %s", cell.layer, module);
    if (cell.layer != BAL_NONE)
        rc = find_module(&cell.module, self, module, err);
    if (!rc)
        rc = number_of(&index, &there, self, &self->cell_map, key, err);
    if (rc)
        return rc;
    if (there) {
        merge(cell_at(self, index), &cell);
        return 0;
    }
    self->outside += cell.layer == BAL_NONE;
    return bal_buf_append(&self->cells, &cell, sizeof(cell), err);
}

static int compare_layers(const void *a, const void *b)
{
    size_t one = *(const size_t *)a;
    size_t two = *(const size_t *)b;

    return (one > two) - (one < two);
}

/* Numbers become columns: those that there are, however large. */
static int settle_layers(bal_grid *self, bal_error *err)
{
    size_t count = 0;
    int rc = 0;

    for (size_t i = 0; i < bal_grid_count(self) && !rc; i++) {
        const bal_cell *cell = cell_at(self, i);
        if (cell->layer != BAL_NONE)
            rc = bal_buf_append(&self->layers, &cell->layer,
                                sizeof(cell->layer), err);
    }
    if (rc || !self->layers.len)
        return rc;
    size_t *layers = (size_t *)(void *)self->layers.data;
    size_t all = self->layers.len / sizeof(*layers);
    qsort(layers, all, sizeof(*layers), compare_layers);
    for (size_t i = 0; i < all; i++) {
        if (!count || layers[count - 1] != layers[i])
            layers[count++] = layers[i];
    }
    self->layers.len = count * sizeof(*layers);
    for (size_t i = 0; i < bal_grid_count(self); i++) {
        bal_cell *cell = cell_at(self, i);
        if (cell->layer == BAL_NONE)
            continue;
        const size_t *at = bsearch(&cell->layer, layers, count, sizeof(*layers),
                                   compare_layers);
        cell->layer = (size_t)(at - layers);
    }
    return 0;
}

static void settle_scale(bal_grid *self)
{
    double low = (double)INFINITY;
    double high = -(double)INFINITY;

    for (size_t i = 0; i < bal_grid_count(self); i++) {
        const bal_cell *cell = cell_at(self, i);
        if (cell->kind != BAL_CELL_CHANGED)
            continue;
        low = fmin(low, log10(cell->value));
        high = fmax(high, log10(cell->value));
    }
    double lack = fmax(0, least_span - (high - low));
    self->low = low - lack / 2;
    self->high = high + lack / 2;
}

int bal_grid_fill(bal_grid *out, const bal_plot *plot, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < plot->count && !rc; i++)
        rc = add_row(out, &plot->rows[i], err);
    if (!rc)
        rc = settle_layers(out, err);
    if (!rc)
        settle_scale(out);
    return rc;
}
