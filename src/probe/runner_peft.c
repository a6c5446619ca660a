/* transformers and PEFT, in a Python process: the script is part of the
 * library, the interpreter is BALLAST_PYTHON or python3. Tensors are handed
 * over without a file, as a safetensors stream through a pipe; side files lie
 * in the scratch folder. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "model/path.h"
#include "model/safetensors.h"
#include "probe/exchange.h"
#include "probe/peft_script.h"

enum { STREAM_FD = 3, PIECE = 1 << 20 };

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

/* ---- the stream --------------------------------------------------------- */

typedef struct stream {
    bal_model *model;
    size_t *entries; /* tensors, in the order of the file */
    size_t count;
    bal_buf head; /* length and header */
    bool begun;
    size_t at;       /* the entry that is being read */
    uint64_t offset; /* in it */
} stream;

static void stream_done(stream *self)
{
    free(self->entries);
    bal_buf_done(&self->head);
}

static int stream_begin(stream *self, bal_model *model, bal_error *err)
{
    size_t count = bal_model_count(model);
    const bal_tensor **tensors = calloc(count + 1, sizeof(void *));
    BAL_LOCAL(bal_buf) header = { .ceiling = BAL_HEADER_MAX + 8 };
    uint8_t length[8];

    self->model = model;
    self->entries = calloc(count + 1, sizeof(*self->entries));
    if (!tensors || !self->entries) {
        free(tensors);
        return bal_fail_memory(err, "a runner");
    }
    for (size_t i = 0; i < count; i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        if (entry->part != BAL_PART_TENSOR)
            continue;
        tensors[self->count] = entry;
        self->entries[self->count++] = i;
    }
    int rc = bal_st_write(&header, tensors, self->count, NULL, 0, err);
    free(tensors);
    if (rc)
        return rc;
    bal_put64(length, header.len);
    rc = bal_buf_append(&self->head, length, sizeof(length), err);
    return rc ? rc : bal_buf_append(&self->head, header.data, header.len, err);
}

static int stream_rewind(void *ctx, bal_error *err)
{
    stream *self = ctx;

    (void)err;
    self->begun = false;
    self->at = 0;
    self->offset = 0;
    return 0;
}

static int stream_fill(void *ctx, bal_buf *to, bal_error *err)
{
    stream *self = ctx;

    if (!self->begun) {
        self->begun = true;
        return bal_buf_append(to, self->head.data, self->head.len, err);
    }
    while (self->at < self->count) {
        size_t i = self->entries[self->at];
        uint64_t size = bal_model_at(self->model, i)->size;
        size_t len = (size_t)bal_min(PIECE, size - self->offset);
        if (!len) {
            self->at++;
            self->offset = 0;
            continue;
        }
        int rc = bal_buf_reserve(to, len, err);
        if (!rc)
            rc = bal_model_read(self->model, i, self->offset,
                                to->data + to->len, len, err);
        if (rc)
            return rc;
        to->len += len;
        self->offset += len;
        return 0;
    }
    return 0;
}

/* ---- side files --------------------------------------------------------- */

static int put_side(const char *folder, bal_model *model, size_t i,
                    bal_error *err)
{
    const bal_tensor *entry = bal_model_at(model, i);
    BAL_LOCAL(bal_buf) text = { 0 };

    if (!bal_side_name_valid(entry->name))
        return bal_fail(err, BAL_ECORRUPT,
                        "'%.200s' is no name for a side file", entry->name);
    int rc = bal_buf_reserve(&text, (size_t)entry->size, err);
    if (!rc)
        rc = bal_model_read(model, i, 0, text.data, (size_t)entry->size, err);
    if (rc)
        return rc;
    char *path = bal_path_join(folder, entry->name);
    if (!path)
        return bal_fail_memory(err, "a runner");
    rc = bal_file_replace(path, text.data, (size_t)entry->size, err);
    bal_str_free(path);
    return rc;
}

/* Those of the folder itself: what transformers looks at. */
static int put_sides(const char *folder, bal_model *model, bal_error *err)
{
    int rc = bal_make_dirs(folder, err);

    for (size_t i = 0; i < bal_model_count(model) && !rc; i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        if (entry->part == BAL_PART_FILE && entry->form == BAL_FORM_WHOLE &&
            !strchr(entry->name, '/'))
            rc = put_side(folder, model, i, err);
    }
    return rc;
}

/* ---- asking ------------------------------------------------------------- */

typedef struct settings {
    bal_buf texts[5];
    const char *env[6];
    size_t count;
} settings;

static void settings_done(settings *self)
{
    for (size_t i = 0; i < 5; i++)
        bal_buf_done(&self->texts[i]);
}

static int set(settings *self, const char *name, const char *value,
               bal_error *err)
{
    bal_buf *text = &self->texts[self->count];
    int rc = bal_buf_format(text, err, "%s=%s", name, value);

    if (!rc)
        self->env[self->count++] = bal_buf_string(text);
    return rc;
}

static int run(const bal_question *question, const char *folder,
               bal_answer_fn *fn, void *ctx, bal_error *err)
{
    const char *python = getenv("BALLAST_PYTHON");
    BAL_LOCAL(settings) with = { .count = 0 };
    BAL_LOCAL(stream) tensors = { .model = NULL };
    bal_kind kind = bal_model_facts(question->model)->kind;
    char top[16];
    int rc = stream_begin(&tensors, question->model, err);

    snprintf(top, sizeof(top), "%u", question->options->top);
    if (!rc)
        rc = set(&with, "BALLAST_MODEL", folder, err);
    if (!rc)
        rc = set(&with, "BALLAST_MODEL_FD", "3", err);
    if (!rc)
        rc = set(&with, "BALLAST_KIND", bal_kind_name(kind), err);
    if (!rc)
        rc = set(&with, "BALLAST_TOP", top, err);
    if (!rc && question->base)
        rc = set(&with, "BALLAST_BASE", question->base, err);
    if (rc)
        return rc;
    const char *const argv[] = { python && python[0] ? python : "python3", "-c",
                                 bal_peft_script, NULL };
    const bal_child_feed feed = { STREAM_FD, stream_fill, &tensors };
    const bal_exchange_child child = {
        .argv = argv,
        .env = with.env,
        .feed = &feed,
        .rewind = stream_rewind,
        .what = "the peft runner",
    };
    return bal_exchange_run(&child, question, fn, ctx, err);
}

static int peft_ask(const bal_question *question, bal_answer_fn *fn, void *ctx,
                    json_t *about, bal_error *err)
{
    bool adapter = bal_model_facts(question->model)->kind == BAL_KIND_ADAPTER;

    (void)about;
    if (adapter && !question->base)
        return bal_fail(err, BAL_EINVAL,
                        "the runner 'peft' needs the adapter's base (--base)");
    char *folder = bal_path_join(question->scratch, "model");
    int rc = folder ? put_sides(folder, question->model, err)
                    : bal_fail_memory(err, "a runner");
    if (!rc)
        rc = run(question, folder, fn, ctx, err);
    bal_str_free(folder);
    return rc;
}

const bal_runner_row bal_runner_peft = {
    .name = "peft",
    .wants = BAL_WANTS_MODEL | BAL_WANTS_FOLDER,
    .check = peft_check,
    .terms = peft_terms,
    .ask = peft_ask,
};
