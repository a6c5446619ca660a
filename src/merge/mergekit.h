/* mergekit's configurations (github.com/arcee-ai/mergekit, release 0.1.5): a
 * YAML document that says which models are merged, and how. What it says is
 * taken apart here; models are texts until somebody looks them up. */
#ifndef MERGE_MERGEKIT_H
#define MERGE_MERGEKIT_H

#include "core/yaml.h"
#include "merge/merge.h"

/* A model as it is named, and what is said of it. */
typedef struct bal_mergekit_model {
    const char *name;    /* "path@revision+adapter@revision" */
    bool adapter;        /* there is a "+adapter" */
    json_t *parameters;  /* of its own: name to text */
    size_t slice;        /* that it is a source of */
    uint64_t first, end; /* its layers, where there are slices */
} bal_mergekit_model;

/* What is said of the sources of a slice, or of all models. */
typedef struct bal_mergekit_slice {
    size_t base;        /* among the models, BAL_NONE: none */
    json_t *parameters; /* name to text; NULL: none */
} bal_mergekit_slice;

/* Texts are the document's, whose bal_yaml has to stay, or in the arena. */
typedef struct bal_mergekit {
    bal_arena arena;
    const char *name; /* of the document, NULL: none */
    const bal_method *method;
    bal_mergekit_model *models; /* in mergekit's order, the base among them */
    size_t count, room;
    bal_mergekit_slice *slices; /* one that is of all models, or several */
    size_t slice_count, slice_room;
    bool sliced;           /* they are of layers */
    bool partial;          /* a weight is told for some tensors only */
    json_t *parameters;    /* of all models: name to text */
    const char *dtype;     /* of the inputs, ours: "BF16"; NULL: their own */
    const char *out_dtype; /* of the result; NULL: what comes out */
    json_t *vocabulary; /* bal_vocab_want's, of the models; NULL: their own */
    json_t *not_used;   /* what is said without effect: "models[1].revision" */
} bal_mergekit;

/* Reads one document. A parameter's text is a number or a word; a gradient
 * "0,0.5,1"; "FILTER:value" for tensors whose name contains FILTER; or several
 * of these with ';' between them, of which the first that fits holds.
 *
 * EINVAL, with line and column: what mergekit refuses, a misspelt parameter,
 * which mergekit passes over, and one of a model that a required weight is
 * missing for. EUNSUPPORTED names what is understood and cannot be done.
 * What mergekit passes over is listed in not_used. */
BAL_CHECK int bal_mergekit_read(bal_mergekit *out,
                                const bal_yaml_node *document, bal_error *err);
void bal_mergekit_done(bal_mergekit *self);

/* A reference to a model: text, or {model: {path, revision}, lora: …}. */
BAL_CHECK int bal_mergekit_reference(bal_mergekit_model *out, bal_arena *arena,
                                     const bal_yaml_node *node, bal_error *err);
/* Append the text of a parameter's value; *whole is set if it has one for
 * every tensor, *empty if it has none for any. */
BAL_CHECK int bal_mergekit_value(bal_buf *to, bool *whole,
                                 const bal_param *param,
                                 const bal_yaml_node *node, bal_error *err);
/* The parameter that mergekit calls so, NULL: none. */
const bal_param *bal_mergekit_param(const bal_method *method, const char *name);
/* A dtype by mergekit's name for it, ours by its name; NULL: none. */
const char *bal_mergekit_dtype(const char *name);
const char *bal_mergekit_dtype_name(const char *dtype);

/* Called for the name that an input has in the configuration. NULL: it has
 * none. Borrowed until the next call. */
typedef const char *bal_mergekit_name_fn(void *ctx, const bal_input *input);
/* A recipe as a configuration that mergekit runs. EUNSUPPORTED names what
 * mergekit has nothing for. */
BAL_CHECK int bal_mergekit_write(bal_buf *to, const bal_recipe *recipe,
                                 bal_mergekit_name_fn *name, void *ctx,
                                 bal_error *err);

#endif
