/* Any command: it finds the model in a folder, or its tensors in a stream, and
 * speaks JSON Lines. The runner `peft` is one whose command is part of the
 * library: transformers and PEFT, in the Python that BALLAST_PYTHON names. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/str.h"
#include "probe/exchange.h"
#include "probe/feed.h"
#include "probe/peft_script.h"

/* ---- what is asked for -------------------------------------------------- */

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

static int peft_check(const bal_ask_options *options, bal_error *err)
{
    (void)options;
    (void)err;
    return 0;
}

static int peft_terms(json_t *terms, const bal_ask_options *options,
                      bal_error *err)
{
    (void)terms;
    (void)options;
    (void)err;
    return 0;
}

/* ---- what the child finds ------------------------------------------------ */

enum { SETTINGS_MAX = 6 };

typedef struct settings {
    bal_buf texts[SETTINGS_MAX];
    const char *env[SETTINGS_MAX + 1];
    size_t count;
} settings;

static void settings_done(settings *self)
{
    for (size_t i = 0; i < SETTINGS_MAX; i++)
        bal_buf_done(&self->texts[i]);
}

/* value NULL: it is not set. */
static int set(settings *self, const char *name, const char *value,
               bal_error *err)
{
    bal_buf *text = &self->texts[self->count];

    if (!value)
        return 0;
    int rc = bal_buf_format(text, err, "%s=%s", name, value);
    if (!rc)
        self->env[self->count++] = bal_buf_string(text);
    return rc;
}

static int set_all(settings *self, const bal_question *question,
                   const char *folder, const char *stream, bal_error *err)
{
    char commit[BAL_ID_HEX + 1], top[16];
    const struct {
        const char *name, *value;
    } rows[] = {
        { "BALLAST_MODEL", folder },
        { "BALLAST_MODEL_FD", stream },
        { "BALLAST_KIND",
          bal_kind_name(bal_model_facts(question->model)->kind) },
        { "BALLAST_BASE", question->base },
        { "BALLAST_COMMIT", commit },
        { "BALLAST_TOP", top },
    };
    int rc = 0;

    _Static_assert(sizeof(rows) / sizeof(rows[0]) == SETTINGS_MAX, "room");
    bal_id_hex(commit, question->commit);
    snprintf(top, sizeof(top), "%u", question->options->top);
    for (size_t i = 0; i < SETTINGS_MAX && !rc; i++)
        rc = set(self, rows[i].name, rows[i].value, err);
    return rc;
}

/* ---- asking ------------------------------------------------------------- */

static int ask_in(const bal_question *question, const char *folder,
                  const bal_exchange_child *child, const bal_exchange_to *to,
                  bal_error *err)
{
    BAL_LOCAL(settings) with = { .count = 0 };
    int rc = bal_model_write(question->model, folder, NULL, NULL,
                             question->work, err);

    if (!rc)
        rc = set_all(&with, question, folder, NULL, err);
    if (rc)
        return rc;
    bal_exchange_child told = *child;
    told.env = with.env;
    return bal_exchange_run(&told, question, to, err);
}

static int ask_by_stream(const bal_question *question, const char *folder,
                         const bal_exchange_child *child,
                         const bal_exchange_to *to, bal_error *err)
{
    BAL_LOCAL(settings) with = { .count = 0 };
    BAL_LOCAL(bal_feed) tensors = { 0 };
    int rc = bal_feed_sides(folder, question->model, err);

    if (!rc)
        rc = bal_feed_init(&tensors, question->model, err);
    if (!rc)
        rc = set_all(&with, question, folder, "3", err);
    if (rc)
        return rc;
    bal_exchange_child fed = *child;
    fed.env = with.env;
    fed.stream = &tensors;
    return bal_exchange_run(&fed, question, to, err);
}

static int run(const bal_question *question, const bal_exchange_child *child,
               bool stream, const bal_exchange_to *to, bal_error *err)
{
    char *folder = bal_path_join(question->scratch, "model");
    int rc = folder ? 0 : bal_fail_memory(err, "a runner");

    if (!rc)
        rc =
            (stream ? ask_by_stream : ask_in)(question, folder, child, to, err);
    bal_str_free(folder);
    return rc;
}

static int process_ask(const bal_question *question, bal_answer_fn *fn,
                       void *ctx, json_t *about, bal_error *err)
{
    const bal_ask_options *options = question->options;
    const char *const argv[] = { "/bin/sh", "-c", options->command, NULL };
    const bal_exchange_child child = { .argv = argv, .what = "the runner" };
    const bal_exchange_to to = { fn, ctx, about };

    return run(question, &child, options->flags & BAL_ASK_STREAM, &to, err);
}

static int peft_ask(const bal_question *question, bal_answer_fn *fn, void *ctx,
                    json_t *about, bal_error *err)
{
    const char *python = getenv("BALLAST_PYTHON");
    const char *const argv[] = { python && python[0] ? python : "python3", "-c",
                                 bal_peft_script, NULL };
    const bal_exchange_child child = { .argv = argv,
                                       .what = "the peft runner" };
    const bal_exchange_to to = { fn, ctx, about };

    if (bal_model_facts(question->model)->kind == BAL_KIND_ADAPTER &&
        !question->base)
        return bal_fail(err, BAL_EINVAL,
                        "the runner 'peft' needs the adapter's base (--base)");
    return run(question, &child, true, &to, err);
}

const bal_runner_row bal_runner_process = {
    .name = "process",
    .wants = BAL_WANTS_MODEL | BAL_WANTS_FOLDER,
    .check = process_check,
    .terms = process_terms,
    .ask = process_ask,
};

const bal_runner_row bal_runner_peft = {
    .name = "peft",
    .wants = BAL_WANTS_MODEL | BAL_WANTS_FOLDER,
    .check = peft_check,
    .terms = peft_terms,
    .ask = peft_ask,
};
