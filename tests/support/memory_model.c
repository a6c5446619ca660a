/* Entries have the number of their array as tag. */
#include "support/memory_model.h"

#include <stdlib.h>
#include <string.h>

#include "kernel/dtype.h"
#include "support/check.h"
#include "support/strange.h"

typedef struct memory {
    bal_model model;
    void **arrays;
    size_t arrays_count;
} memory;

static int memory_read(bal_model *model, size_t i, uint64_t offset, void *to,
                       size_t len, bal_error *err)
{
    memory *self = (memory *)model;

    (void)err;
    memcpy(to, (char *)self->arrays[bal_model_tag(model, i)] + offset, len);
    return 0;
}

static void memory_free(bal_model *model)
{
    memory *self = (memory *)model;

    for (size_t i = 0; i < self->arrays_count; i++)
        free(self->arrays[i]);
    free(self->arrays);
}

static const bal_model_ops ops = { .read = memory_read, .free = memory_free };

bal_model *memory_new(bal_kind kind, const char *name)
{
    memory *self = bal_model_alloc(sizeof(*self), &ops);
    bal_facts facts = { .kind = kind, .name = name };

    CHECK(self);
    CHECK_OK(bal_model_tell(&self->model, &facts, &check_err));
    return &self->model;
}

void memory_entry(bal_model *model, const bal_tensor *entry, const void *data)
{
    memory *self = (memory *)model;
    size_t n = self->arrays_count;
    uint64_t elements = 0;
    uint64_t size = 0;

    CHECK(bal_shape_size(&elements, &size, entry->dtype, entry->shape,
                         entry->rank));
    CHECK_OK(bal_model_add(model, entry, n, &check_err));
    void **arrays = realloc(self->arrays, (n + 1) * sizeof(*arrays));
    char *array = malloc(size + 1);
    if (!arrays || !array)
        abort();
    if (data)
        memcpy(array, data, size);
    arrays[n] = array;
    self->arrays = arrays;
    self->arrays_count++;
}

void memory_tensor(bal_model *self, const char *name, bal_dtype dtype,
                   uint32_t rank, const uint64_t *shape, const void *data)
{
    bal_tensor entry = {
        .name = name,
        .dtype = dtype,
        .of = dtype,
        .rank = rank,
        .shape = shape,
    };

    memory_entry(self, &entry, data);
}

void memory_file(bal_model *self, bal_part part, const char *name,
                 const void *data, size_t size)
{
    uint64_t shape[] = { size };
    bal_tensor entry = {
        .name = name,
        .part = part,
        .dtype = BAL_U8,
        .of = BAL_U8,
        .rank = 1,
        .shape = shape,
    };

    memory_entry(self, &entry, data);
}

void memory_strange(bal_model *self, const char *name, bal_dtype dtype,
                    uint32_t rank, const uint64_t *shape, uint64_t seed)
{
    uint64_t elements = 0;
    uint64_t size = 0;

    CHECK(bal_shape_size(&elements, &size, dtype, shape, rank));
    void *data = malloc(size + 1);
    if (!data)
        abort();
    strange_fill(data, size, dtype, &seed);
    memory_tensor(self, name, dtype, rank, shape, data);
    free(data);
}

void memory_strange1(bal_model *self, const char *name, bal_dtype dtype,
                     uint64_t n, uint64_t seed)
{
    memory_strange(self, name, dtype, 1, &n, seed);
}

void memory_finish(bal_model *self)
{
    CHECK_OK(bal_model_ready(self, &check_err));
}

void memory_check_entry(bal_model *want, bal_model *got, size_t i)
{
    const bal_tensor *entry = bal_model_at(want, i);
    size_t n = bal_model_find(got, entry->part, entry->name);

    CHECK(n != BAL_NONE);
    const bal_tensor *other = bal_model_at(got, n);
    CHECK(other->form == BAL_FORM_WHOLE && other->dtype == entry->dtype);
    CHECK(bal_tensor_same_shape(entry, other) && entry->size == other->size);
    char *a = malloc(entry->size + 1);
    char *b = malloc(entry->size + 2);
    if (!a || !b)
        abort();
    CHECK_OK(bal_model_read(want, i, 0, a, entry->size, &check_err));
    size_t unit = bal_dtype_bits(entry->dtype);
    size_t half = entry->size / 2 / unit * unit;
    CHECK_OK(bal_model_read(got, n, half, b + 1 + half, entry->size - half,
                            &check_err));
    CHECK_OK(bal_model_read(got, n, 0, b + 1, half, &check_err));
    CHECK(!memcmp(a, b + 1, entry->size));
    free(a);
    free(b);
}

static size_t count_but_headers(const bal_model *model)
{
    size_t count = 0;

    for (size_t i = 0; i < bal_model_count(model); i++)
        count += bal_model_at(model, i)->part != BAL_PART_HEADER;
    return count;
}

void memory_check_equal(bal_model *want, bal_model *got)
{
    for (size_t i = 0; i < bal_model_count(want); i++)
        memory_check_entry(want, got, i);
    CHECK(count_but_headers(want) == count_but_headers(got));
}
