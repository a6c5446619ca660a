/* A configuration while it is read: what the mergekit*.c share. */
#ifndef MERGE_MERGEKIT_READ_H
#define MERGE_MERGEKIT_READ_H

#include "merge/mergekit.h"

enum { BAL_MERGEKIT_SCOPES = 2 };

/* One that is being read. */
typedef struct bal_mergekit_reader {
    bal_mergekit *to;
    const bal_yaml_node *document;
    const bal_yaml_node *module; /* that has the models or slices */
    const bal_yaml_node *slices; /* NULL: models are listed as such */
    const bal_yaml_node *list;   /* of models, or of a slice's sources */
    char path[48];               /* of list, for messages */
    /* Parameters of all models, the nearest first; NULL: none. */
    const bal_yaml_node *common[BAL_MERGEKIT_SCOPES];
    bal_mergekit_model base; /* its name; NULL: none */
    const bal_yaml_node *base_at;
} bal_mergekit_reader;

typedef struct bal_mergekit_key {
    const char *name;
    const char *refused; /* what it would do; NULL: it is read */
} bal_mergekit_key;

/* Not there, null, or empty. */
bool bal_mergekit_absent(const bal_yaml_node *node);
/* Refuse what rows refuse, list what they do not have; EINVAL: node is no map.
 * The rows end with one without a name. */
BAL_CHECK int bal_mergekit_keys(bal_mergekit_reader *self,
                                const bal_yaml_node *node, const char *path,
                                const bal_mergekit_key *rows, bal_error *err);
/* List path.key as not used. */
BAL_CHECK int bal_mergekit_pass_over(bal_mergekit_reader *self,
                                     const char *path, const char *key,
                                     bal_error *err);
/* The parameters of all models; then the models, or the sources of a slice
 * whose parameters are those, each with its own. */
BAL_CHECK int bal_mergekit_common(bal_mergekit_reader *self, bal_error *err);
BAL_CHECK int bal_mergekit_models(bal_mergekit_reader *self,
                                  const bal_yaml_node *parameters,
                                  bal_error *err);
/* The vocabulary, once the models are there. */
BAL_CHECK int bal_mergekit_tokenizer(bal_mergekit_reader *self, bal_error *err);
/* A source's layers. */
BAL_CHECK int bal_mergekit_range(bal_mergekit_model *out,
                                 const bal_yaml_node *source, bal_error *err);

#endif
