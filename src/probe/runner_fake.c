/* A stand-in for tests and for trying things out: the answer is a digest of the
 * probe and of the tensors, so it moves when they do. With options->model, a
 * glob, only tensors of such a name count: what else changes goes unobserved.
 *
 * 12 hex digits of BLAKE3(state, id of the probe), where state is the BLAKE3 of
 * each tensor's name, form, dtype, shape and bytes, in the order of names. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"
#include "probe/runner.h"

static int fake_check(const bal_ask_options *options, bal_error *err)
{
    (void)options;
    (void)err;
    return 0;
}

static int fake_terms(json_t *terms, const bal_ask_options *options,
                      bal_error *err)
{
    if (!options->model)
        return 0;
    return json_object_set_new(terms, "watch", json_string(options->model))
               ? bal_fail_memory(err, "a runner")
               : 0;
}

static void add_entry(bal_hash *hash, const bal_tensor *entry)
{
    uint32_t facts[3] = { entry->form, entry->dtype, entry->rank };

    bal_hash_add(hash, entry->name, strlen(entry->name) + 1);
    bal_hash_add(hash, facts, sizeof(facts));
    bal_hash_add(hash, entry->shape, entry->rank * sizeof(*entry->shape));
}

static int add_bytes(bal_hash *hash, bal_model *model, size_t i, void *tile,
                     bal_error *err)
{
    uint64_t size = bal_model_at(model, i)->size;

    for (uint64_t at = 0; at < size; at += BAL_TILE) {
        size_t len = (size_t)bal_min(BAL_TILE, size - at);
        int rc = bal_model_read(model, i, at, tile, len, err);
        if (rc)
            return rc;
        bal_hash_add(hash, tile, len);
    }
    return 0;
}

static int state_of(bal_id *out, const bal_question *question, void *tile,
                    bal_error *err)
{
    const char *watch = question->options->model;
    bal_model *model = question->model;
    bal_hash hash;

    bal_hash_init(&hash);
    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        if (entry->part != BAL_PART_TENSOR ||
            (watch && !bal_glob(watch, entry->name)))
            continue;
        add_entry(&hash, entry);
        int rc = add_bytes(&hash, model, i, tile, err);
        if (!rc)
            rc = bal_work_poll(question->work, err);
        if (rc)
            return rc;
    }
    bal_hash_end(&hash, out);
    return 0;
}

static int answer(const bal_question *question, const bal_id *state,
                  bal_answer_fn *fn, void *ctx, bal_error *err)
{
    const bal_probes *probes = question->probes;
    int rc = 0;

    for (size_t i = 0; i < bal_probes_count(probes) && !rc; i++) {
        const char *id = bal_probes_at(probes, i)->id;
        char hex[BAL_ID_HEX + 1];
        bal_hash hash;
        bal_id told;
        bal_hash_init(&hash);
        bal_hash_add(&hash, state, sizeof(*state));
        bal_hash_add(&hash, id, strlen(id));
        bal_hash_end(&hash, &told);
        bal_id_hex(hex, &told);
        hex[12] = '\0';
        const bal_answer said = { .output = hex };
        for (unsigned k = 0; k < question->options->repeat && !rc; k++)
            rc = fn(ctx, i, &said, err);
    }
    return rc;
}

static int fake_ask(const bal_question *question, bal_answer_fn *fn, void *ctx,
                    json_t *about, bal_error *err)
{
    bal_id state;
    void *tile = malloc(BAL_TILE);
    int rc = tile ? state_of(&state, question, tile, err)
                  : bal_fail_memory(err, "a runner");

    (void)about;
    free(tile);
    return rc ? rc : answer(question, &state, fn, ctx, err);
}

const bal_runner_row bal_runner_fake = {
    .name = "fake",
    .check = fake_check,
    .terms = fake_terms,
    .ask = fake_ask,
};
