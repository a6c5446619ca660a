/* What config.json must say of the folded model, and does not of the base: the
 * rest of it stays byte for byte. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/json_edit.h"
#include "model/fold_edits.h"

static int edit_text(bal_edits *self, size_t entry, const bal_json_change *rows,
                     size_t count, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    size_t size = (size_t)bal_model_at(self->base, entry)->size;
    int rc = bal_buf_reserve(&text, size, err);
    if (rc)
        return rc;
    rc = bal_model_read(self->base, entry, 0, text.data, size, err);
    if (rc)
        return rc;
    bal_bytes bytes = { text.data, size };
    return bal_json_edit(&self->config, bytes, rows, count, "config.json", err);
}

int bal_edits_config(bal_edits *self, bal_error *err)
{
    char rows[32];
    bal_json_change changes[4];
    size_t count = 0;
    size_t entry = bal_model_find(self->base, BAL_PART_FILE, "config.json");

    if (entry == BAL_NONE)
        return 0;
    if (self->untied) {
        changes[count++] = (bal_json_change){ "text_config.tie_word_embeddings",
                                              "false", false };
        changes[count++] =
            (bal_json_change){ "tie_word_embeddings", "false", true };
    }
    if (self->vocabulary) {
        snprintf(rows, sizeof(rows), "%llu",
                 (unsigned long long)self->vocabulary);
        changes[count++] =
            (bal_json_change){ "text_config.vocab_size", rows, false };
        changes[count++] = (bal_json_change){ "vocab_size", rows, false };
    }
    if (!count)
        return 0;
    int rc = edit_text(self, entry, changes, count, err);
    if (rc)
        return rc;
    self->rows[entry].text = true;
    return 0;
}
