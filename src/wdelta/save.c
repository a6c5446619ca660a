/* A model's difference as a .wdelta file. First every tensor is looked at and a
 * way to store it chosen, while the base is hashed; then all that the file has
 * is known but the arrays' bytes, so it is laid out, and the arrays are written
 * to their places by whichever thread is free; last the file's own hash. No
 * more of a tensor is in memory than a tile a thread. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/pool.h"
#include "model/digest.h"
#include "wdelta/chain.h"
#include "wdelta/layout.h"
#include "wdelta/order.h"
#include "wdelta/outfile.h"
#include "wdelta/widen.h"

typedef struct save {
    const bal_wdelta_options *options;
    bal_wd_source from;
    bal_model *chain; /* base and parents; NULL: no parents */
    size_t *order;    /* entries of base */
    size_t *by_size;  /* plans, the largest first */
    bal_wd_plan *plans;
    size_t count;
    bal_sha256 parent;
    bal_wd_layout layout;
    bal_outfile file;
    char hex[65];
    bool exact; /* lossless */
} save;

static void save_done(save *self)
{
    for (size_t i = 0; i < self->count && self->plans; i++)
        bal_wd_plan_done(&self->plans[i]);
    bal_outfile_done(&self->file);
    bal_wd_layout_done(&self->layout);
    bal_model_free(self->chain);
    free(self->plans);
    free(self->order);
    free(self->by_size);
}

/* ---- what is compared with what ------------------------------------------ */

static int check_dtype(const bal_tensor *entry, bal_error *err)
{
    if (bal_wd_widens(entry->dtype))
        return 0;
    int rc = bal_fail(err, BAL_EUNSUPPORTED,
                      "tensor '%.200s': deltatensors has no differences of %s",
                      entry->name, bal_dtype_name(entry->dtype));
    return bal_hint(err, rc, "--strategy lossless stores any dtype");
}

static int pair_up(bal_wd_plan *plan, const save *self, size_t entry,
                   bal_error *err)
{
    const bal_tensor *base = bal_model_at(self->from.base, entry);
    size_t at = bal_model_find(self->from.tuned, BAL_PART_TENSOR, base->name);
    if (at == BAL_NONE)
        return bal_fail(err, BAL_EINVAL,
                        "tensor '%.200s' is in the base only: a .wdelta file "
                        "has no removed tensors",
                        base->name);
    const bal_tensor *tuned = bal_model_at(self->from.tuned, at);
    if (!bal_tensor_same_shape(base, tuned))
        return bal_fail(err, BAL_EINVAL,
                        "tensor '%.200s' has another shape than in the base",
                        base->name);
    plan->name = base->name;
    plan->tuned = at;
    plan->base = entry;
    plan->parent =
        bal_model_find(self->from.parent, BAL_PART_TENSOR, base->name);
    if (!bal_wd_elements(&plan->n, base->shape, base->rank))
        return bal_fail(err, BAL_EINVAL, "tensor '%.200s' is too large",
                        base->name);
    plan->tiles =
        (size_t)(plan->n / BAL_WD_TILE + (plan->n % BAL_WD_TILE != 0));
    int rc = check_dtype(base, err);
    return rc ? rc : check_dtype(tuned, err);
}

/* Coded against the base's tensor of its name, dtype and shape; alone where
 * there is none. */
static int pair_exact(bal_wd_plan *plan, const save *self, size_t entry,
                      bal_error *err)
{
    const bal_tensor *tuned = bal_model_at(self->from.tuned, entry);

    plan->kind = BAL_WD_LOSSLESS;
    plan->name = tuned->name;
    plan->tuned = entry;
    plan->parent =
        bal_model_find(self->from.parent, BAL_PART_TENSOR, tuned->name);
    if (!bal_wd_elements(&plan->n, tuned->shape, tuned->rank))
        return bal_fail(err, BAL_EINVAL, "tensor '%.200s' is too large",
                        tuned->name);
    if (plan->parent == BAL_NONE)
        return 0;
    const bal_tensor *base = bal_model_at(self->from.parent, plan->parent);
    plan->anchored =
        base->dtype == tuned->dtype && bal_tensor_same_shape(base, tuned);
    return 0;
}

static int check_removed(const save *self, bal_error *err)
{
    const bal_model *base = self->from.base;

    for (size_t i = 0; i < bal_model_count(base); i++) {
        const bal_tensor *entry = bal_model_at(base, i);
        if (entry->part == BAL_PART_TENSOR &&
            bal_model_find(self->from.tuned, BAL_PART_TENSOR, entry->name) ==
                BAL_NONE)
            return bal_fail(err, BAL_EINVAL,
                            "tensor '%.200s' is in the base only: a .wdelta "
                            "file has no removed tensors",
                            entry->name);
    }
    return 0;
}

/* Neither is a difference to something else. */
static int check_whole(const bal_model *model, bal_error *err)
{
    const char *name = bal_model_facts(model)->name;

    for (size_t i = 0; i < bal_model_count(model); i++) {
        if (bal_model_at(model, i)->form != BAL_FORM_WHOLE)
            return bal_fail(err, BAL_EINVAL,
                            "'%s' is a difference to a base itself: a .wdelta "
                            "file is made of whole models",
                            name ? name : "model");
    }
    return 0;
}

static int check_added(const save *self, bal_error *err)
{
    const bal_model *tuned = self->from.tuned;

    for (size_t i = 0; i < bal_model_count(tuned); i++) {
        const bal_tensor *entry = bal_model_at(tuned, i);
        if (entry->part == BAL_PART_TENSOR && !self->exact &&
            bal_model_find(self->from.base, BAL_PART_TENSOR, entry->name) ==
                BAL_NONE)
            return bal_fail(err, BAL_EINVAL,
                            "tensor '%.200s' is not in the base: a .wdelta "
                            "file has no new tensors",
                            entry->name);
    }
    return 0;
}

static int open_parents(save *self, bal_error *err)
{
    const bal_wdelta_options *options = self->options;

    self->from.parent = self->from.base;
    if (!options->parent_count)
        return 0;
    int rc = bal_wdelta_verify(options->parents, options->parent_count,
                               self->from.base, self->from.work, NULL, err);
    if (!rc)
        rc = bal_wd_chain(&self->chain, self->from.base, options->parents,
                          options->parent_count, self->exact ? 0 : BAL_WD_RAW,
                          err);
    self->from.parent = self->chain;
    return rc;
}

/* A link is hashed by name, whatever files the base is in; and so is what is
 * stored without loss, which may have tensors that the base has not. */
static int find_order(save *self, bal_error *err)
{
    bal_model *of = self->exact ? self->from.tuned : self->from.base;
    int rc = bal_wd_order(&self->order, &self->count, of, err);

    for (size_t i = 0; i < self->count && !rc; i++) {
        if (self->chain || self->exact)
            self->order[i] = i;
    }
    return rc;
}

static int compare_sizes(const void *a, const void *b)
{
    const bal_wd_plan *left = *(bal_wd_plan *const *)a;
    const bal_wd_plan *right = *(bal_wd_plan *const *)b;

    return left->n > right->n ? -1 : left->n < right->n;
}

static int sort_sizes(save *self, bal_error *err)
{
    const bal_wd_plan **sorted =
        calloc(self->count + 1, sizeof(const bal_wd_plan *));
    if (!sorted)
        return bal_fail_memory(err, "planning a .wdelta file");

    for (size_t i = 0; i < self->count; i++)
        sorted[i] = &self->plans[i];
    qsort(sorted, self->count, sizeof(const bal_wd_plan *), compare_sizes);
    for (size_t i = 0; i < self->count; i++)
        self->by_size[i] = (size_t)(sorted[i] - self->plans);
    free(sorted);
    return 0;
}

static int prepare(save *self, bal_error *err)
{
    int rc = check_whole(self->from.tuned, err);
    if (!rc)
        rc = check_whole(self->from.base, err);
    if (!rc)
        rc = open_parents(self, err);
    if (!rc)
        rc = find_order(self, err);
    if (rc)
        return rc;
    self->plans = calloc(self->count + 1, sizeof(*self->plans));
    self->by_size = calloc(self->count + 1, sizeof(*self->by_size));
    if (!self->plans || !self->by_size)
        return bal_fail_memory(err, "planning a .wdelta file");
    for (size_t i = 0; i < self->count && !rc; i++)
        rc = (self->exact ? pair_exact : pair_up)(&self->plans[i], self,
                                                  self->order[i], err);
    if (!rc)
        rc = check_added(self, err);
    if (!rc)
        rc = check_removed(self, err);
    return rc ? rc : sort_sizes(self, err);
}

/* ---- planning ----------------------------------------------------------- */

static int hash_parent(save *self, bal_error *err)
{
    size_t count = 0;
    size_t *entries = calloc(self->count + 1, sizeof(*entries));
    if (!entries)
        return bal_fail_memory(err, "hashing a model");

    for (size_t i = 0; i < self->count; i++) {
        if (self->plans[i].parent != BAL_NONE)
            entries[count++] = self->plans[i].parent;
    }
    int rc = bal_wd_hash(&self->parent, self->from.parent, entries, count,
                         self->from.work, err);
    free(entries);
    return rc;
}

static int plan_item(size_t i, void *ctx, bal_error *err)
{
    save *self = ctx;

    if (!i)
        return hash_parent(self, err);
    bal_wd_plan *plan = &self->plans[self->by_size[i - 1]];
    int rc = bal_wd_choose(plan, &self->from, self->options, err);

    bal_work_advance(self->from.work, plan->n);
    return rc;
}

/* Of what is stored without loss nothing is to be chosen. */
static int plan_exact(save *self, bal_error *err)
{
    size_t count = bal_model_count(self->from.tuned);
    bal_id *digests = calloc(count + 1, sizeof(*digests));
    if (!digests)
        return bal_fail_memory(err, "hashing a model");

    int rc = hash_parent(self, err);
    if (!rc)
        rc = bal_digest_model(digests, self->from.tuned, self->from.work, err);
    for (size_t i = 0; i < self->count && !rc; i++) {
        bal_wd_plan *plan = &self->plans[i];
        size_t pieces = bal_wd_pieces(plan);
        plan->digest = digests[plan->tuned];
        plan->sizes = calloc(pieces + 1, sizeof(*plan->sizes));
        plan->codecs = calloc(pieces + 1, sizeof(*plan->codecs));
        if (!plan->sizes || !plan->codecs)
            rc = bal_fail_memory(err, "planning a .wdelta file");
    }
    free(digests);
    return rc;
}

static int plan_all(save *self, bal_error *err)
{
    if (self->exact)
        return plan_exact(self, err);
    return bal_pool_run(self->from.work, self->count + 1, plan_item, self, err);
}

/* ---- writing ------------------------------------------------------------ */

typedef struct tiles {
    save *self;
    size_t *first; /* of each plan among all tiles; one more at the end */
} tiles;

static size_t plan_of(const tiles *all, size_t item)
{
    size_t low = 0;
    size_t high = all->self->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (all->first[middle] <= item)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int write_item(size_t item, void *ctx, bal_error *err)
{
    const tiles *all = ctx;
    save *self = all->self;
    size_t i = plan_of(all, item);
    size_t tile = item - all->first[i];
    bal_wd_plan *plan = &self->plans[i];
    bal_wd_tile one;
    int rc = bal_wd_tile_read(&one, plan, &self->from, tile, err);

    if (!rc)
        rc = bal_wd_tile_write(&one, plan, tile, &self->from, self->file.fd,
                               err);
    bal_work_advance(self->from.work, one.n);
    return rc;
}

static int write_tiles(save *self, bal_error *err)
{
    tiles all = { self, calloc(self->count + 1, sizeof(size_t)) };
    if (!all.first)
        return bal_fail_memory(err, "writing a .wdelta file");

    for (size_t i = 0; i < self->count; i++)
        all.first[i + 1] = all.first[i] + self->plans[i].tiles;
    int rc = bal_pool_run(self->from.work, all.first[self->count], write_item,
                          &all, err);
    free(all.first);
    for (size_t i = 0; i < self->count && !rc; i++)
        rc = bal_wd_edges_write(&self->plans[i], self->file.fd, err);
    return rc;
}

/* The file's own hash, of its bytes as they are read back. */
static int write_trailer(save *self, bal_error *err)
{
    uint64_t size = self->layout.size - BAL_WD_TRAILER;
    const bal_file file = { .fd = self->file.fd, .path = self->file.path };
    bal_sha256 own;
    int rc = bal_wd_hash_file(&own, &file, size, self->from.work, err);

    return rc ? rc
              : bal_wd_pwrite(self->file.fd, size, own.bytes, sizeof(own.bytes),
                              err);
}

/* The arrays, laid out as they are known: of what is stored without loss, how
 * long a piece is shows when it is coded. */
static int write_arrays(save *self, bal_error *err)
{
    bal_wd_layout *layout = &self->layout;
    int fd = self->file.fd;
    int rc = bal_wd_layout_make(layout, err);

    if (!rc && self->exact)
        rc = bal_wd_pieces_write(self->plans, self->count, &self->from, fd,
                                 layout->start.len, err);
    if (!rc && self->exact)
        rc = bal_wd_layout_make(layout, err);
    if (!rc)
        rc = bal_wd_layout_write(layout, fd, err);
    return rc || self->exact ? rc : write_tiles(self, err);
}

static int write_all(save *self, bal_error *err)
{
    bal_sha256_hex(self->hex, &self->parent);
    self->layout = (bal_wd_layout){
        .version = self->exact ? 2 : 1,
        .strategy = self->options->strategy ? self->options->strategy : "int4",
        .parent = self->hex,
        .tuned = self->from.tuned,
        .base = self->from.base,
        .plans = self->plans,
        .count = self->count,
    };
    int rc = write_arrays(self, err);
    if (!rc)
        rc = write_trailer(self, err);
    return rc ? bal_within(err, rc, "'%s'", self->file.path) : 0;
}

static int check_options(const bal_wdelta_options *options, bal_error *err)
{
    bal_wd_kind kind;

    if (options->strategy && !bal_wd_strategy_find(&kind, options->strategy))
        return bal_fail(err, BAL_EINVAL, "unknown strategy '%s'",
                        options->strategy);
    if (!(options->sparsity < 1.0) || !(options->outlier_fraction <= 1.0) ||
        options->max_error != options->max_error)
        return bal_fail(err, BAL_EINVAL,
                        "a sparsity below 1 and an outlier fraction of at most "
                        "1 are needed");
    return 0;
}

int bal_wdelta_save(const char *out, bal_model *tuned, bal_model *base,
                    const bal_wdelta_options *options, bal_wdelta_saved *saved,
                    bal_work *work, bal_error *err)
{
    BAL_LOCAL(save) self = { .options = options, .file = { .fd = -1 } };

    self.from = (bal_wd_source){ .tuned = tuned, .base = base, .work = work };
    self.exact = options->strategy && !strcmp(options->strategy, "lossless");
    int rc = check_options(options, err);
    if (!rc)
        rc = bal_outfile_make(&self.file, out, options->avoid,
                              options->avoid_count, err);
    if (!rc)
        rc = prepare(&self, err);
    if (!rc)
        rc = plan_all(&self, err);
    if (!rc)
        rc = write_all(&self, err);
    if (!rc)
        rc = bal_work_poll(work, err);
    if (!rc)
        rc = bal_outfile_publish(&self.file, err);
    if (rc || !saved)
        return rc;
    *saved = (bal_wdelta_saved){
        .tensors = self.count,
        .size = self.layout.size,
        .version = self.layout.version,
    };
    memcpy(saved->parent_hash, self.hex, sizeof(saved->parent_hash));
    return 0;
}
