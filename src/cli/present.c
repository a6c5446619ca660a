/* What several commands show in the same way. */
#include <unistd.h>

#include "cli/cli.h"
#include "core/clock.h"
#include "core/str.h"

void bal_cli_anchor(bal_json *json, const bal_commit_report *report)
{
    if (!report->anchored)
        return;
    bal_json_key(json, "anchor");
    bal_json_id(json, &report->anchor);
}

void bal_cli_tell_anchor(bal_cli *cli, const bal_commit_report *report)
{
    char hex[BAL_ID_HEX + 1];
    char line[64];

    if (!report->anchored || cli->globals.quiet)
        return;
    bal_id_hex(hex, &report->anchor);
    int len = snprintf(line, sizeof(line),
                       "stored by its distance from %.12s\n", hex);
    ssize_t n = write(STDERR_FILENO, line, (size_t)len);

    (void)n; /* said for information only */
}

void bal_cli_commit_open(bal_json *json, bal_cli *cli, const bal_commit *commit,
                         const char *ref)
{
    bal_doc_open(json, &cli->out, cli->command->name);
    bal_json_members(json, bal_commit_json(commit));
    bal_json_key(json, "ref");
    bal_json_string(json, ref);
}

bool bal_cli_listed(const bal_tensor *tensor)
{
    return tensor->part == BAL_PART_TENSOR &&
           (tensor->form == BAL_FORM_WHOLE ||
            tensor->form == BAL_FORM_DIFFERENCE);
}

size_t bal_cli_tensors(const bal_model *model, uint64_t *bytes)
{
    size_t count = 0;

    *bytes = 0;
    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *tensor = bal_model_at(model, i);
        if (!bal_cli_listed(tensor))
            continue;
        count++;
        *bytes += tensor->size;
    }
    return count;
}

void bal_cli_tensor_json(bal_json *json, const bal_tensor *tensor)
{
    bal_json_key(json, "name");
    bal_json_string(json, tensor->name);
    bal_json_key(json, "dtype");
    bal_json_string(json, bal_dtype_name(tensor->dtype));
    bal_json_key(json, "shape");
    bal_json_array(json);
    for (uint32_t d = 0; d < tensor->rank; d++)
        bal_json_u64(json, tensor->shape[d]);
    bal_json_close(json);
    bal_json_key(json, "bytes");
    bal_json_u64(json, tensor->size);
}

void bal_cli_shape(bal_out *out, const bal_tensor *tensor)
{
    bal_out_text(out, "[");
    for (uint32_t d = 0; d < tensor->rank; d++) {
        bal_out_text(out, "%s%llu", d ? ", " : "",
                     (unsigned long long)tensor->shape[d]);
    }
    bal_out_text(out, "]");
}

static void time_json(bal_json *json, const char *key, int64_t at)
{
    char text[40];

    bal_json_key(json, key);
    if (!at) {
        bal_json_null(json);
        return;
    }
    bal_clock_rfc3339(text, at);
    bal_json_string(json, text);
}

void bal_cli_grant_json(bal_json *json, const bal_grant_info *grant)
{
    bal_json_key(json, "owner");
    bal_json_string(json, grant->owner);
    bal_json_key(json, "manifest");
    bal_json_id(json, &grant->manifest);
    bal_json_key(json, "commit");
    bal_json_id(json, &grant->commit);
    bal_json_key(json, "grantee");
    bal_json_string(json, grant->grantee);
    time_json(json, "created_at", grant->created_at);
    time_json(json, "revoked_at", grant->revoked_at);
}

void bal_cli_input(bal_out *out, const json_t *input)
{
    const char *tenant = json_string_value(json_object_get(input, "tenant"));
    const char *hex = json_string_value(json_object_get(input, "commit"));
    const json_t *weight = json_object_get(input, "weight");
    char number[32];
    bal_id id;

    bal_out_safe(out, tenant ? tenant : "?");
    bal_out_text(out, ":");
    bal_out_id(out, hex && !bal_id_parse(&id, hex, NULL) ? &id : NULL);
    if (!json_is_string(weight) && !json_is_number(weight))
        return;
    bal_f64_text(number, json_number_value(weight));
    bal_out_text(out, "@");
    bal_out_safe(out,
                 json_is_string(weight) ? json_string_value(weight) : number);
}

void bal_cli_took(bal_cli *cli, double seconds)
{
    char line[128];
    int len = snprintf(line, sizeof(line), "ballast: %s took %.3f s\n",
                       cli->command->name, seconds);
    ssize_t n = write(STDERR_FILENO, line, (size_t)len);

    (void)n; /* said for information only */
}

int bal_cli_list(bal_cli *cli, const char *member, char bracket,
                 bal_walk_fn *walk, bal_error *err)
{
    bal_listing self = { .out = &cli->out };

    if (!cli->out.json)
        return walk(cli, &self, err);
    bal_doc_open(&self.json, &cli->out, cli->command->name);
    bal_json_key(&self.json, member);
    if (bracket == '{')
        bal_json_object(&self.json);
    else
        bal_json_array(&self.json);
    int rc = walk(cli, &self, err);
    if (rc)
        return rc;
    bal_json_close(&self.json);
    bal_doc_close(&self.json, &cli->out);
    return 0;
}
