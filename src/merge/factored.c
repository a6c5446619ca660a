/* An adapter whose factors are computed when they are read. Reading a factor
 * gives its partner as well, so both are kept until room is needed for other
 * modules: who reads a model through asks for one right after the other. */
#include "merge/factored.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"

enum { PIECE = 64 * 1024 };

typedef struct bal_factored_slot slot;

static int no_memory(bal_error *err)
{
    return bal_fail_memory(err, "an adapter's factors");
}

/* ---- factors ------------------------------------------------------------ */

/* Columns as rows of the dtype. */
static int turn_over(char *to, bal_dtype dtype, const double *columns,
                     size_t length, size_t count, bal_error *err)
{
    size_t width = bal_dtype_bits(dtype) / 8;
    size_t most = bal_max(PIECE / count, 1);
    double *rows = malloc(most * count * sizeof(*rows));
    if (!rows)
        return no_memory(err);

    for (size_t start = 0; start < length; start += most) {
        size_t n = bal_min(length - start, most) * count;
        for (size_t at = 0; at < n; at++)
            rows[at] = columns[at % count * length + start + at / count];
        bal_kernels_use()->from_f64[dtype](to + start * count * width, rows, n);
    }
    free(rows);
    return 0;
}

/* Is everything finite that was rounded to the dtype? */
static bool fits(const char *factor, bal_dtype dtype, size_t count)
{
    enum { WIDE = 512 };
    double wide[WIDE];
    size_t width = bal_dtype_bits(dtype) / 8;
    bool finite = true;

    for (size_t at = 0; at < count && finite; at += WIDE) {
        size_t n = bal_min(count - at, WIDE);
        bal_kernels_use()->to_f64[dtype](wide, factor + at * width, n);
        for (size_t i = 0; i < n; i++)
            finite &= wide[i] - wide[i] == 0;
    }
    return finite;
}

static int narrow(slot *to, const bal_factored *self, const bal_lowrank *cut,
                  bal_error *err)
{
    size_t width = bal_dtype_bits(self->dtype) / 8;

    to->factors[0] = malloc(cut->r * cut->n * width + 1);
    to->factors[1] = malloc(cut->r * cut->m * width + 1);
    if (!to->factors[0] || !to->factors[1])
        return no_memory(err);
    bal_kernels_use()->from_f64[self->dtype](to->factors[0], cut->a,
                                             cut->r * cut->n);
    int rc =
        turn_over(to->factors[1], self->dtype, cut->b, cut->m, cut->r, err);
    if (rc || (fits(to->factors[0], self->dtype, cut->r * cut->n) &&
               fits(to->factors[1], self->dtype, cut->r * cut->m)))
        return rc;
    return bal_fail(err, BAL_EUNSUPPORTED, "factors too large for dtype %s",
                    bal_dtype_name(self->dtype));
}

static void empty(slot *self)
{
    self->module = BAL_NONE;
    for (size_t i = 0; i < 2; i++) {
        free(self->factors[i]);
        self->factors[i] = NULL;
    }
}

static int compute(slot *to, bal_factored *self, size_t i, bal_error *err)
{
    BAL_LOCAL(bal_lowrank) map = { 0 };
    int rc = self->compute(&map, self, i, err);

    empty(to);
    if (!rc)
        rc = narrow(to, self, &map, err);
    if (rc)
        empty(to);
    else
        to->module = i;
    return rc ? bal_within(err, rc, "module '%s'", self->modules[i].module) : 0;
}

static int read_factor(bal_factored *self, size_t i, size_t which,
                       uint64_t offset, void *to, size_t len, bal_error *err)
{
    slot *from = &self->slots[i % BAL_FACTORED_SLOTS];
    int rc = 0;

    pthread_mutex_lock(&from->lock);
    if (from->module != i)
        rc = compute(from, self, i, err);
    if (!rc) {
        assert(from->factors[which]);
        memcpy(to, from->factors[which] + offset, len);
    }
    pthread_mutex_unlock(&from->lock);
    return rc;
}

/* ---- the model ---------------------------------------------------------- */

static int read_a(bal_factored *self, size_t index, uint64_t offset, void *to,
                  size_t len, bal_error *err)
{
    return read_factor(self, index, 0, offset, to, len, err);
}

static int read_b(bal_factored *self, size_t index, uint64_t offset, void *to,
                  size_t len, bal_error *err)
{
    return read_factor(self, index, 1, offset, to, len, err);
}

static int read_config(bal_factored *self, size_t index, uint64_t offset,
                       void *to, size_t len, bal_error *err)
{
    (void)index;
    (void)err;
    memcpy(to, self->config.data + offset, len);
    return 0;
}

static int read_other(bal_factored *self, size_t index, uint64_t offset,
                      void *to, size_t len, bal_error *err)
{
    return bal_model_read(self->others, index, offset, to, len, err);
}

static int (*const readers[])(bal_factored *self, size_t index, uint64_t offset,
                              void *to, size_t len, bal_error *err) = {
    [BAL_MADE_A] = read_a,
    [BAL_MADE_B] = read_b,
    [BAL_MADE_CONFIG] = read_config,
    [BAL_MADE_OTHER] = read_other,
};

static int factored_read(bal_model *model, size_t i, uint64_t offset, void *to,
                         size_t len, bal_error *err)
{
    size_t index;
    bal_made what = bal_made_of(&index, model, i);

    return readers[what]((bal_factored *)model, index, offset, to, len, err);
}

static void factored_free(bal_model *model)
{
    bal_factored *self = (bal_factored *)model;

    self->drop(self);
    for (size_t i = 0; i < BAL_FACTORED_SLOTS; i++) {
        empty(&self->slots[i]);
        pthread_mutex_destroy(&self->slots[i].lock);
    }
    bal_model_free(self->others);
    bal_buf_done(&self->config);
    free(self->modules);
}

static const bal_model_ops factored_ops = {
    .read = factored_read,
    .free = factored_free,
};

void *bal_factored_alloc(size_t size, bal_factored_compute_fn *compute_fn,
                         void (*drop)(bal_factored *self))
{
    bal_factored *self = bal_model_alloc(size, &factored_ops);
    if (!self)
        return NULL;

    self->compute = compute_fn;
    self->drop = drop;
    for (size_t i = 0; i < BAL_FACTORED_SLOTS; i++) {
        pthread_mutex_init(&self->slots[i].lock, NULL);
        self->slots[i].module = BAL_NONE;
    }
    return self;
}

int bal_factored_list(bal_factored *self, const bal_loras *like,
                      size_t like_count, bal_error *err)
{
    const bal_entries entries = {
        .modules = self->modules,
        .count = self->count,
        .dtype = self->dtype,
        .config = &self->config,
        .files = self->others,
    };
    int rc = bal_concat_config(&self->config, like, like_count, self->modules,
                               self->count, err);

    return rc ? rc : bal_entries_add(&self->model, &entries, err);
}
