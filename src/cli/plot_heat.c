/* The map of what changed: a column a layer, a row a kind of module; tensors
 * outside of layers in a strip under it; what the colours say. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/plot_inside.h"
#include "core/arith.h"

enum { LABEL_MAX = 40 };

static const double digit = 6.6; /* of the labels' size */
static const double row_height = 18;
static const double widest = 24, narrowest = 7;
static const double room_across = 1100; /* that columns share */
static const double bar_width = 260;

/* Viridis (Smith, van der Walt; CC0): evenly spaced stops, whose lightness
 * grows all the way, so that it reads in grey and with every kind of colour
 * vision. */
static const uint8_t stops[][3] = {
    { 0x44, 0x01, 0x54 }, { 0x48, 0x28, 0x78 }, { 0x3e, 0x49, 0x89 },
    { 0x31, 0x68, 0x8e }, { 0x26, 0x82, 0x8e }, { 0x1f, 0x9e, 0x89 },
    { 0x35, 0xb7, 0x79 }, { 0x6e, 0xce, 0x58 }, { 0xb5, 0xde, 0x2b },
    { 0xfd, 0xe7, 0x25 },
};
enum { STOPS = sizeof(stops) / sizeof(stops[0]) };

/* at: 0 to 1. */
static void colour_of(char out[8], double at)
{
    double place = at * (STOPS - 1);
    size_t from = (size_t)bal_min((uint64_t)place, STOPS - 2);
    double part = place - (double)from;
    unsigned mixed[3];

    for (size_t i = 0; i < 3; i++)
        mixed[i] = (unsigned)lround(stops[from][i] * (1 - part) +
                                    stops[from + 1][i] * part);
    snprintf(out, 8, "#%02x%02x%02x", mixed[0] & 0xff, mixed[1] & 0xff,
             mixed[2] & 0xff);
}

/* How a cell without a colour of the scale is filled, and what it is called. */
static const struct {
    const char *fill;
    const char *word;
} kinds[BAL_CELL_KINDS] = {
    [BAL_CELL_SAME] = { "url(#same)", "unchanged" },
    [BAL_CELL_OTHER] = { "url(#other)", "added, removed or reshaped" },
    [BAL_CELL_ODD] = { "url(#odd)", "not finite" },
};

static void say_value(char out[48], const bal_cell *cell)
{
    if (cell->kind == BAL_CELL_CHANGED)
        snprintf(out, 48, "%.3g", cell->value);
    else
        snprintf(out, 48, "%s", kinds[cell->kind].word);
}

typedef struct box {
    double x, y, width, height;
} box;

static void draw_cell(bal_svg *svg, const bal_grid *grid, const bal_cell *cell,
                      box at)
{
    char colour[8];
    char value[48];
    double span = grid->high - grid->low;

    colour_of(colour, cell->kind == BAL_CELL_CHANGED
                          ? (log10(cell->value) - grid->low) / span
                          : 0);
    bal_svg_put(svg,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "class=\"c\" fill=\"%s\"><title>",
                at.x, at.y, at.width, at.height,
                cell->kind == BAL_CELL_CHANGED ? colour
                                               : kinds[cell->kind].fill);
    bal_svg_text(svg, cell->name);
    say_value(value, cell);
    bal_svg_put(svg, ": %s", value);
    if (cell->tensors > 1)
        bal_svg_put(svg, " (the most of %zu tensors)", cell->tensors);
    bal_svg_put(svg, "</title></rect>\n");
}

/* ---- layers -------------------------------------------------------------- */

static const char *module_at(const bal_grid *grid, size_t i)
{
    const char *const *names = (const char *const *)(void *)grid->modules.data;

    return names[i];
}

static size_t layer_at(const bal_grid *grid, size_t i)
{
    return ((const size_t *)(void *)grid->layers.data)[i];
}

static double label_room(const bal_grid *grid, size_t modules)
{
    double most = 12;

    for (size_t i = 0; i < modules; i++)
        most = fmax(most, bal_svg_width(module_at(grid, i)));
    for (size_t i = 0; i < bal_grid_count(grid); i++) {
        const bal_cell *cell = bal_grid_at(grid, i);
        if (cell->layer == BAL_NONE)
            most = fmax(most, bal_svg_width(cell->name));
    }
    return fmin(most, LABEL_MAX + 2) * digit + 10;
}

/* The next of 1, 2, 5, 10, 20 … */
static size_t round_up(double least)
{
    static const size_t of_ten[] = { 1, 2, 5 };
    size_t ten = 1;

    for (;; ten *= 10) {
        for (size_t i = 0; i < 3; i++) {
            if ((double)(ten * of_ten[i]) >= least)
                return ten * of_ten[i];
        }
    }
}

/* Numbers over the columns, as many as have room. */
static void draw_numbers(bal_svg *svg, const bal_grid *grid, box all,
                         double width)
{
    size_t count = grid->layers.len / sizeof(size_t);
    char last[24];
    int digits = snprintf(last, sizeof(last), "%zu", layer_at(grid, count - 1));
    size_t every = round_up((digits * digit + 6) / width);

    bal_svg_label(svg, all.x - 8, all.y - 6, "r", "layer", 8);
    for (size_t i = 0; i < count; i += every) {
        char text[24];
        snprintf(text, sizeof(text), "%zu", layer_at(grid, i));
        bal_svg_label(svg, all.x + ((double)i + 0.5) * width, all.y - 6, "m",
                      text, 8);
    }
}

static double draw_layers(bal_svg *svg, const bal_grid *grid, double left,
                          double y, double *right)
{
    size_t layers = grid->layers.len / sizeof(size_t);
    size_t modules = grid->modules.len / sizeof(const char *);
    if (!layers)
        return y;

    double width =
        fmax(narrowest, fmin(widest, floor(room_across / (double)layers)));
    box all = { left, y + 18, width * (double)layers,
                row_height * (double)modules };
    draw_numbers(svg, grid, all, width);
    bal_svg_put(svg,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "fill=\"url(#absent)\"/>\n",
                all.x, all.y, all.width, all.height);
    for (size_t i = 0; i < modules; i++)
        bal_svg_label(svg, left - 8, all.y + row_height * (double)i + 13, "r",
                      module_at(grid, i), LABEL_MAX);
    for (size_t i = 0; i < bal_grid_count(grid); i++) {
        const bal_cell *cell = bal_grid_at(grid, i);
        box at = { left + width * (double)cell->layer,
                   all.y + row_height * (double)cell->module, width,
                   row_height };
        if (cell->layer != BAL_NONE)
            draw_cell(svg, grid, cell, at);
    }
    *right = fmax(*right, all.x + all.width);
    return all.y + all.height;
}

/* ---- outside of layers --------------------------------------------------- */

static double draw_outside(bal_svg *svg, const bal_grid *grid, double left,
                           double y, double *right)
{
    if (!grid->outside)
        return y;
    if (grid->layers.len) {
        y += 24;
        bal_svg_label(svg, left - 8, y - 6, "r", "outside of layers", 20);
    }
    for (size_t i = 0; i < bal_grid_count(grid); i++) {
        const bal_cell *cell = bal_grid_at(grid, i);
        char value[48];

        if (cell->layer != BAL_NONE)
            continue;
        bal_svg_label(svg, left - 8, y + 13, "r", cell->name, LABEL_MAX);
        draw_cell(svg, grid, cell, (box){ left, y, widest, row_height });
        say_value(value, cell);
        bal_svg_label(svg, left + widest + 8, y + 13, "l", value, 48);
        y += row_height;
    }
    *right = fmax(*right, left + widest + 60);
    return y;
}

double bal_plot_heat(bal_svg *svg, const bal_grid *grid, double y,
                     double *right)
{
    size_t modules = grid->modules.len / sizeof(const char *);
    double left = BAL_PLOT_MARGIN + label_room(grid, modules);

    y = draw_layers(svg, grid, left, y, right);
    return draw_outside(svg, grid, left, y, right);
}

/* ---- legend -------------------------------------------------------------- */

static void draw_tick(bal_svg *svg, double x, double y, double log_value,
                      const char *class_)
{
    char text[32];

    snprintf(text, sizeof(text), "%.2g", pow(10, log_value));
    bal_svg_put(svg,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                "class=\"t\"/>\n",
                x, y, x, y + 4);
    bal_svg_label(svg, x, y + 16, class_, text, 12);
}

/* Both ends, and the powers of ten that are not near them. */
static void draw_ticks(bal_svg *svg, const bal_grid *grid, box bar)
{
    double span = grid->high - grid->low;
    double y = bar.y + bar.height;
    double every = ceil(span * 44 / bar.width);

    draw_tick(svg, bar.x, y, grid->low, "l");
    draw_tick(svg, bar.x + bar.width, y, grid->high, "r");
    for (int i = (int)ceil(grid->low); i <= (int)floor(grid->high); i++) {
        double x = (i - grid->low) / span * bar.width;
        bool near = x < 60 || x > bar.width - 60;
        if (!near && fmod(i, every) == 0) /* NOLINT: both are whole */
            draw_tick(svg, bar.x + x, y, i, "m");
    }
}

static void draw_bar(bal_svg *svg, const bal_grid *grid, box bar)
{
    char colour[8];

    bal_svg_label(svg, bar.x, bar.y - 6, "l",
                  "relative change |b \xe2\x88\x92 a| / |a|, log scale", 60);
    if (!(grid->low < grid->high) || !isfinite(grid->low)) {
        bal_svg_label(svg, bar.x, bar.y + 12, "l", "nothing that has a number",
                      40);
        return;
    }
    bal_svg_put(svg, "<defs><linearGradient id=\"scale\">\n");
    for (size_t i = 0; i < STOPS; i++) {
        colour_of(colour, (double)i / (STOPS - 1));
        bal_svg_put(svg, "<stop offset=\"%.4f\" stop-color=\"%s\"/>\n",
                    (double)i / (STOPS - 1), colour);
    }
    bal_svg_put(svg, "</linearGradient></defs>\n");
    bal_svg_put(svg,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "fill=\"url(#scale)\" class=\"c\"/>\n",
                bar.x, bar.y, bar.width, bar.height);
    draw_ticks(svg, grid, bar);
}

double bal_plot_legend(bal_svg *svg, const bal_grid *grid, double y,
                       double *right)
{
    static const struct {
        const char *fill;
        const char *word;
    } rows[] = {
        { "url(#same)", "unchanged" },
        { "url(#odd)", "not finite: no number, or the base is all 0" },
        { "url(#other)", "added, removed or reshaped" },
        { "url(#absent)", "no such tensor" },
    };
    size_t count = sizeof(rows) / sizeof(rows[0]);
    box bar = { BAL_PLOT_MARGIN, y + 38, bar_width, 14 };
    double x = bar.x + bar.width + 48;

    draw_bar(svg, grid, bar);
    for (size_t i = 0; i < count; i++) {
        double top = y + 20 + 18 * (double)i;
        bal_svg_put(svg,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"20\" height=\"14\" "
                    "class=\"k\" fill=\"%s\"/>\n",
                    x, top, rows[i].fill);
        bal_svg_label(svg, x + 28, top + 11, "l", rows[i].word, 60);
    }
    *right = fmax(*right, x + 28 + 44 * digit);
    return y + 20 + 18 * (double)count;
}
