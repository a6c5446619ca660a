/* ballast wdelta inspect: what files tell of themselves, in the words of
 * deltatensors' inspect. */
#include <math.h>

#include "cli/wdelta.h"
#include "core/str.h"

static void show_json(bal_cli *cli, const bal_wdelta *file, size_t step)
{
    bal_wdelta_info info;
    bal_wdelta_row row;
    bal_json json;

    bal_wdelta_info_get(&info, file);
    if (cli->arg_count > 2)
        bal_line_open(&json, &cli->out, cli->command->name);
    else
        bal_doc_open(&json, &cli->out, cli->command->name);
    bal_json_key(&json, "path");
    bal_json_string(&json, info.path);
    bal_json_key(&json, "size_mb");
    bal_json_f64(&json, nearbyint((double)info.size / 1e4) / 1e2);
    bal_json_key(&json, "strategy");
    bal_json_string(&json, info.strategy);
    bal_json_key(&json, "n_tensors");
    bal_json_u64(&json, info.tensors);
    bal_json_key(&json, "parent_hash");
    bal_json_string(&json, info.parent_hash);
    bal_json_key(&json, "format_version");
    bal_json_u64(&json, info.version);
    bal_json_key(&json, "step");
    bal_json_u64(&json, step);
    bal_json_key(&json, "size");
    bal_json_u64(&json, info.size);
    bal_json_key(&json, "tensors");
    bal_json_object(&json);
    for (size_t i = 0; i < info.tensors; i++) {
        bal_wdelta_at(&row, file, i);
        bal_json_key(&json, row.name);
        bal_json_object(&json);
        bal_json_key(&json, "shape");
        bal_json_array(&json);
        for (uint32_t k = 0; k < row.rank; k++)
            bal_json_u64(&json, row.shape[k]);
        bal_json_close(&json);
        bal_json_key(&json, "dtype");
        bal_json_string(&json, row.dtype);
        bal_json_key(&json, "strategy");
        bal_json_string(&json, row.strategy);
        bal_json_key(&json, "bytes");
        bal_json_u64(&json, row.bytes);
        bal_json_close(&json);
    }
    bal_json_close(&json);
    bal_doc_close(&json, &cli->out);
}

static void show_text(bal_out *out, const bal_wdelta *file)
{
    bal_wdelta_info info;
    char size[32];

    bal_wdelta_info_get(&info, file);
    bal_thousands(size, info.size);
    bal_out_safe(out, info.path);
    bal_out_text(out, "\n  %zu tensors, %s bytes, strategy ", info.tensors,
                 size);
    bal_out_safe(out, info.strategy);
    bal_out_text(out, ", format %u\n  made against %s\n", info.version,
                 info.parent_hash);
}

int bal_cli_wdelta_inspect(bal_cli *cli, const bal_wdelta_opts *given,
                           bal_error *err)
{
    BAL_LOCAL(bal_wdelta_files) files = { 0 };
    int rc =
        bal_wdelta_files_open(&files, cli->args + 1, cli->arg_count - 1, err);
    if (rc)
        return rc;

    (void)given;
    for (size_t i = 0; i < files.count && !bal_out_stopped(&cli->out); i++) {
        if (cli->out.json)
            show_json(cli, files.at[i], i);
        else
            show_text(&cli->out, files.at[i]);
    }
    return 0;
}
