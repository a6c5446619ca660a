/* How far apart the answers are, token by token: a histogram with bins of the
 * same width on a log scale. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/plot_inside.h"
#include "core/arith.h"
#include "core/str.h"

enum { BINS = 40 };

static const double height = 140;
static const double bin_width = 14;
static const double zero_room = 54; /* of the bar of those that are 0 */
static const double decades = 8;    /* what is smaller is as good as 0 */

typedef struct histogram {
    double low, high; /* log10 */
    uint64_t bins[BINS];
    uint64_t zeros; /* and what is below low */
    uint64_t most;
    bool any; /* that is above 0 */
} histogram;

static void find_ends(histogram *self, const bal_plot *plot)
{
    double low = (double)INFINITY;
    double high = -(double)INFINITY;

    for (size_t i = 0; i < plot->kld_count; i++) {
        double value = plot->klds[i];
        if (!(value > 0) || !isfinite(value))
            continue;
        low = fmin(low, log10(value));
        high = fmax(high, log10(value));
    }
    self->any = high >= low;
    self->low = self->any ? floor(fmax(low, high - decades)) : -1;
    self->high = self->any ? fmax(ceil(high), self->low + 1) : 0;
}

static void fill(histogram *self, const bal_plot *plot)
{
    double span = self->high - self->low;

    for (size_t i = 0; i < plot->kld_count; i++) {
        double value = plot->klds[i];
        double at = value > 0 ? (log10(value) - self->low) / span * BINS : -1;

        if (isnan(value))
            continue;
        if (at >= 0)
            self->bins[bal_min((uint64_t)fmin(at, BINS), BINS - 1)]++;
        else
            self->zeros++;
    }
    self->most = self->zeros;
    for (size_t i = 0; i < BINS; i++)
        self->most = bal_max(self->most, self->bins[i]);
}

/* Where the bars stand. */
typedef struct frame {
    double left, top;
} frame;

static void draw_one(bal_svg *svg, const histogram *of, frame at, double x,
                     uint64_t count)
{
    double tall = height * (double)count / (double)of->most;

    if (!count)
        return;
    bal_svg_put(svg,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "class=\"b\"><title>%llu tokens",
                x + 0.5, at.top + height - tall, bin_width - 1, tall,
                (unsigned long long)count);
}

static double place(const histogram *of, frame at, double log_value)
{
    double span = of->high - of->low;

    return at.left + zero_room +
           (log_value - of->low) / span * (BINS * bin_width);
}

static void draw_bins(bal_svg *svg, const histogram *of, frame at)
{
    double step = (of->high - of->low) / BINS;

    if (of->zeros) {
        draw_one(svg, of, at, at.left + 8, of->zeros);
        bal_svg_put(svg, of->any ? ": 0, or less than %.2g" : ": %.0f",
                    of->any ? pow(10, of->low) : 0);
        bal_svg_put(svg, "</title></rect>\n");
    }
    for (size_t i = 0; i < BINS; i++) {
        double from = of->low + step * (double)i;
        if (!of->bins[i])
            continue;
        draw_one(svg, of, at, place(of, at, from), of->bins[i]);
        bal_svg_put(svg, ": %.2g to %.2g</title></rect>\n", pow(10, from),
                    pow(10, from + step));
    }
}

static void draw_axes(bal_svg *svg, const histogram *of, frame at)
{
    double floor_y = at.top + height;
    double right = at.left + zero_room + BINS * bin_width;
    char most[32];

    bal_thousands(most, of->most);
    bal_svg_put(svg, "<path d=\"M%.1f %.1fV%.1fH%.1f\" class=\"a\"/>\n",
                at.left, at.top, floor_y, right);
    bal_svg_label(svg, at.left - 6, at.top + 4, "r", most, 16);
    bal_svg_label(svg, at.left - 6, floor_y, "r", "0", 4);
    bal_svg_label(svg, at.left + 8 + bin_width / 2, floor_y + 16, "m", "0", 4);
    for (int i = (int)of->low; i <= (int)of->high && of->any; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%g", pow(10, i));
        double x = place(of, at, i);
        bal_svg_put(svg,
                    "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                    "class=\"t\"/>\n",
                    x, floor_y, x, floor_y + 4);
        bal_svg_label(svg, x, floor_y + 16, "m", text, 12);
    }
}

/* A line at a value, its name at a height of its own. */
static void draw_mark(bal_svg *svg, const histogram *of, frame at, size_t row,
                      const char *name, double value)
{
    static const char *const dashes[] = { "2 3", "none", "6 3" };
    double y = at.top - 10 - 14 * (double)(2 - row);
    double x = place(of, at, log10(value));
    char text[64];

    if (!(value > 0) || !isfinite(value) || log10(value) < of->low ||
        log10(value) > of->high || !of->any)
        return;
    bool late = x > at.left + zero_room + BINS * bin_width * 0.75;
    snprintf(text, sizeof(text), "%s %.3g", name, value);
    bal_svg_put(svg,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                "class=\"d\" stroke-dasharray=\"%s\"/>\n",
                x, y - 8, x, at.top + height, dashes[row]);
    bal_svg_label(svg, late ? x - 4 : x + 4, y, late ? "r" : "l", text, 40);
}

static void say_number(bal_svg *svg, const char *name, double value)
{
    if (isnan(value))
        bal_svg_put(svg, ", %s not known", name);
    else
        bal_svg_put(svg, ", %s %.3g", name, value);
}

double bal_plot_bars(bal_svg *svg, const bal_plot *plot, double y,
                     double *right)
{
    histogram of = { 0 };
    frame at = { BAL_PLOT_MARGIN + 48, y + 104 };
    char tokens[32];

    find_ends(&of, plot);
    fill(&of, plot);
    of.most = bal_max(of.most, 1);
    bal_thousands(tokens, plot->kld_count);
    bal_svg_label(svg, BAL_PLOT_MARGIN, y + 24, "h", "Answers", 40);
    bal_svg_put(svg,
                "<text x=\"%.1f\" y=\"%.1f\" class=\"l\">KL divergence of "
                "each of %s tokens (nats)",
                BAL_PLOT_MARGIN, y + 42, tokens);
    say_number(svg, "mean", plot->mean);
    say_number(svg, "p99", plot->p99);
    say_number(svg, "noise", plot->noise);
    bal_svg_put(svg, "</text>\n");
    draw_bins(svg, &of, at);
    draw_axes(svg, &of, at);
    draw_mark(svg, &of, at, 0, "noise", plot->noise);
    draw_mark(svg, &of, at, 1, "mean", plot->mean);
    draw_mark(svg, &of, at, 2, "p99", plot->p99);
    *right = fmax(*right, at.left + zero_room + BINS * bin_width + 20);
    return at.top + height + 24;
}
