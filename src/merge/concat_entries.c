/* The entries of an adapter that is made of others. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/concat.h"
#include "merge/join.h"

/* A tag is an index and, in its last digit to this base, what it is of. */
enum { KINDS = BAL_MADE_OTHER + 1 };

static size_t tag_of(bal_made what, size_t index)
{
    return index * KINDS + (size_t)what;
}

bal_made bal_made_of(size_t *index, const bal_model *model, size_t i)
{
    size_t tag = bal_model_tag(model, i);

    *index = tag / KINDS;
    return (bal_made)(tag % KINDS);
}

static int add_factor(bal_model *to, const bal_entries *self, size_t i,
                      bal_made what, bal_error *err)
{
    const bal_joined *module = &self->modules[i];
    bool a = what == BAL_MADE_A;
    uint64_t shape[2] = { a ? module->rank : module->out,
                          a ? module->in : module->rank };
    BAL_LOCAL(bal_buf) name = { 0 };
    int rc =
        bal_buf_format(&name, err, "%s%s.lora_%s%c%s", BAL_PEFT_PREFIX,
                       module->module, module->embedding ? "embedding_" : "",
                       a ? 'A' : 'B', module->embedding ? "" : ".weight");
    if (rc)
        return rc;
    bal_tensor entry = {
        .name = bal_buf_string(&name),
        .dtype = self->dtype,
        .of = self->dtype,
        .rank = 2,
        .shape = shape,
    };
    return bal_model_add(to, &entry, tag_of(what, i), err);
}

static int add_config(bal_model *to, const bal_entries *self, bal_error *err)
{
    uint64_t size = self->config->len;
    bal_tensor config = {
        .name = BAL_PEFT_CONFIG,
        .part = BAL_PART_FILE,
        .dtype = BAL_U8,
        .of = BAL_U8,
        .rank = 1,
        .shape = &size,
        .size = size,
    };

    return bal_model_add(to, &config, tag_of(BAL_MADE_CONFIG, 0), err);
}

int bal_entries_pass(bal_model *to, const bal_model *from, size_t i,
                     bal_error *err)
{
    return bal_model_add(to, bal_model_at(from, i), tag_of(BAL_MADE_OTHER, i),
                         err);
}

int bal_entries_add(bal_model *to, const bal_entries *self, bal_error *err)
{
    int rc = add_config(to, self, err);

    for (size_t i = 0; !rc && i < self->count; i++) {
        rc = add_factor(to, self, i, BAL_MADE_A, err);
        if (!rc)
            rc = add_factor(to, self, i, BAL_MADE_B, err);
    }
    size_t files = self->files ? bal_model_count(self->files) : 0;
    for (size_t i = 0; !rc && i < files; i++) {
        const bal_tensor *entry = bal_model_at(self->files, i);

        if (entry->part == BAL_PART_FILE &&
            strcmp(entry->name, BAL_PEFT_CONFIG) != 0 &&
            strcmp(entry->name, "README.md") != 0)
            rc = bal_entries_pass(to, self->files, i, err);
    }
    return rc;
}

/* The same bytes, of the same size. */
static int is_same(bool *same, bal_model *a, size_t i, bal_model *b, size_t k,
                   bal_error *err)
{
    enum { AT_ONCE = 256 * 1024 };
    uint64_t size = bal_model_at(a, i)->size;
    char *room = malloc(2 * (size_t)AT_ONCE);
    int rc = room ? 0 : bal_fail_memory(err, "merging adapters");

    *same = size == bal_model_at(b, k)->size;
    for (uint64_t at = 0; at < size && *same && !rc; at += AT_ONCE) {
        size_t len = (size_t)bal_min(size - at, AT_ONCE);
        rc = bal_model_read(a, i, at, room, len, err);
        if (!rc)
            rc = bal_model_read(b, k, at, room + AT_ONCE, len, err);
        *same = !rc && !memcmp(room, room + AT_ONCE, len);
    }
    free(room);
    return rc;
}

static const bal_lora_whole *find_whole(const bal_loras *adapter,
                                        const char *name)
{
    for (size_t i = 0; i < adapter->whole_count; i++) {
        if (!strcmp(adapter->wholes[i].name, name))
            return &adapter->wholes[i];
    }
    return NULL;
}

int bal_wholes_check(const bal_loras *adapters, bal_model *const *inputs,
                     size_t count, bal_error *err)
{
    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < adapters[k].whole_count; i++) {
            const bal_lora_whole *whole = &adapters[k].wholes[i];
            const bal_lora_whole *first = find_whole(&adapters[0], whole->name);
            bool same = false;
            int rc = whole->copy && first
                         ? is_same(&same, inputs[0], first->entry, inputs[k],
                                   whole->entry, err)
                         : 0;
            if (!rc && !same)
                rc = bal_fail(err, BAL_EUNSUPPORTED,
                              "tensor '%s' of input %zu is a whole tensor, "
                              "which is not merged with adapters yet",
                              bal_model_at(inputs[k], whole->entry)->name,
                              k + 1);
            if (rc)
                return rc;
        }
    }
    return 0;
}

int bal_wholes_pass(bal_model *to, const bal_loras *adapter,
                    const bal_model *from, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < adapter->whole_count && !rc; i++)
        rc = bal_entries_pass(to, from, adapter->wholes[i].entry, err);
    return rc;
}

static int join(int dtype, bal_dtype with)
{
    return dtype < 0 ? (int)with : (int)bal_dtype_join((bal_dtype)dtype, with);
}

int bal_loras_join(int dtype, const bal_loras *adapter, const bal_model *model)
{
    for (size_t i = 0; i < adapter->count; i++) {
        dtype = join(dtype, bal_model_at(model, adapter->rows[i].a)->dtype);
        dtype = join(dtype, bal_model_at(model, adapter->rows[i].b)->dtype);
    }
    return dtype;
}
