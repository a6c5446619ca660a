/* What every model is: a list of entries in a fixed order, found by name, and
 * one door to its bytes. Entries are added in whatever order their source has
 * them, 2^20 of one header included, so they are sorted once, at the end; the
 * maps by name then lead through `places` to where an entry came to lie. */
#include "model/model.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "kernel/dtype.h"

enum { FIRST_ROOM = 64, PARTS = 3 };

static const char *const kinds[] = {
    [BAL_KIND_WEIGHTS] = "weights",
    [BAL_KIND_ADAPTER] = "adapter",
    [BAL_KIND_DELTA] = "delta",
    [BAL_KIND_VIEW] = "view",
};

static const char *const parts[PARTS] = {
    [BAL_PART_TENSOR] = "tensor",
    [BAL_PART_FILE] = "file",
    [BAL_PART_HEADER] = "header",
};

static const bool has_bytes[] = {
    [BAL_FORM_WHOLE] = true,    [BAL_FORM_DIFFERENCE] = true,
    [BAL_FORM_RESIDUAL] = true, [BAL_FORM_SAME] = false,
    [BAL_FORM_REMOVED] = false,
};

const char *bal_kind_name(bal_kind kind)
{
    bool known = (size_t)kind < sizeof(kinds) / sizeof(kinds[0]);

    return known ? kinds[kind] : "unknown";
}

const char *bal_part_name(bal_part part)
{
    return (size_t)part < PARTS ? parts[part] : "entry";
}

size_t bal_tiles(uint64_t size)
{
    uint64_t whole = size / BAL_TILE;

    return (size_t)bal_max(1, whole + (size % BAL_TILE != 0));
}

bool bal_tensor_float(const bal_tensor *tensor)
{
    return tensor->part == BAL_PART_TENSOR &&
           bal_dtype_row_of(tensor->dtype)->class_of == BAL_CLASS_FLOAT;
}

bool bal_tensor_same_shape(const bal_tensor *a, const bal_tensor *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->shape[i] != b->shape[i])
            return false;
    }
    return true;
}

/* ---- making one --------------------------------------------------------- */

void *bal_model_alloc(size_t size, const bal_model_ops *ops)
{
    assert(size >= sizeof(bal_model));
    bal_model *self = calloc(1, size);

    if (!self)
        return NULL;
    self->ops = ops;
    atomic_init(&self->refs, 1);
    return self;
}

static int grow(bal_model *self, bal_error *err)
{
    size_t room = self->room ? 2 * self->room : FIRST_ROOM;

    bal_tensor *entries = realloc(self->entries, room * sizeof(*entries));
    if (!entries)
        return bal_fail_memory(err, "listing a model");
    self->entries = entries;
    size_t *tags = realloc(self->tags, room * sizeof(*tags));
    if (!tags)
        return bal_fail_memory(err, "listing a model");
    self->tags = tags;
    self->room = room;
    return 0;
}

/* A copy of len bytes in the arena; *failed is set if there is no memory. */
static const void *keep(bal_model *self, const void *from, size_t len,
                        bool *failed)
{
    if (!from)
        return NULL;
    void *copy = bal_arena_alloc(&self->arena, len);
    if (!copy) {
        *failed = true;
        return NULL;
    }
    memcpy(copy, from, len);
    return copy;
}

static const char *keep_text(bal_model *self, const char *text, bool *failed)
{
    return keep(self, text, text ? strlen(text) + 1 : 0, failed);
}

static int measure(bal_tensor *entry, bal_error *err)
{
    uint64_t elements = 0;

    if ((unsigned)entry->dtype >= BAL_DTYPES || entry->rank > BAL_MAX_RANK)
        return bal_fail(err, BAL_ECORRUPT, "%s '%.200s': no such dtype or rank",
                        bal_part_name(entry->part), entry->name);
    entry->size = 0;
    if (!has_bytes[entry->form])
        return 0;
    if (!bal_shape_size(&elements, &entry->size, entry->dtype, entry->shape,
                        entry->rank))
        return bal_fail(err, BAL_ECORRUPT,
                        "%s '%.200s': a shape that is too large or does not "
                        "fill whole bytes",
                        bal_part_name(entry->part), entry->name);
    return 0;
}

/* A file is U8 [length]; one that is told by its length alone gets its shape.
 */
static void complete(bal_tensor *entry, const uint64_t *length)
{
    if (entry->form == BAL_FORM_WHOLE)
        entry->of = entry->dtype;
    if (entry->part == BAL_PART_TENSOR || entry->rank)
        return;
    entry->dtype = BAL_U8;
    entry->of = BAL_U8;
    entry->rank = 1;
    entry->shape = length;
}

static int put_name(bal_model *self, const bal_tensor *entry, bal_error *err)
{
    size_t value = self->count;
    bool there = false;

    if (entry->form == BAL_FORM_RESIDUAL)
        return 0;
    int rc = bal_map_add(&self->names[entry->part], entry->name,
                         strlen(entry->name), &value, &there, err);
    if (rc)
        return rc;
    if (there)
        return bal_fail(err, BAL_ECORRUPT, "%s '%.200s' is there twice",
                        bal_part_name(entry->part), entry->name);
    return 0;
}

int bal_model_add(bal_model *self, const bal_tensor *entry, size_t tag,
                  bal_error *err)
{
    bal_tensor copy = *entry;
    bool failed = false;

    assert((size_t)entry->part < PARTS && entry->name);
    complete(&copy, &entry->size);
    int rc = self->count < self->room ? 0 : grow(self, err);
    if (rc)
        return rc;
    rc = measure(&copy, err);
    if (rc)
        return rc;
    copy.name = keep_text(self, copy.name, &failed);
    copy.shape = keep(self, copy.shape, copy.rank * sizeof(uint64_t), &failed);
    copy.base = keep(self, copy.base, sizeof(bal_id), &failed);
    copy.tuned = keep(self, copy.tuned, sizeof(bal_id), &failed);
    if (failed)
        return bal_fail_memory(err, "listing a model");
    rc = put_name(self, &copy, err);
    if (rc)
        return rc;

    self->entries[self->count] = copy;
    self->tags[self->count] = tag;
    self->count++;
    return 0;
}

int bal_model_tell(bal_model *self, const bal_facts *facts, bal_error *err)
{
    bool failed = false;
    bal_facts copy = {
        .kind = facts->kind,
        .name = keep_text(self, facts->name, &failed),
        .base_model = keep_text(self, facts->base_model, &failed),
        .revision = keep_text(self, facts->revision, &failed),
        .report = keep_text(self, facts->report, &failed),
    };

    if (failed)
        return bal_fail_memory(err, "describing a model");
    self->facts = copy;
    return 0;
}

/* ---- order -------------------------------------------------------------- */

typedef struct row {
    bal_tensor entry;
    size_t tag;
    size_t place; /* when it was added */
} row;

static int compare_entries(const bal_tensor *a, const bal_tensor *b)
{
    if (a->part != b->part)
        return a->part < b->part ? -1 : 1;
    int order = strcmp(a->name, b->name);
    if (order)
        return order;
    return (a->form == BAL_FORM_RESIDUAL) - (b->form == BAL_FORM_RESIDUAL);
}

static int compare_rows(const void *a, const void *b)
{
    const row *left = a;
    const row *right = b;

    return compare_entries(&left->entry, &right->entry);
}

static bool in_order(const bal_model *self)
{
    for (size_t i = 1; i < self->count; i++) {
        if (compare_entries(&self->entries[i - 1], &self->entries[i]) > 0)
            return false;
    }
    return true;
}

static int sort(bal_model *self, bal_error *err)
{
    row *rows = malloc(self->count * sizeof(*rows));
    if (!rows)
        return bal_fail_memory(err, "sorting a model");

    for (size_t i = 0; i < self->count; i++)
        rows[i] = (row){ self->entries[i], self->tags[i], i };
    qsort(rows, self->count, sizeof(*rows), compare_rows);
    for (size_t i = 0; i < self->count; i++) {
        self->entries[i] = rows[i].entry;
        self->tags[i] = rows[i].tag;
        self->places[rows[i].place] = i;
    }
    free(rows);
    return 0;
}

/* A RESIDUAL follows a DIFFERENCE of its name, and only one does. */
static int check_residuals(const bal_model *self, bal_error *err)
{
    for (size_t i = 0; i < self->count; i++) {
        const bal_tensor *entry = &self->entries[i];
        if (entry->form != BAL_FORM_RESIDUAL)
            continue;
        const bal_tensor *before = i ? entry - 1 : NULL;
        if (!before || before->part != entry->part ||
            before->form != BAL_FORM_DIFFERENCE ||
            strcmp(before->name, entry->name) != 0)
            return bal_fail(err, BAL_ECORRUPT,
                            "tensor '%.200s': a residual without its "
                            "difference, or two of them",
                            entry->name);
    }
    return 0;
}

int bal_model_ready(bal_model *self, bal_error *err)
{
    if (self->count) {
        self->places = malloc(self->count * sizeof(*self->places));
        if (!self->places)
            return bal_fail_memory(err, "sorting a model");
    }
    for (size_t i = 0; i < self->count; i++)
        self->places[i] = i;
    int rc = in_order(self) ? 0 : sort(self, err);
    if (rc)
        return rc;
    return check_residuals(self, err);
}

size_t bal_model_tag(const bal_model *self, size_t i)
{
    assert(i < self->count);
    return self->tags[i];
}

/* ---- doors -------------------------------------------------------------- */

size_t bal_model_count(const bal_model *self)
{
    return self->count;
}

const bal_tensor *bal_model_at(const bal_model *self, size_t i)
{
    assert(i < self->count);
    return &self->entries[i];
}

size_t bal_model_find(const bal_model *self, bal_part part, const char *name)
{
    if ((size_t)part >= PARTS)
        return BAL_NONE;
    size_t n = bal_map_find(&self->names[part], name, strlen(name));

    return n == BAL_NONE ? BAL_NONE : self->places[n];
}

const bal_facts *bal_model_facts(const bal_model *self)
{
    return &self->facts;
}

/* Eight elements take as many bytes as one has bits. Elements of less than a
 * byte are never computed with, so any byte of them will do: a tile of F6 does
 * not end between elements. */
static bool aligned(const bal_tensor *entry, uint64_t offset, size_t len)
{
    unsigned bits = bal_dtype_bits(entry->dtype);

    if (bits < 8)
        return true;
    return !(offset % bits) && (!(len % bits) || offset + len == entry->size);
}

int bal_model_read(bal_model *self, size_t i, uint64_t offset, void *to,
                   size_t len, bal_error *err)
{
    uint64_t end = 0;

    assert(i < self->count);
    const bal_tensor *entry = &self->entries[i];
    if (!bal_add(&end, offset, len) || end > entry->size)
        return bal_fail(
            err, BAL_EINVAL,
            "%s '%.200s' has %" PRIu64 " bytes, not %zu at %" PRIu64,
            bal_part_name(entry->part), entry->name, entry->size, len, offset);
    if (!len)
        return self->ops->ask ? self->ops->ask(self, err) : 0;
    if (!aligned(entry, offset, len))
        return bal_fail(err, BAL_EINVAL,
                        "%s '%.200s': %zu bytes at %" PRIu64
                        " are not whole groups of 8 elements",
                        bal_part_name(entry->part), entry->name, len, offset);
    return self->ops->read(self, i, offset, to, len, err);
}

void bal_model_pass(bal_model *self, size_t i, uint64_t offset, uint64_t len)
{
    if (self->ops->pass)
        self->ops->pass(self, i, offset, len);
}

bal_model *bal_model_source(bal_model *self, size_t *i)
{
    bal_model *next = self;

    while (next) {
        self = next;
        next = self->ops->source ? self->ops->source(self, i) : NULL;
    }
    return self;
}

void bal_model_ident(bal_ident *out, bal_model *self, size_t i, uint64_t offset,
                     uint64_t len)
{
    *out = (bal_ident){ .of = self, .entry = i, .offset = offset };
    if (self->ops->ident && !self->ops->ident(self, i, offset, len, out))
        *out = (bal_ident){ .of = self, .entry = i, .offset = offset };
}

bool bal_model_in_blocks(const bal_model *self)
{
    return self->ops->ident != NULL;
}

bool bal_ident_equal(const bal_ident *a, const bal_ident *b)
{
    return a->of == b->of && a->entry == b->entry && a->offset == b->offset &&
           bal_id_equal(&a->id, &b->id);
}

bool bal_model_squares(double *out, bal_model *self, size_t i, uint64_t offset,
                       uint64_t len)
{
    return self->ops->squares && self->ops->squares(self, i, offset, len, out);
}

bal_model *bal_model_ref(bal_model *self)
{
    if (self)
        atomic_fetch_add_explicit(&self->refs, 1, memory_order_relaxed);
    return self;
}

void bal_model_free(bal_model *self)
{
    if (!self ||
        atomic_fetch_sub_explicit(&self->refs, 1, memory_order_acq_rel) != 1)
        return;
    self->ops->free(self);
    for (size_t i = 0; i < PARTS; i++)
        bal_map_done(&self->names[i]);
    bal_arena_done(&self->arena);
    free(self->entries);
    free(self->tags);
    free(self->places);
    free(self);
}

int bal_model_mirror(bal_model *self, const bal_model *of, bal_error *err)
{
    int rc = bal_model_tell(self, bal_model_facts(of), err);

    for (size_t i = 0; i < bal_model_count(of) && !rc; i++)
        rc = bal_model_add(self, bal_model_at(of, i), i, err);
    return rc ? rc : bal_model_ready(self, err);
}
