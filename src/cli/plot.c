/* A picture of a diff. It is drawn into a buffer of its own first, because only
 * then is its size known, which stands in front. */
#include "cli/plot.h"

#include <string.h>

#include "cli/plot_inside.h"
#include "core/error.h"
#include "core/file.h"

#define PLOT_MAX ((size_t)256 << 20)

enum { TITLE_MAX = 90 };

/* A background of its own: whatever page it lies on, the ink is dark. Patterns
 * differ in more than colour. */
static const char *const styles[] = {
    "<style>text{font-family:system-ui,sans-serif;font-size:11px;fill:#222}"
    ".h{font-size:16px;font-weight:600}.r{text-anchor:end}"
    ".m{text-anchor:middle}.c{stroke:#fff;stroke-width:.5}"
    ".k{stroke:#777;stroke-width:.5}.b{fill:#31688e}"
    ".a{fill:none;stroke:#222}.t{stroke:#222}"
    ".d{stroke:#b2182b;stroke-width:1.5}</style>\n<defs>\n",
    "<pattern id=\"same\" width=\"6\" height=\"6\" "
    "patternUnits=\"userSpaceOnUse\"><rect width=\"6\" height=\"6\" "
    "fill=\"#f2f2f2\"/><circle cx=\"3\" cy=\"3\" r=\"1\" "
    "fill=\"#8a8a8a\"/></pattern>\n",
    "<pattern id=\"odd\" width=\"6\" height=\"6\" "
    "patternUnits=\"userSpaceOnUse\"><rect width=\"6\" height=\"6\" "
    "fill=\"#000\"/><path d=\"M0 0L6 6M6 0L0 6\" stroke=\"#fff\" "
    "stroke-width=\"1.2\"/></pattern>\n",
    "<pattern id=\"other\" width=\"6\" height=\"6\" "
    "patternUnits=\"userSpaceOnUse\"><rect width=\"6\" height=\"6\" "
    "fill=\"#fff\"/><path d=\"M1.5 0V6\" stroke=\"#c0392b\" "
    "stroke-width=\"2.5\"/></pattern>\n",
    "<pattern id=\"absent\" width=\"6\" height=\"6\" "
    "patternUnits=\"userSpaceOnUse\"><rect width=\"6\" height=\"6\" "
    "fill=\"#fff\"/><path d=\"M0 6L6 0\" stroke=\"#cfcfcf\" "
    "stroke-width=\".8\"/></pattern>\n</defs>\n",
};

static void put_two(bal_svg *svg, const bal_plot *plot)
{
    bal_svg_text(svg, plot->a);
    bal_svg_put(svg, " \xe2\x86\x92 ");
    bal_svg_text(svg, plot->b);
}

/* All but the frame, from the top down. */
static double draw_body(bal_svg *svg, const bal_grid *grid,
                        const bal_plot *plot, double *right)
{
    double y = BAL_PLOT_MARGIN + 14;

    bal_svg_label(svg, BAL_PLOT_MARGIN, y, "h", "Weights", 40);
    bal_svg_label(svg, BAL_PLOT_MARGIN, y + 20, "l", plot->a, TITLE_MAX);
    bal_svg_put(svg,
                "<text x=\"%.1f\" y=\"%.1f\" class=\"l\">\xe2\x86\x92"
                "</text>\n",
                BAL_PLOT_MARGIN, y + 36);
    bal_svg_label(svg, BAL_PLOT_MARGIN + 16, y + 36, "l", plot->b, TITLE_MAX);
    y = bal_plot_heat(svg, grid, y + 52, right);
    y = bal_plot_legend(svg, grid, y, right);
    if (plot->kld_count)
        y = bal_plot_bars(svg, plot, y + 16, right);
    return y;
}

static void draw_frame(bal_svg *svg, const bal_plot *plot, double width,
                       double height)
{
    bal_svg_put(svg,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
                "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n"
                "<title>",
                width, height, width, height);
    put_two(svg, plot);
    bal_svg_put(svg, "</title>\n");
    for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++)
        bal_svg_put(svg, "%s", styles[i]);
    bal_svg_put(svg, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n",
                width, height);
}

int bal_plot_draw(bal_buf *to, const bal_plot *plot, bal_error *err)
{
    BAL_LOCAL(bal_grid) grid = { 0 };
    BAL_LOCAL(bal_buf) body = { .ceiling = PLOT_MAX };
    bal_svg inside = { .to = &body };
    bal_svg around = { .to = to };
    double right = 0;
    int rc = bal_grid_fill(&grid, plot, err);
    if (rc)
        return rc;

    double bottom = draw_body(&inside, &grid, plot, &right);
    draw_frame(&around, plot, right + BAL_PLOT_MARGIN,
               bottom + BAL_PLOT_MARGIN);
    const bal_svg *failed = inside.rc ? &inside : &around;
    if (failed->rc && err)
        *err = failed->err;
    if (failed->rc)
        return failed->rc;
    rc = bal_buf_append(to, body.data, body.len, err);
    return rc ? rc : bal_buf_text(to, "</svg>\n", err);
}

int bal_plot_write(const char *path, const bal_plot *plot, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc = bal_plot_draw(&text, plot, err);
    if (rc)
        return bal_within(err, rc, "plot");

    return bal_file_replace(path, text.data, text.len, err);
}
