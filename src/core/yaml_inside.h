/* What the yaml*.c share. */
#ifndef CORE_YAML_INSIDE_H
#define CORE_YAML_INSIDE_H

#include "core/yaml.h"

/* Of the key "<<" alone, until its map is complete. */
#define BAL_YAML_MERGE ((bal_yaml_type)(BAL_YAML_MAP + 1))

/* EINVAL: more than there may be. */
BAL_CHECK int bal_yaml_count(size_t *nodes, size_t more,
                             const bal_yaml_node *at, bal_error *err);
/* Make node, a map, of its keys and values, each key in front of its value. */
BAL_CHECK int bal_yaml_members(bal_yaml_node *node, bal_arena *arena,
                               size_t *nodes, const bal_yaml_node *const *pairs,
                               size_t count, bal_error *err);

#endif
