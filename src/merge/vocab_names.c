/* Which tensors have a row a token, by their names. The names are those of the
 * architectures that mergekit 0.1.5 knows, with the prefixes of their modules
 * where a model has several; a # stands for the number of a layer. A name alone
 * tells enough: none of them is used for anything else by a model that has a
 * tokenizer. */
#include "merge/vocab_inside.h"

static const char *const names[] = {
    "model.embed_tokens.weight",
    "lm_head.weight",
    "lm_head.bias",
    "model.lm_head.weight",
    "language_model.model.embed_tokens.weight",
    "language_model.lm_head.weight",
    "model.language_model.embed_tokens.weight",
    "model.tok_embeddings.weight",
    "output.weight",
    "transformer.wte.weight",
    "wte.weight",
    "transformer.word_embeddings.weight",
    "transformer.embd.wte.weight",
    "lm_head.linear.weight",
    "lm_head.linear.bias",
    "layers.0.wte.weight",
    "layers.#.linear.weight",
    "layers.#.linear.bias",
    "transformer.embedding.word_embeddings.weight",
    "transformer.output_layer.weight",
    "gpt_neox.embed_in.weight",
    "embed_out.weight",
    "backbone.embeddings.weight",
    "bert.embeddings.word_embeddings.weight",
    "embeddings.word_embeddings.weight",
    "cls.predictions.bias",
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    "roberta.embeddings.word_embeddings.weight",
    "lm_head.decoder.weight",
    "lm_head.decoder.bias",
    "distilbert.embeddings.word_embeddings.weight",
    "vocab_projector.weight",
    "vocab_projector.bias",
    "shared.weight",
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
};

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool fits(const char *pattern, const char *name)
{
    for (; *pattern; pattern++) {
        if (*pattern == '#') {
            if (!digit(*name))
                return false;
            while (digit(*name))
                name++;
            continue;
        }
        if (*pattern != *name)
            return false;
        name++;
    }
    return !*name;
}

bool bal_vocab_named(const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (fits(names[i], name))
            return true;
    }
    return false;
}
