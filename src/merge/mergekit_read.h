/* A configuration while it is read: what the mergekit*.c share. */
#ifndef MERGE_MERGEKIT_READ_H
#define MERGE_MERGEKIT_READ_H

#include "merge/mergekit.h"

enum { BAL_MERGEKIT_SCOPES = 3 };

/* One that is being read. */
typedef struct bal_mergekit_reader {
    bal_mergekit *to;
    const bal_yaml_node *document;
    const bal_yaml_node *module; /* that has the models or slices */
    const bal_yaml_node *slice;  /* NULL: models are listed as such */
    const bal_yaml_node *list;   /* of models, or of the slice's sources */
    char path[32];               /* of list, for messages */
    /* Parameters of all models, the nearest first; NULL: none. */
    const bal_yaml_node *common[BAL_MERGEKIT_SCOPES];
    bool weighted;           /* they have a weight for every tensor */
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
/* The parameters of all models; then the models, with their own. */
BAL_CHECK int bal_mergekit_common(bal_mergekit_reader *self, bal_error *err);
BAL_CHECK int bal_mergekit_models(bal_mergekit_reader *self, bal_error *err);

#endif
