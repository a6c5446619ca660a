/* The models in front of the inputs. What they share is planned once; each has
 * its own entries, its config.json, and the rows beyond the vocabulary, which
 * are made when the first of them is read. */
#include "merge/vocab.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/json_edit.h"
#include "core/str.h"
#include "merge/vocab_inside.h"
#include "model/path.h"

#define CONFIG_MAX ((uint64_t)64 << 20)

typedef struct front front;
typedef struct front_row front_row;
typedef int front_read_fn(front *self, front_row *row, uint64_t offset,
                          void *to, size_t len, bal_error *err);

/* How an entry comes about. */
struct front_row {
    front_read_fn *read;
    bal_model *from; /* passed on: whose entry */
    size_t index;    /* passed on: which; of a tensor: which of the vocabulary's
                      */
    const bal_buf *text; /* a file of our own */
    atomic_bool padded;  /* pad is there */
    void *pad;           /* guarded by the lock until then */
};

struct front {
    bal_model model;
    bal_vocab *vocab;
    size_t input;
    bal_buf config; /* config.json */
    front_row *rows;
    size_t row_count;
    pthread_mutex_t lock; /* a pad being made */
};

/* Files of a tokenizer that hold a vocabulary, beside tokenizer.json: left out
 * where that is no longer the donor's. */
static const char *const stale[] = { "added_tokens.json", "vocab.json",
                                     "vocab.txt",         "merges.txt",
                                     "*.model",           "*.tiktoken" };

static const char tokenizer[] = "tokenizer.json";
static const char tokenizer_config[] = "tokenizer_config.json";
static const char config_name[] = "config.json";

/* ---- what is shared ------------------------------------------------------ */

static void bal_vocab_free(bal_vocab *self)
{
    if (!self ||
        atomic_fetch_sub_explicit(&self->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < self->count; i++)
        bal_model_free(self->inputs[i]);
    bal_map_done(&self->names);
    bal_buf_done(&self->text);
    bal_buf_done(&self->config);
    bal_arena_done(&self->arena);
    free(self->inputs);
    free(self);
}

BAL_OWNABLE(bal_vocab)

static bal_vocab *vocab_ref(bal_vocab *self)
{
    atomic_fetch_add_explicit(&self->refs, 1, memory_order_relaxed);
    return self;
}

static size_t donor_of(const bal_vocab_want *want, size_t base)
{
    if (want->source == BAL_VOCAB_INPUT)
        return want->input;
    return base == BAL_NONE ? 0 : base;
}

static int vocab_new(bal_vocab **out, const bal_vocab_want *want,
                     bal_model *const *inputs, size_t count, size_t base,
                     bal_error *err)
{
    bal_vocab *self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "a vocabulary");

    atomic_init(&self->refs, 1);
    *out = self;
    self->inputs = calloc(count, sizeof(bal_model *));
    if (!self->inputs)
        return bal_fail_memory(err, "a vocabulary");
    for (; self->count < count; self->count++)
        self->inputs[self->count] = bal_model_ref(inputs[self->count]);
    self->base = base;
    self->donor = donor_of(want, base);
    self->mergekit = want->mergekit;
    int rc = bal_vocab_tensors(self, err);
    return rc ? rc : bal_vocab_plan(self, want, err);
}

/* ---- reading ------------------------------------------------------------- */

static int read_passed(front *self, front_row *row, uint64_t offset, void *to,
                       size_t len, bal_error *err)
{
    (void)self;
    return bal_model_read(row->from, row->index, offset, to, len, err);
}

static int read_text(front *self, front_row *row, uint64_t offset, void *to,
                     size_t len, bal_error *err)
{
    (void)self;
    (void)err;
    memcpy(to, row->text->data + offset, len);
    return 0;
}

static int make_pad(front *self, front_row *row, const bal_row_tensor *tensor,
                    bal_error *err)
{
    if (atomic_load_explicit(&row->padded, memory_order_acquire))
        return 0;
    int rc = 0;
    pthread_mutex_lock(&self->lock);
    if (!atomic_load_explicit(&row->padded, memory_order_relaxed)) {
        rc = bal_vocab_pad(&row->pad, self->vocab, tensor, self->input, err);
        if (!rc)
            atomic_store_explicit(&row->padded, true, memory_order_release);
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

/* Rows beyond the vocabulary are all the same one. */
static void repeat(uint8_t *to, const uint8_t *row, uint64_t bytes,
                   uint64_t offset, size_t len)
{
    while (len) {
        uint64_t at = offset % bytes;
        size_t some = (size_t)bal_min(bytes - at, len);

        memcpy(to, row + at, some);
        to += some;
        offset += some;
        len -= some;
    }
}

static int read_rows(front *self, front_row *row, uint64_t offset, void *to,
                     size_t len, bal_error *err)
{
    const bal_row_tensor *tensor = &self->vocab->tensors[row->index];
    size_t width = bal_dtype_bits(tensor->dtype) / 8;
    uint64_t bytes = tensor->width * width;
    uint64_t end = bytes * self->vocab->rows;
    size_t real = (size_t)(offset < end ? bal_min(end - offset, len) : 0);
    int rc = 0;

    if (real)
        rc = bal_vocab_read(to, self->vocab, tensor, self->input,
                            offset / width, real / width, err);
    if (!rc && real < len)
        rc = make_pad(self, row, tensor, err);
    if (rc)
        return bal_within(err, rc, "tensor '%s'", tensor->name);
    if (real < len)
        repeat((uint8_t *)to + real, row->pad, bytes, offset + real,
               len - real);
    return 0;
}

static int front_read(bal_model *model, size_t i, uint64_t offset, void *to,
                      size_t len, bal_error *err)
{
    front *self = (front *)model;
    front_row *row = &self->rows[bal_model_tag(model, i)];

    return row->read(self, row, offset, to, len, err);
}

static void front_free(bal_model *model)
{
    front *self = (front *)model;

    for (size_t i = 0; i < self->row_count; i++)
        free(self->rows[i].pad);
    free(self->rows);
    bal_buf_done(&self->config);
    pthread_mutex_destroy(&self->lock);
    bal_vocab_free(self->vocab);
}

static const bal_model_ops ops = { .read = front_read, .free = front_free };

/* ---- entries ------------------------------------------------------------- */

static int add(front *self, const bal_tensor *entry, front_read_fn *read,
               front_row **out, bal_error *err)
{
    int rc = bal_model_add(&self->model, entry, self->row_count, err);
    if (rc)
        return rc;
    *out = &self->rows[self->row_count++];
    (*out)->read = read;
    return 0;
}

static int add_passed(front *self, bal_model *from, size_t i, bal_error *err)
{
    front_row *row = NULL;
    int rc = add(self, bal_model_at(from, i), read_passed, &row, err);
    if (rc)
        return rc;

    row->from = from;
    row->index = i;
    return 0;
}

static int add_text(front *self, const char *name, const bal_buf *text,
                    bal_error *err)
{
    bal_tensor entry = {
        .name = name,
        .part = BAL_PART_FILE,
        .dtype = BAL_U8,
        .of = BAL_U8,
        .size = text->len,
    };
    front_row *row = NULL;
    int rc = add(self, &entry, read_text, &row, err);
    if (rc)
        return rc;

    row->text = text;
    return 0;
}

static int add_rows(front *self, size_t i, bal_error *err)
{
    const bal_vocab *vocab = self->vocab;
    bal_model *input = vocab->inputs[self->input];
    bal_tensor entry = *bal_model_at(input, i);
    size_t n = bal_map_find(&vocab->names, entry.name, strlen(entry.name));
    const bal_row_tensor *tensor = &vocab->tensors[n];
    uint64_t shape[BAL_MAX_RANK];
    front_row *row = NULL;

    if (bal_vocab_passes(vocab, tensor, self->input))
        return add_passed(self, input, i, err);
    memcpy(shape, entry.shape, entry.rank * sizeof(*shape));
    shape[0] = vocab->padded;
    entry.shape = shape;
    entry.dtype = tensor->dtype;
    entry.of = tensor->dtype;
    entry.base = NULL;
    entry.tuned = NULL;
    int rc = add(self, &entry, read_rows, &row, err);
    if (rc)
        return rc;
    row->index = n;
    return 0;
}

/* config.json with the number of rows: in the text part of a model of several
 * parts, and where it tells it already. */
static int write_config(front *self, bool *found, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_bytes part = { 0 };
    char rows[24];
    int rc = bal_vocab_file(&text, found, self->vocab, self->input, config_name,
                            CONFIG_MAX, err);
    if (rc || !*found)
        return rc;

    bal_bytes from = { text.data, text.len };
    rc = bal_json_find(&part, from, "text_config", config_name, err);
    if (rc)
        return rc;
    const char *value = part.data;
    bool parts = part.len && value[0] == '{';
    snprintf(rows, sizeof(rows), "%" PRIu32, self->vocab->padded);
    bal_json_change changes[] = {
        { "text_config.vocab_size", rows, true },
        { "vocab_size", rows, !parts },
    };
    return bal_json_edit(&self->config, from, changes, 2, config_name, err);
}

static int add_config(front *self, bal_error *err)
{
    char label[BAL_INPUT_LABEL];
    bool found = false;
    int rc = write_config(self, &found, err);

    bal_vocab_label(label, self->vocab, self->input);
    if (rc)
        return bal_within(err, rc, "%s", label);
    return found ? add_text(self, config_name, &self->config, err) : 0;
}

/* What is neither re-rowed nor replaced by the donor's or our own. */
static bool passes(const bal_tensor *entry)
{
    if (entry->part == BAL_PART_FILE)
        return !bal_side_identity(entry->name) &&
               strcmp(entry->name, config_name) != 0;
    return entry->part != BAL_PART_TENSOR || !bal_vocab_named(entry->name);
}

static int add_own(front *self, bal_error *err)
{
    bal_model *input = self->vocab->inputs[self->input];
    int rc = 0;

    for (size_t i = 0; i < bal_model_count(input) && !rc; i++) {
        const bal_tensor *entry = bal_model_at(input, i);

        if (passes(entry))
            rc = add_passed(self, input, i, err);
        else if (entry->part == BAL_PART_TENSOR)
            rc = add_rows(self, i, err);
    }
    return rc ? rc : add_config(self, err);
}

static bool goes_stale(const char *name)
{
    for (size_t i = 0; i < sizeof(stale) / sizeof(stale[0]); i++) {
        if (bal_glob(stale[i], name))
            return true;
    }
    return false;
}

static int add_donors_file(front *self, size_t i, bal_error *err)
{
    const bal_vocab *vocab = self->vocab;
    bal_model *donor = vocab->inputs[vocab->donor];
    const char *name = bal_model_at(donor, i)->name;

    if (vocab->same)
        return add_passed(self, donor, i, err);
    if (!strcmp(name, tokenizer))
        return add_text(self, name, &vocab->text, err);
    if (goes_stale(name))
        return 0;
    if (!strcmp(name, tokenizer_config) && vocab->config.len)
        return add_text(self, name, &vocab->config, err);
    return add_passed(self, donor, i, err);
}

static int add_donors(front *self, bal_error *err)
{
    bal_model *donor = self->vocab->inputs[self->vocab->donor];
    int rc = 0;

    for (size_t i = 0; i < bal_model_count(donor) && !rc; i++) {
        const bal_tensor *entry = bal_model_at(donor, i);
        if (entry->part == BAL_PART_FILE && bal_side_identity(entry->name))
            rc = add_donors_file(self, i, err);
    }
    return rc;
}

/* ---- all ----------------------------------------------------------------- */

static int front_fill(front *self, bal_error *err)
{
    bal_model *input = self->vocab->inputs[self->input];
    bal_model *donor = self->vocab->inputs[self->vocab->donor];
    size_t most = bal_model_count(input) + bal_model_count(donor) + 1;

    self->rows = calloc(most, sizeof(*self->rows));
    if (!self->rows)
        return bal_fail_memory(err, "a vocabulary");
    int rc = bal_model_tell(&self->model, bal_model_facts(input), err);
    if (!rc)
        rc = add_own(self, err);
    if (!rc)
        rc = add_donors(self, err);
    if (rc)
        return rc;
    return bal_model_ready(&self->model, err);
}

static int front_open(bal_model **out, bal_vocab *vocab, size_t input,
                      bal_error *err)
{
    front *self = bal_model_alloc(sizeof(*self), &ops);
    if (!self)
        return bal_fail_memory(err, "a vocabulary");
    BAL_OWN(bal_model) model = &self->model;

    pthread_mutex_init(&self->lock, NULL);
    self->vocab = vocab_ref(vocab);
    self->input = input;
    int rc = front_fill(self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}

int bal_vocab_open(bal_model **out, const bal_vocab_want *want,
                   bal_model *const *inputs, size_t count, size_t base,
                   bal_error *err)
{
    BAL_OWN(bal_vocab) vocab = NULL;

    if (!count || (base != BAL_NONE && base >= count) ||
        (want->source == BAL_VOCAB_INPUT && want->input >= count))
        return bal_fail(err, BAL_EINVAL, "a vocabulary of no input");
    bal_model **models = calloc(count, sizeof(bal_model *));
    if (!models)
        return bal_fail_memory(err, "a vocabulary");
    int rc = vocab_new(&vocab, want, inputs, count, base, err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = front_open(&models[i], vocab, i, err);
    for (size_t i = 0; i < count; i++) {
        if (rc)
            bal_model_free(models[i]);
        else
            out[i] = models[i];
    }
    free(models);
    return rc;
}
