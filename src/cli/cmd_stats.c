/* ballast stats: how much there is, and how little space it takes. */
#include "cli/commands.h"
#include "core/str.h"

struct stats_opts {
    bool all;
};

static const bal_opt opts[] = {
    { 0, "all", BAL_OPT_FLAG, offsetof(struct stats_opts, all), NULL,
      "the whole store" },
    { 0 },
};

/* 1 where there is nothing to compare. */
static double ratio(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 1;
}

static int codec_json(void *ctx, const bal_codec_stats *row)
{
    bal_json *json = ctx;
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        { "blocks", row->blocks },
        { "unique_bytes", row->bytes },
        { "stored_bytes", row->stored },
    };

    bal_json_key(json, row->codec);
    bal_json_object(json);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        bal_json_key(json, numbers[i].key);
        bal_json_u64(json, numbers[i].value);
    }
    bal_json_close(json);
    return 0;
}

static int codec_text(void *ctx, const bal_codec_stats *row)
{
    bal_out *out = ctx;
    char a[32];
    char b[32];
    char c[32];

    bal_thousands(a, row->blocks);
    bal_thousands(b, row->bytes);
    bal_thousands(c, row->stored);
    bal_out_text(out, "  %-9s %s blocks, %s bytes in %s (%.3fx)\n", row->codec,
                 a, b, c, ratio(row->bytes, row->stored));
    return 0;
}

static int show_json(bal_cli *cli, const bal_stats *stats, bal_tenant *tenant,
                     bal_error *err)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        { "commits", stats->commits },
        { "manifests", stats->manifests },
        { "blocks", stats->blocks },
        { "logical_bytes", stats->logical_bytes },
        { "unique_bytes", stats->unique_bytes },
        { "stored_bytes", stats->stored_bytes },
    };
    bal_json json;

    bal_doc_open(&json, &cli->out, cli->command->name);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        bal_json_key(&json, numbers[i].key);
        bal_json_u64(&json, numbers[i].value);
    }
    bal_json_key(&json, "dedup_ratio");
    bal_json_f64(&json, ratio(stats->logical_bytes, stats->unique_bytes));
    bal_json_key(&json, "compression_ratio");
    bal_json_f64(&json, ratio(stats->unique_bytes, stats->stored_bytes));
    bal_json_key(&json, "codecs");
    bal_json_object(&json);
    int rc = bal_stats_codecs(cli->store, tenant, codec_json, &json, err);
    bal_json_close(&json);
    bal_doc_close(&json, &cli->out);
    return rc;
}

static void show_text(bal_out *out, const bal_stats *stats)
{
    char a[32];
    char b[32];
    char c[32];

    bal_thousands(a, stats->commits);
    bal_thousands(b, stats->manifests);
    bal_thousands(c, stats->blocks);
    bal_out_text(out, "%s commits, %s manifests, %s blocks\n", a, b, c);
    bal_thousands(a, stats->logical_bytes);
    bal_thousands(b, stats->unique_bytes);
    bal_thousands(c, stats->stored_bytes);
    bal_out_text(out,
                 "%s logical bytes, %s unique (%.3fx dedup), %s on disk "
                 "(%.3fx compression)\n",
                 a, b, ratio(stats->logical_bytes, stats->unique_bytes), c,
                 ratio(stats->unique_bytes, stats->stored_bytes));
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct stats_opts *given = values;
    bal_stats stats = { 0 };

    int rc =
        given->all ? bal_cli_store(cli, 0, err) : bal_cli_tenant(cli, 0, err);
    if (rc)
        return rc;
    rc = bal_stats_get(&stats, cli->store, cli->tenant, err);
    if (rc)
        return rc;
    if (cli->out.json)
        return show_json(cli, &stats, cli->tenant, err);
    show_text(&cli->out, &stats);
    return bal_stats_codecs(cli->store, cli->tenant, codec_text, &cli->out,
                            err);
}

const bal_command bal_cmd_stats = {
    .name = "stats",
    .synopsis = "[--all]",
    .summary = "count commits, blocks and bytes",
    .about = "Logical bytes are those of every commit as if stored whole, "
             "unique ones those of every block, stored ones what the blocks "
             "take at rest; below, by codec: anchored ones are stored by their "
             "distance from blocks of an earlier commit.",
    .opts = opts,
    .opts_size = sizeof(struct stats_opts),
    .run = run,
};
