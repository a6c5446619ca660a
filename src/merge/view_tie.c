/* Heads that are tied to the embeddings: the model has no tensor of its own for
 * them. Beside a model that has, the embeddings are its head, as mergekit 0.1.5
 * has it ("tied_names" of its architectures). */
#include <string.h>

#include "core/error.h"
#include "merge/view.h"

/* A head's name and what it may be tied to, both behind the same prefix. */
static const struct {
    const char *head, *embeddings;
} ties[] = {
    { "lm_head.weight", "model.embed_tokens.weight" },
    { "lm_head.weight", "model.language_model.embed_tokens.weight" },
    { "lm_head.weight", "transformer.wte.weight" },
    { "lm_head.weight", "wte.weight" },
    { "lm_head.weight", "backbone.embeddings.weight" },
    { "lm_head.weight", "model.lm_head.weight" },
    { "lm_head.weight", "shared.weight" },
    { "lm_head.weight", "encoder.embed_tokens.weight" },
    { "lm_head.weight", "decoder.embed_tokens.weight" },
    { "output.weight", "model.tok_embeddings.weight" },
    { "decoder.embed_tokens.weight", "shared.weight" },
    { "encoder.embed_tokens.weight", "shared.weight" },
    { "cls.predictions.decoder.weight",
      "bert.embeddings.word_embeddings.weight" },
    { "vocab_projector.weight",
      "distilbert.embeddings.word_embeddings.weight" },
    { "lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight" },
};

/* How long what is before the head's name is, BAL_NONE: it ends otherwise. */
static size_t prefix_of(const char *tensor, const char *head)
{
    size_t len = strlen(tensor);
    size_t size = strlen(head);

    if (len < size || strcmp(tensor + len - size, head) != 0 ||
        (len > size && tensor[len - size - 1] != '.'))
        return BAL_NONE;
    return len - size;
}

/* The entry that an input has tied to a head, BAL_NONE: none of these. */
static int find_tied(size_t *out, const bal_view *self, size_t input,
                     const char *head, bal_error *err)
{
    *out = BAL_NONE;
    for (size_t i = 0; i < sizeof(ties) / sizeof(ties[0]); i++) {
        BAL_LOCAL(bal_buf) name = { 0 };
        size_t prefix = prefix_of(head, ties[i].head);
        if (prefix == BAL_NONE)
            continue;
        int rc = bal_buf_format(&name, err, "%.*s%s", (int)prefix, head,
                                ties[i].embeddings);
        if (rc)
            return rc;
        *out = bal_model_find(self->inputs[input], BAL_PART_TENSOR,
                              bal_buf_string(&name));
        if (*out != BAL_NONE)
            return 0;
    }
    return 0;
}

static bool is_head(const char *tensor)
{
    for (size_t i = 0; i < sizeof(ties) / sizeof(ties[0]); i++) {
        if (prefix_of(tensor, ties[i].head) != BAL_NONE)
            return true;
    }
    return false;
}

int bal_view_tie(bal_view *self, bal_error *err)
{
    for (size_t i = 0; i < self->row_count; i++) {
        bal_view_row *row = &self->rows[i];
        const bal_view_slice *slice = bal_view_slice_of(self, row);
        for (size_t k = slice->from; k < slice->to && is_head(row->name); k++) {
            int rc = row->sources[k] != BAL_NONE
                         ? 0
                         : find_tied(&row->sources[k], self, k, row->name, err);
            if (rc)
                return rc;
        }
    }
    return 0;
}
