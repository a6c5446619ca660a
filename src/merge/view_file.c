/* Side files of a view: they are taken, not merged. */
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "merge/view.h"

/* What counts for a file: changed goes before unchanged, kept before removed;
 * among equals the base of whole models, else the first input. */
static const int ranks[] = {
    [BAL_FORM_WHOLE] = 3,      [BAL_FORM_SAME] = 2,     [BAL_FORM_REMOVED] = 1,
    [BAL_FORM_DIFFERENCE] = 0, [BAL_FORM_RESIDUAL] = 0,
};

static size_t best_of(const bal_view *self, const bal_view_row *row)
{
    size_t best = BAL_NONE;
    int rank = 0;

    for (size_t k = 0; k < self->count; k++) {
        const bal_tensor *entry = bal_view_source(self, row, k);
        bool donor = entry && self->whole && k == self->slices[0].base &&
                     ranks[entry->form] == rank;
        if (!entry || (ranks[entry->form] <= rank && !donor))
            continue;
        best = k;
        rank = ranks[entry->form];
    }
    return best;
}

/* False where it is not known. */
static bool differ(const bal_tensor *a, const bal_tensor *b)
{
    if (a->size != b->size)
        return true;
    return a->tuned && b->tuned && !bal_id_equal(a->tuned, b->tuned);
}

/* Fine-tunes that changed one file in two ways: the first has its way, and it
 * is said. Whole models always differ in theirs. */
static void warn_of_others(const bal_view *self, const bal_view_row *row,
                           size_t best)
{
    const bal_tensor *taken = bal_view_source(self, row, best);

    for (size_t k = best + 1; k < self->count && !self->whole; k++) {
        const bal_tensor *other = bal_view_source(self, row, k);
        if (other && other->form == BAL_FORM_WHOLE && differ(taken, other))
            bal_warn("merge", "file=%s taken=input-%zu differs=input-%zu",
                     row->name, best + 1, k + 1);
    }
}

int bal_view_text(bal_view *self, size_t i, bal_view_row *row, uint64_t offset,
                  void *to, size_t len, bal_error *err)
{
    (void)self;
    (void)i;
    (void)err;
    memcpy(to, row->text->data + offset, len);
    return 0;
}

/* What a model's config says of it has to be true of the result. */
static int plan_config(bal_view *self, size_t row, const bal_tensor *entry,
                       bal_error *err)
{
    bal_view_row *plan = &self->rows[row];
    bal_tensor made = *entry;
    uint64_t size;
    int rc = bal_view_config(self, plan, err);

    if (rc)
        return rc;
    if (plan->text) {
        plan->read = bal_view_text;
        size = plan->text->len;
        made.size = size;
        made.shape = &size; /* copied */
        made.tuned = NULL;
    }
    return bal_model_add(&self->model, &made, row, err);
}

int bal_plan_file(bal_view *self, size_t row, bal_error *err)
{
    bal_view_row *plan = &self->rows[row];
    size_t best = best_of(self, plan);

    if (best == BAL_NONE)
        return 0;
    const bal_tensor *entry = bal_view_source(self, plan, best);
    if (entry->form == BAL_FORM_WHOLE)
        warn_of_others(self, plan, best);
    plan->from = best;
    plan->read = entry->form == BAL_FORM_WHOLE ? bal_view_pass : NULL;
    if (self->weights && !strcmp(plan->name, "config.json"))
        return plan_config(self, row, entry, err);
    return bal_model_add(&self->model, entry, row, err);
}
