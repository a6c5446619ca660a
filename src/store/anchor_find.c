/* Which commit a model is nearest to. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/dtype.h"
#include "model/digest.h"
#include "store/anchor.h"

/* ---- how near ----------------------------------------------------------- */

enum { SAMPLES = 16, FEW = 3, SAMPLE = 512 /* elements */ };

/* Tensors' bytes of the model that the anchor has numbers for, and of all. */
typedef struct cover {
    uint64_t told, all;
} cover;

static cover cover_of(const bal_anchor *self, const bal_model *model)
{
    cover sum = { 0, 0 };

    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        const bal_tensor *base;
        bal_block_kind kind;
        if (entry->part != BAL_PART_TENSOR)
            continue;
        sum.all += entry->size;
        base = bal_anchor_entry(self, entry);
        if (base && bal_anchor_told(&kind, entry, base))
            sum.told += entry->size;
    }
    return sum;
}

static uint64_t element(const uint8_t *from, size_t width)
{
    uint64_t bits = 0;

    memcpy(&bits, from, width);
    return bits;
}

/* Bits of |a - b| as integers, and one for the sign. */
static unsigned distance(const uint8_t *a, const uint8_t *b, size_t width)
{
    uint64_t x = element(a, width);
    uint64_t y = element(b, width);
    uint64_t off = x > y ? x - y : y - x;

    return off ? 65 - (unsigned)__builtin_clzll(off) : 0;
}

/* Where a run of an entry is, in the model and in the anchor. */
typedef struct run {
    size_t entry, place;
    uint64_t start;
    size_t n;
} run;

static run run_of(const bal_anchor *self, const bal_model *model, size_t i)
{
    const bal_tensor *entry = bal_model_at(model, i);
    uint64_t elements = entry->size / (bal_dtype_bits(entry->dtype) / 8);
    size_t n = (size_t)bal_min(elements, SAMPLE);

    return (run){ i, bal_model_find(self->model, BAL_PART_TENSOR, entry->name),
                  (elements - n) / 2 / 8 * 8, n };
}

/* Of values: the part of their bits that their distance takes. */
static int sample(double *out, const bal_anchor *self, bal_model *model,
                  size_t i, bal_error *err)
{
    const run at = run_of(self, model, i);
    size_t width = bal_dtype_bits(bal_model_at(model, i)->dtype) / 8;
    uint8_t a[SAMPLE * 8];
    uint8_t b[SAMPLE * 8];
    double bits = 0;
    int rc = bal_model_read(model, i, at.start * width, a, at.n * width, err);
    if (!rc)
        rc = bal_model_read(self->model, at.place, at.start * width, b,
                            at.n * width, err);

    for (size_t k = 0; !rc && k < at.n; k++)
        bits += distance(a + k * width, b + k * width, width);
    *out = at.n ? bits / (double)(at.n * width * 8) : 0;
    return rc;
}

/* Is the anchor's entry what the difference is to? Of one that is not larger
 * than a tile; a larger one is not read. */
static int check_off(bool *same, const bal_anchor *self,
                     const bal_tensor *entry, bal_error *err)
{
    size_t at = bal_model_find(self->model, BAL_PART_TENSOR, entry->name);
    const bal_tensor *base = bal_model_at(self->model, at);
    size_t size = (size_t)base->size;
    bal_id tile;
    bal_id digest;
    uint8_t *bytes = malloc(size + 1);
    if (!bytes)
        return bal_fail_memory(err, "an anchor");

    int rc = bal_model_read(self->model, at, 0, bytes, size, err);
    if (!rc) {
        bal_hash_of(&tile, bytes, size);
        bal_digest_of_tiles(&digest, base, &tile);
        *same = bal_id_equal(&digest, entry->base);
    }
    free(bytes);
    return rc;
}

enum { CHECKS = 3 };

/* Of a delta: some of the tensors that it changes are to be the anchor's own.
 * What is unchanged would be the same in many. */
static int is_base(bool *same, const bal_anchor *self, const bal_model *model,
                   bal_error *err)
{
    size_t checked = 0;
    int rc = 0;

    *same = true;
    for (size_t i = 0; !rc && *same && i < bal_model_count(model); i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        const bal_tensor *base;
        bal_block_kind kind;
        if (checked == CHECKS || entry->part != BAL_PART_TENSOR ||
            entry->form != BAL_FORM_DIFFERENCE || !entry->base)
            continue;
        base = bal_anchor_entry(self, entry);
        if (!base || !bal_anchor_told(&kind, entry, base) || !kind.difference ||
            base->size > BAL_TILE)
            continue;
        rc = check_off(same, self, entry, err);
        checked++;
    }
    *same = *same && checked;
    return rc;
}

/* How far away the anchor is, 0 … 1: the mean of some runs of values, or of the
 * first of them if that is well above what is of use. */
static int measure(double *out, const bal_anchor *self, bal_model *model,
                   double useful, bal_error *err)
{
    size_t count = bal_model_count(model);
    size_t step = count / SAMPLES + 1;
    size_t sampled = 0;
    double sum = 0;
    double weight = 0;
    int rc = 0;

    for (size_t i = 0; !rc && i < count; i += step) {
        const bal_tensor *entry = bal_model_at(model, i);
        const bal_tensor *base = entry->part == BAL_PART_TENSOR
                                     ? bal_anchor_entry(self, entry)
                                     : NULL;
        bal_block_kind kind;
        double bits = 0;
        if (!base || !bal_anchor_told(&kind, entry, base) || kind.difference)
            continue;
        rc = sample(&bits, self, model, i, err);
        sum += bits * (double)entry->size;
        weight += (double)entry->size;
        if (++sampled >= FEW && sum > 1.25 * useful * weight)
            break;
    }
    *out = weight > 0 ? sum / weight : 1;
    return rc;
}

/* A delta's base is as near as can be; else values are compared. */
static int weigh(double *out, const bal_anchor *self, bal_model *model,
                 double useful, bal_error *err)
{
    bool same = false;
    bool off = bal_model_facts(model)->kind == BAL_KIND_DELTA &&
               self->leaf.kind == BAL_KIND_WEIGHTS;
    int rc = off ? is_base(&same, self, model, err) : 0;

    *out = same ? 0 : 1;
    return rc || off ? rc : measure(out, self, model, useful, err);
}

/* ---- finding ------------------------------------------------------------ */

typedef struct search {
    const bal_tenant *tenant;
    bal_model *model;
    bal_anchor best;
    double distance; /* of it */
    double enough;   /* nothing nearer is looked for */
    unsigned sampled;
    bal_buf ids; /* manifest, commit, manifest, commit … */
} search;

static void search_done(search *self)
{
    bal_anchor_done(&self->best);
    bal_buf_done(&self->ids);
}

/* Nothing farther away is of use. A commit that was told of is taken if it is
 * near; among others, nothing is looked for once one is close. */
static const double far = 0.6, near = 0.35, close = 0.1;

static int consider(search *self, const bal_id *manifest, const bal_id *commit,
                    bal_error *err)
{
    BAL_LOCAL(bal_anchor)
    one = { .there = true, .manifest = *manifest, .commit = *commit };
    double off = 1;
    int rc = bal_anchor_open(&one, self->tenant, NULL);
    if (rc)
        return rc == BAL_ENOMEM ? bal_fail_memory(err, "an anchor") : 0;

    cover sum = cover_of(&one, self->model);
    if (!sum.all || sum.told < sum.all / 4 * 3)
        return 0;
    self->sampled++;
    double useful = self->best.there ? self->distance : far;
    rc = weigh(&off, &one, self->model, useful, NULL);
    if (rc)
        return rc == BAL_ENOMEM ? bal_fail_memory(err, "an anchor") : 0;
    if (off >= useful)
        return 0;
    bal_anchor_done(&self->best);
    self->best = one;
    self->distance = off;
    one = (bal_anchor){ 0 };
    return 0;
}

static bool is_enough(const search *self)
{
    return self->sampled >= BAL_ANCHOR_SAMPLED ||
           (self->best.there && self->distance < self->enough);
}

static int take_wish(void *ctx, const bal_commit_row *row, bal_error *err)
{
    search *self = ctx;
    int rc = bal_buf_append(&self->ids, &row->manifest, sizeof(bal_id), err);

    return rc ? rc : bal_buf_append(&self->ids, &row->id, sizeof(bal_id), err);
}

static int take_recent(void *ctx, const bal_id *manifest, const bal_id *commit,
                       bal_error *err)
{
    search *self = ctx;
    int rc = bal_buf_append(&self->ids, manifest, sizeof(bal_id), err);

    return rc ? rc : bal_buf_append(&self->ids, commit, sizeof(bal_id), err);
}

static int consider_all(search *self, bal_error *err)
{
    const bal_id *ids = bal_ids_of(&self->ids);
    int rc = 0;

    for (size_t i = 0; !rc && i + 1 < bal_ids_count(&self->ids); i += 2) {
        if (is_enough(self))
            break;
        rc = consider(self, &ids[i], &ids[i + 1], err);
    }
    bal_buf_clear(&self->ids);
    return rc;
}

static int look_at_wish(search *self, const bal_id *commit, bal_error *err)
{
    if (!commit || is_enough(self))
        return 0;
    int rc = bal_graph_commit(self->tenant->store->graph, self->tenant->number,
                              commit, take_wish, self, NULL);
    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "an anchor");
    return rc ? 0 : consider_all(self, err);
}

/* The oldest are looked at again if they are among the latest, and are no
 * nearer then. */
static int look_at_recent(search *self, const char *kind, uint64_t least,
                          uint64_t largest, bal_error *err)
{
    const bal_recent rows[] = {
        { kind, least, largest, BAL_ANCHOR_OLDEST, .oldest = true },
        { kind, least, largest, BAL_ANCHOR_LOOKED_AT },
    };
    int rc = 0;

    for (size_t i = 0; i < 2 && !rc && !is_enough(self); i++) {
        rc = bal_graph_recent(self->tenant->store->graph, self->tenant->number,
                              &rows[i], take_recent, self, err);
        if (!rc)
            rc = consider_all(self, err);
    }
    return rc;
}

static uint64_t bytes_of(const bal_model *model)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < bal_model_count(model); i++)
        sum += bal_model_at(model, i)->size;
    return sum;
}

/* Of the same kind and about the same size; of a delta also what it may be a
 * difference to. */
static int look_around(search *self, bal_error *err)
{
    bal_kind kind = bal_model_facts(self->model)->kind;
    uint64_t bytes = bytes_of(self->model);
    int rc = look_at_recent(self, bal_kind_name(kind), bytes - bytes / 8,
                            bytes + bytes / 8, err);

    if (rc || kind != BAL_KIND_DELTA)
        return rc;
    return look_at_recent(self, bal_kind_name(BAL_KIND_WEIGHTS), 0, UINT64_MAX,
                          err);
}

int bal_anchor_find(bal_anchor *out, const bal_tenant *tenant, bal_model *model,
                    const bal_anchor_wish *wish, bal_error *err)
{
    BAL_LOCAL(search)
    self = { .tenant = tenant, .model = model, .enough = near };
    int rc = 0;

    if (!tenant->number)
        return 0;
    rc = look_at_wish(&self, wish->base, err);
    if (!rc)
        rc = look_at_wish(&self, wish->parent, err);
    if (rc)
        return rc;
    if (!is_enough(&self)) {
        self.enough = close;
        rc = look_around(&self, err);
    }
    if (rc)
        return rc;
    *out = self.best;
    self.best = (bal_anchor){ 0 };
    return 0;
}

int bal_anchor_among(bal_anchor *out, const bal_tenant *tenant,
                     bal_model *model, const bal_id *manifests, size_t count,
                     bal_error *err)
{
    BAL_LOCAL(search)
    self = { .tenant = tenant, .model = model, .enough = close };
    size_t oldest = bal_min(count, BAL_ANCHOR_OLDEST);
    size_t looked = bal_min(count, BAL_ANCHOR_LOOKED_AT);
    int rc = 0;

    for (size_t i = 0; !rc && i < looked && !is_enough(&self); i++) {
        const bal_id *id =
            &manifests[i < oldest ? i : count - 1 - (i - oldest)];
        rc = consider(&self, id, id, err);
    }
    if (rc)
        return rc;
    *out = self.best;
    self.best = (bal_anchor){ 0 };
    return 0;
}
