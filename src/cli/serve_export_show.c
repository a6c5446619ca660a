/* What was exported, as lines, as JSON, and as a file for whoever serves it. */
#include "cli/serve_export.h"
#include "core/file.h"

static void id_member(bal_json *json, const char *key, const bal_id *id)
{
    bal_json_key(json, key);
    bal_json_id(json, id);
}

static void text_member(bal_json *json, const char *key, const char *text)
{
    bal_json_key(json, key);
    bal_json_string(json, text);
}

static void u64_member(bal_json *json, const char *key, uint64_t value)
{
    bal_json_key(json, key);
    bal_json_u64(json, value);
}

static void show_exported(bal_json *json, const bal_exported_info *info)
{
    bal_json_object(json);
    text_member(json, "name", info->name);
    u64_member(json, "int_id", info->int_id);
    text_member(json, "path", info->path);
    text_member(json, "tenant", info->tenant);
    text_member(json, "ref", info->ref);
    id_member(json, "commit", &info->commit);
    id_member(json, "manifest", &info->manifest);
    text_member(json, "base_model", info->base_model);
    u64_member(json, "rank", info->rank);
    bal_json_key(json, "reused");
    bal_json_bool(json, info->reused);
    bal_json_close(json);
}

void bal_cli_exports_json(bal_cli *cli, const bal_export_list *self)
{
    bal_out *out = &cli->out;
    bal_json json;

    bal_doc_open(&json, out, cli->command->name);
    bal_json_key(&json, "exported");
    bal_json_array(&json);
    for (size_t i = 0; i < self->count; i++) {
        if (self->rows[i].done)
            show_exported(&json, &self->rows[i].info);
    }
    bal_json_close(&json);
    bal_json_key(&json, "skipped");
    bal_json_object(&json);
    for (size_t i = 0; i < self->count; i++) {
        if (self->rows[i].why)
            text_member(&json, self->rows[i].spec, self->rows[i].why);
    }
    bal_json_close(&json);
    bal_json_key(&json, "pruned");
    bal_json_array(&json);
    for (size_t at = 0; at < self->pruned.len; at += sizeof(char *)) {
        const char *path;
        memcpy(&path, self->pruned.data + at, sizeof(path));
        bal_json_string(&json, path);
    }
    bal_json_close(&json);
    bal_doc_close(&json, out);
}

/* Anybody's text in a column. */
static void show_column(bal_out *out, const char *text)
{
    size_t from = out->buf.len;

    bal_out_safe(out, text);
    size_t len = out->buf.len - from;
    bal_out_text(out, "%*s ", len < 28 ? (int)(28 - len) : 0, "");
}

void bal_cli_exports_text(bal_cli *cli, const bal_export_list *self)
{
    bal_out *out = &cli->out;

    for (size_t i = 0; i < self->count; i++) {
        const bal_export_asked *row = &self->rows[i];
        if (row->done)
            bal_out_text(out, "%-12lu ", (unsigned long)row->info.int_id);
        else
            bal_out_text(out, "%-12s ", "-");
        show_column(out, row->done ? row->info.name : row->spec);
        if (!row->done)
            bal_out_text(out, "skipped: ");
        bal_out_safe(out, row->done ? row->info.path : row->why);
        bal_out_text(out, "%s\n", row->info.reused ? "  (reused)" : "");
    }
    for (size_t at = 0; at < self->pruned.len; at += sizeof(char *)) {
        const char *path;
        memcpy(&path, self->pruned.data + at, sizeof(path));
        bal_out_text(out, "pruned ");
        bal_out_safe(out, path);
        bal_out_text(out, "\n");
    }
}

static int make_parents(bal_cli *cli, const char *file, bal_error *err)
{
    const char *slash = strrchr(file, '/');
    const char *parent =
        slash && slash > file
            ? bal_arena_copy(&cli->arena, file, (size_t)(slash - file))
            : NULL;

    return parent ? bal_make_dirs(parent, err) : 0;
}

/* Sorted keys: a file that others read, and compare. */
int bal_cli_exports_manifest(bal_cli *cli, const bal_export_list *self,
                             const char *file, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_json json;

    bal_json_begin(&json, &text, 2);
    bal_json_array(&json);
    for (size_t i = 0; i < self->count; i++) {
        const bal_exported_info *info = &self->rows[i].info;
        if (!self->rows[i].done)
            continue;
        bal_json_object(&json);
        text_member(&json, "base_model", info->base_model);
        id_member(&json, "commit", &info->commit);
        u64_member(&json, "int_id", info->int_id);
        id_member(&json, "manifest", &info->manifest);
        text_member(&json, "name", info->name);
        text_member(&json, "path", info->path);
        u64_member(&json, "rank", info->rank);
        text_member(&json, "tenant", info->tenant);
        bal_json_close(&json);
    }
    bal_json_close(&json);
    int rc = bal_json_end(&json, err);
    if (!rc)
        rc = bal_buf_text(&text, "\n", err);
    if (!rc)
        rc = make_parents(cli, file, err);
    return rc ? rc : bal_file_replace(file, text.data, text.len, err);
}
