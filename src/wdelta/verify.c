/* Do the bytes, the base and the links of a chain hold? Each file has the
 * SHA-256 of itself at its end and that of the model it was made against in its
 * header. What that was taken over differs by who wrote it:
 *  - the base's tensors as they are stored, in the order in which they first
 *    appear among the records, which is the order of every writer; or by name;
 *  - of a base that was given as float32 arrays, those;
 *  - of a link, the float32 sum of the base and all files before it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/pool.h"
#include "model/digest.h"
#include "wdelta/chain.h"

typedef struct link {
    bal_sha256 trailer; /* of the bytes */
    bal_sha256 parent;  /* of the model before, as first tried */
    const char *how;    /* NULL: nothing fits */
    int rc;             /* what came in the way of finding out */
    bal_error err;
} link;

typedef struct verify {
    bal_model *base;
    bal_wdelta *const *files;
    size_t count;
    bal_work *work;
    link *links;
} verify;

static void verify_done(verify *self)
{
    free(self->links);
}

/* ---- parents ------------------------------------------------------------ */

static int compare_size(const void *a, const void *b)
{
    size_t left = *(const size_t *)a;
    size_t right = *(const size_t *)b;

    return (left > right) - (left < right);
}

/* The entries of model that file covers, by its records, or by name, which is
 * the order of entries. */
static size_t *entries_of(const bal_wdelta *file, const bal_model *model,
                          bool by_name, size_t *count)
{
    size_t *entries = calloc(file->order_count + 1, sizeof(*entries));

    *count = 0;
    for (size_t i = 0; entries && i < file->order_count; i++) {
        size_t at = bal_model_find(model, BAL_PART_TENSOR,
                                   file->tensors[file->order[i]].name);
        if (at != BAL_NONE)
            entries[(*count)++] = at;
    }
    if (entries && by_name)
        qsort(entries, *count, sizeof(*entries), compare_size);
    return entries;
}

static int try_parent(verify *self, size_t i, bal_model *model, bool by_name,
                      bal_sha256 *got, bal_error *err)
{
    const bal_wdelta *file = self->files[i];
    size_t count = 0;
    size_t *entries = entries_of(file, model, by_name, &count);
    if (!entries)
        return bal_fail_memory(err, "checking a .wdelta file");

    int rc = bal_wd_hash(got, model, entries, count, self->work, err);
    free(entries);
    return rc;
}

static bool is_parent(const bal_wdelta *file, const bal_sha256 *got)
{
    char hex[65];

    bal_sha256_hex(hex, got);
    return !strcmp(hex, file->parent);
}

static const struct {
    bool raw; /* float32 sums rather than the base's bytes */
    bool by_name;
    const char *how;
} tries[] = {
    { false, false, "records" },
    { false, true, "names" },
    { true, false, "float32" },
    { true, true, "float32-names" },
};

/* The first file that is added up with file i: none before it is, where it or
 * the one before it is stored without loss. */
static bool begins(const verify *self, size_t i)
{
    return !i || bal_wd_exact(self->files[i]) ||
           bal_wd_exact(self->files[i - 1]);
}

static int check_parent(verify *self, size_t i, bal_error *err)
{
    const bal_wdelta *file = self->files[i];
    link *to = &self->links[i];
    bool first = true;

    for (size_t k = 0; k < sizeof(tries) / sizeof(tries[0]); k++) {
        BAL_OWN(bal_model) model = NULL;
        bal_sha256 got;
        if (!tries[k].raw && !begins(self, i))
            continue;
        int rc = bal_wd_chain(&model, self->base, self->files, i,
                              tries[k].raw ? BAL_WD_RAW : 0, err);
        if (!rc)
            rc = try_parent(self, i, model, tries[k].by_name, &got, err);
        if (rc)
            return rc;
        if (first)
            to->parent = got;
        first = false;
        if (is_parent(file, &got)) {
            to->how = tries[k].how;
            return 0;
        }
    }
    return 0;
}

/* Does each tensor that was stored without loss come out as it went in? */
static int check_digests(const verify *self, size_t i, bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;
    int rc = bal_wd_chain(&model, self->base, self->files, i + 1, 0, err);
    if (rc)
        return rc;
    bal_id *digests = calloc(bal_model_count(model) + 1, sizeof(*digests));
    if (!digests)
        return bal_fail_memory(err, "checking a .wdelta file");

    rc = bal_digest_model(digests, model, self->work, err);
    for (size_t k = 0; k < bal_model_count(model) && !rc; k++) {
        const bal_tensor *entry = bal_model_at(model, k);
        if (entry->tuned && !bal_id_equal(entry->tuned, &digests[k]))
            rc = bal_fail(err, BAL_ECORRUPT,
                          "'%s': tensor '%.200s' is not what was saved",
                          self->files[i]->file->path, entry->name);
    }
    free(digests);
    return rc;
}

/* ---- all ---------------------------------------------------------------- */

static int check_item(size_t item, void *ctx, bal_error *err)
{
    verify *self = ctx;
    size_t i = item % self->count;
    const bal_file *file = self->files[i]->file;

    /* What a wrong base makes of files that come later is not what is wrong:
     * it is kept until those before are judged. */
    if (item >= self->count) {
        link *to = &self->links[i];
        to->rc = check_parent(self, i, &to->err);
        if (to->rc == BAL_ECORRUPT)
            return 0;
        if (err)
            *err = to->err;
        return to->rc;
    }
    return bal_wd_hash_file(&self->links[i].trailer, file,
                            file->size - BAL_WD_TRAILER, self->work, err);
}

static int told(const verify *self, size_t i, bal_error *err)
{
    const bal_wdelta *file = self->files[i];
    const link *from = &self->links[i];
    const char *base = bal_model_facts(self->base)->name;
    bal_sha256 stored;
    char hex[65];
    int rc = bal_file_read(file->file, file->file->size - BAL_WD_TRAILER,
                           stored.bytes, sizeof(stored.bytes), err);
    if (rc)
        return rc;
    if (!bal_sha256_equal(&stored, &from->trailer))
        return bal_fail(err, BAL_ECORRUPT,
                        "'%s': checksum mismatch: its bytes are not those that "
                        "were written",
                        file->file->path);
    if (from->rc && err)
        *err = from->err;
    if (from->rc || from->how)
        return from->rc;
    bal_sha256_hex(hex, &from->parent);
    if (!i)
        rc =
            bal_fail(err, BAL_ECORRUPT,
                     "base model hash mismatch: '%s' was made against %.12s…, "
                     "'%s' is %.12s…",
                     file->file->path, file->parent, base ? base : "base", hex);
    else
        rc = bal_fail(err, BAL_ECORRUPT,
                      "parent hash mismatch: '%s' was made against %.12s…, "
                      "the files before it give %.12s…",
                      file->file->path, file->parent, hex);
    if (self->count == 1)
        return bal_hint(err, rc, "give the base that it was made from");
    rc = bal_within(err, rc, "link %zu of %zu", i + 1, self->count);
    return bal_hint(err, rc, "a chain is given in its order, the oldest first");
}

int bal_wdelta_verify(bal_wdelta *const *files, size_t count, bal_model *base,
                      bal_work *work, const char **how, bal_error *err)
{
    BAL_LOCAL(verify)
    self = { .base = base, .files = files, .count = count, .work = work };
    BAL_OWN(bal_model) all = NULL;

    if (!count)
        return bal_fail(err, BAL_EINVAL, "no .wdelta file to check");
    int rc = bal_wd_chain(&all, base, files, count, 0, err);
    if (rc)
        return rc;
    self.links = calloc(count, sizeof(*self.links));
    if (!self.links)
        return bal_fail_memory(err, "checking a .wdelta file");
    rc = bal_pool_run(work, 2 * count, check_item, &self, err);
    for (size_t i = 0; i < count && !rc; i++) {
        rc = told(&self, i, err);
        if (!rc && bal_wd_exact(files[i]))
            rc = check_digests(&self, i, err);
        if (!rc && how)
            how[i] = self.links[i].how;
    }
    return rc;
}
