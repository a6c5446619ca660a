/* Plots: what is in them, and that nobody's names become markup. */
#include <math.h>
#include <string.h>

#include "cli/plot_inside.h"
#include "core/file.h"
#include "core/str.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static size_t times(const char *text, const char *word)
{
    size_t count = 0;

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        count++;
    return count;
}

static void draw(bal_buf *to, const bal_plot *plot)
{
    bal_buf_clear(to);
    CHECK_OK(bal_plot_draw(to, plot, &check_err));
}

static const bal_plot_row model[] = {
    { "lm_head.weight", BAL_CHANGED, 0.5 },
    { "model.layers.0.mlp.up.weight", BAL_CHANGED, 0.01 },
    { "model.layers.0.attn.q.weight", BAL_UNCHANGED, 0 },
    { "model.layers.1.attn.q.weight", BAL_CHANGED, 0 },
    { "model.layers.10.attn.q.weight", BAL_ADDED, 0 },
    { "model.layers.2.attn.q.weight", BAL_DTYPE_CHANGED, 0 },
};

static void each_cell_says_what_it_is(void)
{
    static const char *const lines[] = {
        ">lm_head.weight: 0.5<",
        ">model.layers.0.mlp.up.weight: 0.01<",
        "fill=\"url(#same)\"><title>model.layers.0.attn.q.weight: unchanged<",
        "fill=\"url(#same)\"><title>model.layers.1.attn.q.weight: unchanged<",
        "fill=\"url(#other)\"><title>model.layers.10.attn.q.weight: added",
        "fill=\"url(#same)\"><title>model.layers.2.attn.q.weight: unchanged<",
        "outside of layers",
        ">a one \xe2\x86\x92 b two</title>",
    };
    BAL_LOCAL(bal_buf) svg = { 0 };
    bal_plot plot = {
        .a = "a one", .b = "b two", .rows = model, .count = COUNT(model)
    };

    draw(&svg, &plot);
    for (size_t i = 0; i < COUNT(lines); i++) {
        check_row(lines[i]);
        CHECK(times(svg.data, lines[i]) == 1);
    }
    CHECK(times(svg.data, "Answers") == 0);
}

static void what_is_not_finite_is_never_a_number(void)
{
    static const bal_plot_row rows[] = {
        { "layers.0.a", BAL_CHANGED, (double)INFINITY },
        { "layers.1.a", BAL_CHANGED, (double)NAN },
        { "layers.2.a", BAL_CHANGED, 1e300 },
        { "layers.3.a", BAL_CHANGED, 5e-324 },
    };
    BAL_LOCAL(bal_buf) svg = { 0 };
    double klds[] = { 0, 1e-300, 3, (double)INFINITY, (double)NAN };
    bal_plot plot = {
        .a = "",
        .b = "",
        .rows = rows,
        .count = COUNT(rows),
        .klds = klds,
        .kld_count = COUNT(klds),
        .mean = (double)NAN,
        .p99 = (double)INFINITY,
        .noise = 0,
    };

    draw(&svg, &plot);
    CHECK(times(svg.data, "fill=\"url(#odd)\"><title>") == 2);
    CHECK(times(svg.data, "\"nan\"") == 0 && times(svg.data, "\"inf\"") == 0);
    CHECK(times(svg.data, "\"-nan\"") == 0);
    CHECK(times(svg.data, "mean not known") == 1);
}

static void factors_and_experts_are_one_cell(void)
{
    static const bal_plot_row rows[] = {
        { "m.layers.0.q.lora_A.weight", BAL_CHANGED, 0.25 },
        { "m.layers.0.q.lora_B.weight", BAL_CHANGED, 0.75 },
        { "m.layers.0.moe.experts.0.up.weight", BAL_UNCHANGED, 0 },
        { "m.layers.0.moe.experts.1.up.weight", BAL_CHANGED, 0.125 },
        { "m.layers.0.moe.experts.2.up.weight", BAL_CHANGED, 0.0625 },
    };
    BAL_LOCAL(bal_grid) grid = { 0 };
    bal_plot plot = { .rows = rows, .count = COUNT(rows) };

    CHECK_OK(bal_grid_fill(&grid, &plot, &check_err));
    CHECK(bal_grid_count(&grid) == 2);
    const bal_cell *q = bal_grid_at(&grid, 0);
    const bal_cell *up = bal_grid_at(&grid, 1);
    CHECK(q->tensors == 2 && fabs(q->value - 0.75) < 1e-12);
    CHECK(!strcmp(q->name, rows[1].name));
    CHECK(up->tensors == 3 && fabs(up->value - 0.125) < 1e-12);
    CHECK(!strcmp(up->name, rows[3].name));
}

/* A number that is no layer of anybody's makes no columns. */
static void large_numbers_make_no_large_picture(void)
{
    static const bal_plot_row rows[] = {
        { "layers.0.a", BAL_CHANGED, 0.5 },
        { "layers.999999.a", BAL_CHANGED, 0.5 },
    };
    BAL_LOCAL(bal_buf) svg = { 0 };
    bal_plot plot = { .a = "", .b = "", .rows = rows, .count = COUNT(rows) };

    draw(&svg, &plot);
    CHECK(svg.len < 8192);
}

/* Only what XML allows, outside of tags and entities of our own. */
static void check_markup(const char *svg, size_t len)
{
    CHECK(bal_utf8_valid(svg, len));
    for (size_t i = 0; i < len; i++) {
        uint8_t c = (uint8_t)svg[i];
        CHECK(c == '\n' || (c >= 0x20 && c != 0x7f));
    }
    CHECK(!strstr(svg, "\xef\xbf\xbe") && !strstr(svg, "\xef\xbf\xbf"));
    CHECK(!strstr(svg, "\xe2\x80\xae"));
}

static void hostile_names_are_text(void)
{
    static const char *const names[] = {
        "<script>alert(1)</script>",
        "\"><svg onload='x'>",
        "]]>&amp;&#0;",
        "\x01\x02\x1b[31m\x7f\r\n\t",
        "\xff\xfe\xc3",
        "\xef\xbf\xbe\xef\xbf\xbf",
        "\xe2\x80\xae live",
        "--><!-- <?xml <![CDATA[",
        "%s%n%1000000d",
        "",
    };
    for (size_t i = 0; i < COUNT(names); i++) {
        BAL_LOCAL(bal_buf) name = { 0 };
        BAL_LOCAL(bal_buf) svg = { 0 };
        bal_plot_row rows[2] = { { names[i], BAL_CHANGED, 0.5 },
                                 { NULL, BAL_CHANGED, 0.25 } };
        bal_plot plot = {
            .a = names[i], .b = names[i], .rows = rows, .count = 2
        };

        CHECK_OK(bal_buf_format(&name, &check_err, "layers.3.%s", names[i]));
        rows[1].name = name.data;
        check_row(names[i]);
        draw(&svg, &plot);
        check_markup(svg.data, svg.len);
        CHECK(!strstr(svg.data, "<script") && !strstr(svg.data, "<svg onload"));
        CHECK(!strstr(svg.data, "<!") && !strstr(svg.data, "<?"));
        CHECK(!strstr(svg.data, "&#0;") && !strstr(svg.data, "]]>"));
        CHECK(times(svg.data, "<") ==
              2 * times(svg.data, "</") + times(svg.data, "/>"));
    }
}

static void the_file_takes_the_place_of_what_was_there(void)
{
    BAL_LOCAL(bal_buf) svg = { 0 };
    BAL_LOCAL(bal_buf) back = { 0 };
    char path[4096];
    bal_plot plot = {
        .a = "a", .b = "b", .rows = model, .count = COUNT(model)
    };

    snprintf(path, sizeof(path), "%s/plot.svg", check_dir());
    CHECK_OK(bal_file_replace(path, "old", 3, &check_err));
    CHECK_OK(bal_plot_write(path, &plot, &check_err));
    CHECK_OK(bal_file_slurp(&back, path, 1 << 20, &check_err));
    draw(&svg, &plot);
    CHECK(svg.len == back.len && !memcmp(svg.data, back.data, svg.len));
    snprintf(path, sizeof(path), "%s/none/plot.svg", check_dir());
    CHECK_RC(BAL_ENOTFOUND, bal_plot_write(path, &plot, &check_err));
}

static void nothing_at_all_is_a_picture(void)
{
    BAL_LOCAL(bal_buf) svg = { 0 };
    bal_plot plot = { .a = "a", .b = "b" };

    draw(&svg, &plot);
    CHECK(times(svg.data, "</svg>") == 1);
}

static const check_test tests[] = {
    { TEST(each_cell_says_what_it_is) },
    { TEST(what_is_not_finite_is_never_a_number) },
    { TEST(factors_and_experts_are_one_cell) },
    { TEST(large_numbers_make_no_large_picture) },
    { TEST(hostile_names_are_text) },
    { TEST(the_file_takes_the_place_of_what_was_there) },
    { TEST(nothing_at_all_is_a_picture) },
};

CHECK_MAIN(tests)
