/* The table is transformers 5's own way of loading such folders, turned round:
 * a class's stack and the names that it is put together from, in order. */
#include "model/fold_experts.h"

#include <string.h>

#include "core/error.h"

enum { PARTS = 2 };

struct bal_experts_row {
    const char *stack, *folder;
    const char *parts[PARTS];
};

static const struct bal_experts_row rows[] = {
    { "mlp.experts.gate_up_proj",
      "block_sparse_moe.experts",
      { "w1.weight", "w3.weight" } },
    { "mlp.experts.down_proj", "block_sparse_moe.experts", { "w2.weight" } },
    { "mlp.experts.gate_up_proj",
      "mlp.experts",
      { "gate_proj.weight", "up_proj.weight" } },
    { "mlp.experts.down_proj", "mlp.experts", { "down_proj.weight" } },
};

int bal_experts_at(const bal_experts *self, const bal_fit *fit, uint64_t expert,
                   size_t part, size_t *entry, bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    int rc = bal_buf_format(&name, err, "%.*s%s.%llu.%s", (int)self->prefix,
                            self->path, self->row->folder,
                            (unsigned long long)expert, self->row->parts[part]);
    if (rc)
        return rc;
    return bal_fit_find(fit, entry, bal_buf_string(&name), "", err);
}

/* How many there are, numbered from 0. */
static int count(bal_experts *self, const bal_fit *fit, bal_error *err)
{
    size_t entry = 0;

    while (self->parts < PARTS && self->row->parts[self->parts])
        self->parts++;
    for (;;) {
        int rc = bal_experts_at(self, fit, self->count, 0, &entry, err);
        if (rc || entry == BAL_NONE)
            return rc;
        self->count++;
    }
}

int bal_experts_find(bal_experts *out, const bal_fit *fit, const char *path,
                     bal_error *err)
{
    *out = (bal_experts){ 0 };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (!bal_peft_named(path, rows[i].stack))
            continue;
        bal_experts one = {
            .row = &rows[i],
            .path = path,
            .prefix = strlen(path) - strlen(rows[i].stack),
        };
        int rc = count(&one, fit, err);
        if (rc)
            return rc;
        if (one.count)
            *out = one;
    }
    return 0;
}
