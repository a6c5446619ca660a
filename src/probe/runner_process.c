/* Any command: it finds the model in a folder and speaks JSON Lines. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/str.h"
#include "probe/exchange.h"

static int process_check(const bal_ask_options *options, bal_error *err)
{
    if (options->command && options->command[0])
        return 0;
    return bal_fail(err, BAL_EINVAL,
                    "the runner 'process' needs a command (--command)");
}

/* The command is part of what was asked; its text, which may hold a secret, is
 * nobody's business. */
static int process_terms(json_t *terms, const bal_ask_options *options,
                         bal_error *err)
{
    char hex[BAL_ID_HEX + 1];
    bal_id id;

    bal_hash_of(&id, options->command, strlen(options->command));
    bal_id_hex(hex, &id);
    hex[16] = '\0';
    return json_object_set_new(terms, "command", json_string(hex))
               ? bal_fail_memory(err, "a runner")
               : 0;
}

static int set(bal_buf *to, const char *name, const char *value, bal_error *err)
{
    return bal_buf_format(to, err, "%s=%s", name, value ? value : "");
}

static int process_ask(const bal_question *question, bal_answer_fn *fn,
                       void *ctx, json_t *about, bal_error *err)
{
    BAL_LOCAL(bal_buf) model = { 0 };
    BAL_LOCAL(bal_buf) base = { 0 };
    BAL_LOCAL(bal_buf) commit = { 0 };
    char hex[BAL_ID_HEX + 1];
    char *folder = bal_path_join(question->scratch, "model");
    int rc = folder ? bal_model_write(question->model, folder, NULL, NULL,
                                      question->work, err)
                    : bal_fail_memory(err, "a runner");

    (void)about;
    bal_id_hex(hex, question->commit);
    if (!rc)
        rc = set(&model, "BALLAST_MODEL", folder, err);
    if (!rc)
        rc = set(&base, "BALLAST_BASE", question->base, err);
    if (!rc)
        rc = set(&commit, "BALLAST_COMMIT", hex, err);
    bal_str_free(folder);
    if (rc)
        return rc;
    const char *const argv[] = { "/bin/sh", "-c", question->options->command,
                                 NULL };
    const char *const env[] = { bal_buf_string(&model), bal_buf_string(&commit),
                                question->base ? bal_buf_string(&base) : NULL,
                                NULL };
    const bal_exchange_child child = {
        .argv = argv,
        .env = env,
        .what = "the runner",
    };
    return bal_exchange_run(&child, question, fn, ctx, err);
}

const bal_runner_row bal_runner_process = {
    .name = "process",
    .wants = BAL_WANTS_MODEL | BAL_WANTS_FOLDER,
    .check = process_check,
    .terms = process_terms,
    .ask = process_ask,
};
